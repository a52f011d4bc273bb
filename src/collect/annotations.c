/* Writes tasks, regions and logs: see annotations.h. */
#include "collect/annotations.h"

#include <stdio.h>

#include <inttypes.h>

#include "base/duration.h"
#include "base/grow.h"
#include "collect/parts.h"
#include "wire/waits.h"

/* Keeps the text of an annotation as it was first read: the program may change it later. */
static const char *keep_name(struct collect *c, uint32_t number, const char *text, size_t size)
{
    char *name = arena_copy(&c->arena, text, size);
    if (!name || !idmap_put(&c->annotations.texts, number, name)) {
        collect_no_memory(c);
        return "";
    }
    return name;
}

static const char *name_of(struct collect *c, uint32_t number)
{
    const char *known = idmap_find(&c->annotations.texts, number);
    char text[SHM_TEXT_MAX];
    if (known)
        return known;
    size_t size = area_text(c->area, number, text);
    return size ? keep_name(c, number, text, size) : "";
}

/* Returns the trace's ID of a task: another program in the trace may use the same number. */
static uint64_t task_of(const struct collect *c, uint64_t number)
{
    return number ? number + ((uint64_t)c->number << 40) : 0;
}

/* Returns the ID of a name with its place: "parallel: main (file.c:7)". */
static uint64_t name_with_place(struct collect *c, const struct op *op)
{
    char place[200], name[300];
    const char *text = name_of(c, op->text);
    code_place(c, op->stack, place, sizeof place);
    snprintf(name, sizeof name, "%s%s%s", text, *place ? ": " : "", place);
    return names_string(c, name);
}

/* Reports a task or region if it is slow. */
static void look_at(struct collect *c, enum slow_what what, struct slow_span *span, uint32_t text,
                    int64_t ns, bool ended)
{
    if (c->trace->slow.limits.count > 0)
        slow_look_at(&c->trace->slow, &(struct slow_candidate){.what = what,
                                                               .span = span,
                                                               .name = name_of(c, text),
                                                               .ended = ended,
                                                               .lasted_ns = ns - span->begin_ns});
}

/* Readers reject a second task with the ID of one that has not ended. */
static void begin_task(struct collect *c, struct thread *thread, const struct op *op,
                       uint64_t stack, int64_t ns)
{
    uint64_t task = task_of(c, op->object);
    if (task == 0 || task == UINT64_MAX || objects_find(&c->annotations.tasks, task)) {
        collect_damage(c);
        return;
    }
    struct open_task *open = objects_get(&c->annotations.tasks, task);
    if (!open) {
        collect_no_memory(c);
        return;
    }
    *open = (struct open_task){.text = op->text, .slow.begin_ns = ns};
    EVENT(c, thread, ns, V2_UserTaskBegin, task, task_of(c, op->object2),
          op->flags & SHM_WITH_PLACE ? name_with_place(c, op)
                                     : names_string(c, name_of(c, op->text)),
          stack);
}

static void end_task(struct collect *c, struct thread *thread, const struct op *op, uint64_t stack,
                     int64_t ns)
{
    uint64_t task = task_of(c, op->object);
    struct open_task *open = objects_find(&c->annotations.tasks, task);
    EVENT(c, thread, ns, V2_UserTaskEnd, task, stack);
    if (!open)
        return;
    look_at(c, SLOW_TASK, &open->slow, open->text, ns, true);
    objects_drop(&c->annotations.tasks, task);
}

static void begin_region(struct collect *c, struct thread *thread, const struct op *op,
                         uint64_t stack, int64_t ns)
{
    struct open_region region = {
        .task = task_of(c, op->object), .text = op->text, .slow.begin_ns = ns};
    if (!APPEND(thread->g.regions, thread->g.region_room, thread->g.region_count, region)) {
        collect_no_memory(c);
        return;
    }
    EVENT(c, thread, ns, V2_UserRegionBegin, region.task, names_string(c, name_of(c, op->text)),
          stack);
}

/* The end of a region is dropped unless that region is the innermost. */
static void end_region(struct collect *c, struct thread *thread, const struct op *op,
                       uint64_t stack, int64_t ns)
{
    if (thread->g.region_count == 0)
        return;
    struct open_region *region = &thread->g.regions[thread->g.region_count - 1];
    if (region->task != task_of(c, op->object) || region->text != op->text)
        return;
    thread->g.region_count--;
    EVENT(c, thread, ns, V2_UserRegionEnd, region->task, names_string(c, name_of(c, op->text)),
          stack);
    look_at(c, SLOW_REGION, &region->slow, region->text, ns, true);
}

/* Writes how often a thread called what has no records of its own: category "counted", text "read
 * 512 1.2ms". */
static void log_count(struct collect *c, struct thread *thread, const struct op *op, uint64_t stack,
                      int64_t ns)
{
    char text[100];
    const char *words = op->wait == SHM_NO_WAIT ? WIRE_YIELD : wait_kinds[op->wait].words;
    int size = snprintf(text, sizeof text - DURATION_SIZE, "%s %" PRIu64 " ", words, op->object);
    int64_t lasted_ns = ns - ticks_to_ns(c->ticks, op->time - op->object2);
    *duration_put(text + size, lasted_ns > 0 ? lasted_ns : 0, DURATION_LOG) = '\0';
    EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, WIRE_COUNTED), names_string(c, text),
          stack);
}

static void log_text(struct collect *c, struct thread *thread, const struct op *op, uint64_t stack,
                     int64_t ns)
{
    EVENT(c, thread, ns, V2_UserLog, task_of(c, op->object), names_string(c, name_of(c, op->text)),
          names_string(c, op->message ? op->message : ""), stack);
}

void annotation_do(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    static void (*const of[SHM_KINDS])(struct collect * c, struct thread * thread,
                                       const struct op *op, uint64_t stack, int64_t ns) = {
        [SHM_TASK_BEGAN] = begin_task,     [SHM_TASK_ENDED] = end_task,
        [SHM_REGION_BEGAN] = begin_region, [SHM_REGION_ENDED] = end_region,
        [SHM_LOGGED] = log_text,           [SHM_COUNTED] = log_count,
    };
    uint64_t stack = code_stack(c, op->stack, 0);
    state_run(c, thread, ns);
    if (of[op->record])
        of[op->record](c, thread, op, stack, ns);
}

void annotations_look_at_open(struct collect *c, int64_t ns)
{
    struct thread *thread;
    IDMAP_VALUES(struct open_task, open, &c->annotations.tasks.map) {
        look_at(c, SLOW_TASK, &open->slow, open->text, ns, false);
    }
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        for (size_t i = 0; thread->g.state != G_DEAD && i < thread->g.region_count; i++) {
            struct open_region *region = &thread->g.regions[i];
            look_at(c, SLOW_REGION, &region->slow, region->text, ns, false);
        }
    }
}

void annotations_dispose(struct collect *c)
{
    objects_free(&c->annotations.tasks);
    idmap_free(&c->annotations.texts);
}
