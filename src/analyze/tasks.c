/*
 * Tasks: user tasks from their first event on, with their goroutines, regions and logs (§9.1).
 */
#include <stdlib.h>

#include "analyze/part.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

struct task {
    trail_task row;      /* without its lists */
    uint64_t family;     /* order in which parents were set, for the order of children */
    int64_t *goroutines; /* with duplicates, which are removed when there are too many */
    size_t goroutine_count, goroutine_capacity;
    trail_task_log *logs;
    size_t log_capacity;
};

struct tasks {
    struct trail_analysis *analysis;
    struct idmap by_id; /* -> struct task */
    struct task **items;
    size_t count, capacity;
    uint64_t families; /* parents set so far */
    trail_task *rows;  /* made at the end */
    uint32_t *children;
};

static struct task *task_get(struct tasks *tasks, uint64_t id)
{
    struct task *task = idmap_find(&tasks->by_id, id);
    if (task)
        return task;
    if (!GROW(tasks->items, tasks->capacity, tasks->count + 1))
        return NULL;
    task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->row.id = id;
    task->row.start_goroutine = TRAIL_NONE;
    tasks->items[tasks->count++] = task;
    return idmap_put(&tasks->by_id, id, task) ? task : NULL;
}

/* Removes duplicates of goroutines. */
static void unite(struct task *task)
{
    size_t kept = 0;
    if (task->goroutine_count == 0)
        return;
    qsort(task->goroutines, task->goroutine_count, sizeof *task->goroutines, order_numbers);
    for (size_t i = 0; i < task->goroutine_count; i++)
        if (kept == 0 || task->goroutines[kept - 1] != task->goroutines[i])
            task->goroutines[kept++] = task->goroutines[i];
    task->goroutine_count = kept;
}

static bool take_part(struct task *task, int64_t goroutine)
{
    if (goroutine < 0)
        return true;
    if (task->goroutine_count > 0 && task->goroutines[task->goroutine_count - 1] == goroutine)
        return true;
    if (task->goroutine_count == task->goroutine_capacity) {
        unite(task);
        if (!GROW(task->goroutines, task->goroutine_capacity, task->goroutine_count * 2 + 2))
            return false;
    }
    task->goroutines[task->goroutine_count++] = goroutine;
    return true;
}

static bool set_parent(struct tasks *tasks, struct task *task, uint64_t parent)
{
    if (parent == TRAIL_NO_TASK || task->row.has_parent)
        return true;
    task->row.has_parent = true;
    task->row.parent = parent;
    task->family = ++tasks->families;
    return task_get(tasks, parent) != NULL;
}

static bool take_log(struct tasks *tasks, struct task *task, const trail_event *event)
{
    if (!tasks->analysis->counting)
        return true;
    size_t at = (size_t)task->row.log_count++;
    if (!wants(tasks->analysis, TRAIL_ANALYZE_LOGS))
        return true;
    trail_string text = trail_reader_string(tasks->analysis->reader, event->log.message);
    char *copy = arena_copy(&tasks->analysis->rows_arena, text.data, text.size);
    if (!copy || !GROW(task->logs, task->log_capacity, at + 1)) {
        task->row.log_count--;
        return false;
    }
    task->logs[at] = (trail_task_log){
        .time_ns = event->time_ns,
        .goroutine = event->goroutine,
        .category = names_of(&tasks->analysis->names, event->log.category),
        .message = {copy, text.size},
    };
    return true;
}

/* A region of the task begins, or ends without a begin in the trace. */
static bool take_region(struct tasks *tasks, const trail_event *event)
{
    const struct goroutine *g = goroutines_find(&tasks->analysis->goroutines, event->goroutine);
    if (!g || (event->kind == TRAIL_REGION_END && g->region))
        return true;
    struct task *task = task_get(tasks, event->region.task);
    if (!task)
        return false;
    task->row.regions += tasks->analysis->counting;
    return take_part(task, g->id);
}

static bool take_event(void *part, const trail_event *event)
{
    struct tasks *tasks = part;
    bool log = event->kind == TRAIL_LOG;
    if (event->kind == TRAIL_REGION_BEGIN || event->kind == TRAIL_REGION_END)
        return take_region(tasks, event);
    struct task *task = task_get(tasks, log ? event->log.task : event->task.id);
    if (!task || !take_part(task, event->goroutine))
        return false;
    if (log)
        return take_log(tasks, task, event);
    task->row.name = names_of(&tasks->analysis->names, event->task.type);
    if (event->kind == TRAIL_TASK_BEGIN) {
        task->row.has_start = true;
        task->row.start_ns = event->time_ns;
        task->row.start_goroutine = event->goroutine;
    } else {
        task->row.has_end = true;
        task->row.end_ns = event->time_ns;
    }
    return set_parent(tasks, task, event->task.parent);
}

static void task_free(struct task *task)
{
    free(task->goroutines);
    free(task->logs);
    free(task);
}

/* Drops ended tasks, and what the others had so far. */
static bool window_begins(void *part, int64_t ns)
{
    struct tasks *tasks = part;
    (void)ns;
    size_t kept = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        struct task *task = tasks->items[i];
        if (task->row.has_end) {
            (void)idmap_remove(&tasks->by_id, task->row.id);
            task_free(task);
        } else {
            tasks->items[kept++] = task;
        }
    }
    tasks->count = kept;
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct task *x = *(struct task *const *)a, *y = *(struct task *const *)b;
    return ORDER(x->row.id, y->row.id);
}

static size_t index_of(const struct tasks *tasks, uint64_t id)
{
    size_t at = SEARCH(i, 0, tasks->count, tasks->items[i]->row.id < id);
    return at < tasks->count && tasks->items[at]->row.id == id ? at : SIZE_MAX;
}

/* A child and when its parent was set. */
struct kinship {
    size_t parent;
    uint64_t family;
    uint32_t child;
};

static int by_parent(const void *a, const void *b)
{
    const struct kinship *x = a, *y = b;
    return ORDER(x->parent, y->parent) ?: ORDER(x->family, y->family);
}

static bool find_children(struct tasks *tasks)
{
    struct kinship *kin = calloc(tasks->count + 1, sizeof *kin);
    tasks->children = calloc(tasks->count + 1, sizeof *tasks->children);
    size_t count = 0;
    for (size_t i = 0; kin && i < tasks->count; i++) {
        const struct task *task = tasks->items[i];
        size_t parent = task->row.has_parent ? index_of(tasks, task->row.parent) : SIZE_MAX;
        if (parent != SIZE_MAX)
            kin[count++] = (struct kinship){parent, task->family, (uint32_t)i};
    }
    if (!kin || !tasks->children) {
        free(kin);
        return false;
    }
    qsort(kin, count, sizeof *kin, by_parent);
    for (size_t i = 0; i < count; i++) {
        trail_task *parent = &tasks->rows[kin[i].parent];
        tasks->children[i] = kin[i].child;
        if (parent->child_count++ == 0)
            parent->children = tasks->children + i;
    }
    free(kin);
    return true;
}

static bool finish(void *part, int64_t ns)
{
    struct tasks *tasks = part;
    (void)ns;
    tasks->rows = calloc(tasks->count + 1, sizeof *tasks->rows);
    if (!tasks->rows)
        return false;
    if (tasks->count > 0)
        qsort(tasks->items, tasks->count, sizeof(struct task *), by_id);
    for (size_t i = 0; i < tasks->count; i++) {
        struct task *task = tasks->items[i];
        unite(task);
        tasks->rows[i] = task->row;
        tasks->rows[i].logs = task->logs;
        tasks->rows[i].goroutines = task->goroutines;
        tasks->rows[i].goroutine_count = task->goroutine_count;
    }
    return find_children(tasks);
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct tasks *tasks = part;
    tasks->analysis = analysis;
    return true;
}

static void drop(void *part)
{
    struct tasks *tasks = part;
    for (size_t i = 0; i < tasks->count; i++)
        task_free(tasks->items[i]);
    free(tasks->items);
    free(tasks->rows);
    free(tasks->children);
    idmap_free(&tasks->by_id);
}

const struct analysis_part tasks_part = {
    .what = TRAIL_ANALYZE_TASKS,
    .size = sizeof(struct tasks),
    .uses_goroutines = true,
    .init = init,
    .free = drop,
    .window_begins = window_begins,
    .finish = finish,
    .kinds = PART_TASKS | PART_REGIONS | PART_KIND(LOG),
    .event = take_event,
};

size_t trail_analysis_tasks(const trail_analysis *analysis, const trail_task **rows)
{
    const struct tasks *tasks = analysis_object(analysis, &tasks_part);
    *rows = tasks ? tasks->rows : NULL;
    return tasks && analysis->counting ? tasks->count : 0;
}
