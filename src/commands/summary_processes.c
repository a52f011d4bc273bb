/* Adds up times by process for a summary: see summary_processes.h. */
#include "commands/summary_processes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/text.h"
#include "read/recorded.h"
#include "ui/recorded.h"
#include "words/process_name.h"

/* Returns the row of the program; NULL if the recording has only one process, or if that is not
 * known. */
static const trail_recorded *program_of(const trail_reader *reader)
{
    const trail_recorded *program = recorded_program(reader);
    return recorded_next(reader, TRAIL_RECORDED_PROCESS, NULL) != program ? program : NULL;
}

/* Names the program as threads are named: by the file name in its first argument. */
static trail_string name_of(const trail_recorded *row)
{
    trail_string name = row->name;
    const char *end = memchr(name.data, ' ', name.size);
    if (end)
        name.size = (size_t)(end - name.data);
    return text_path_name(name);
}

static void add_times(struct summary_process *process, const trail_times *times)
{
    process->running_ns += times->exec_ns;
    process->ready_ns += trail_times_corrected(times).sched_wait_ns;
    process->waiting_ns +=
        trail_times_column(times, TRAIL_COLUMN_BLOCK) + times->syscall_ns + times->syscall_block_ns;
}

static void add_process(struct summary_process *process, const struct summary_process *other)
{
    process->threads += other->threads;
    process->running_ns += other->running_ns;
    process->ready_ns += other->ready_ns;
    process->waiting_ns += other->waiting_ns;
}

static int by_label(const void *a_, const void *b_)
{
    const trail_string a = ((const struct summary_process *)a_)->label;
    const trail_string b = ((const struct summary_process *)b_)->label;
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int by_running(const void *a_, const void *b_)
{
    const struct summary_process *a = a_, *b = b_;
    return ORDER(b->running_ns, a->running_ns) ?: by_label(a, b);
}

/* Assigns to the program what was recorded before there were several processes. */
static void add_unnamed(struct summary_process *list, size_t *count, const trail_recorded *program,
                        const struct summary_process *unnamed)
{
    struct summary_process *to = NULL;
    for (size_t i = 0; i < *count && !to; i++)
        to = list[i].pid == program->pid ? &list[i] : NULL;
    if (!to) {
        to = &list[(*count)++];
        trail_string name = name_of(program);
        *to = (struct summary_process){.label = name, .name = name, .pid = program->pid};
    }
    add_process(to, unnamed);
}

/* Adds up neighbours with the same label; returns how many remain. */
static size_t add_up(struct summary_process *list, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct summary_process *last = kept > 0 ? &list[kept - 1] : NULL;
        if (!last || by_label(last, &list[i]) != 0) {
            list[kept++] = list[i];
            continue;
        }
        add_process(last, &list[i]);
    }
    return kept;
}

/*
 * Returns the process that a row is about; NULL: none. Several processes have the same PID if one
 * executed another program, or if the kernel reused the number: takes the one with the row's name,
 * else the longest-running.
 */
static struct summary_process *process_with(struct summary_process *list, size_t count,
                                            const trail_recorded *row)
{
    struct summary_process *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (list[i].pid != row->pid)
            continue;
        if (memmem(row->name.data, row->name.size, list[i].name.data, list[i].name.size))
            return &list[i];
        found = found ? found : &list[i];
    }
    return found;
}

/* Gives each process its row from the recording. */
static void find_recorded(const trail_reader *reader, const trail_recorded *program,
                          struct summary_process *list, size_t count)
{
    RECORDED_EACH(row, reader, TRAIL_RECORDED_PROCESS) {
        struct summary_process *process = process_with(list, count, row);
        if (!process)
            continue;
        process->recorded = true;
        process->cpu_ns += row->cpu_ns;
        process->recorder_ns += row->recorder_ns;
        process->is_program = row == program;
    }
}

size_t summary_processes(const trail_analysis *answers, const trail_reader *reader,
                         struct summary_process **list)
{
    const trail_group *groups;
    size_t all = trail_analysis_groups(answers, &groups), count = 0;
    const trail_recorded *program = program_of(reader);
    struct summary_process unnamed = {0};
    *list = calloc(all + 1, sizeof **list);
    for (size_t i = 0; *list && i < all; i++) {
        struct summary_process process = {.threads = groups[i].count};
        struct process_name name;
        if (!process_name_of(trail_analysis_text(answers, groups[i].name), &name)) {
            unnamed.threads += groups[i].count;
            add_times(&unnamed, &groups[i].times);
            continue;
        }
        process.label = name.label;
        process.name = name.name;
        process.pid = name.pid;
        add_times(&process, &groups[i].times);
        (*list)[count++] = process;
    }
    if (count > 0 && program && unnamed.threads > 0)
        add_unnamed(*list, &count, program, &unnamed);
    if (count > 0)
        qsort(*list, count, sizeof **list, by_label);
    count = add_up(*list, count);
    if (count > 1) {
        qsort(*list, count, sizeof **list, by_running);
        find_recorded(reader, program, *list, count);
        return count;
    }
    free(*list);
    *list = NULL;
    return 0;
}

const struct summary_process *summary_processes_worker(const struct summary_process *list,
                                                       size_t count,
                                                       const struct summary_process **program)
{
    const struct summary_process *worker = NULL, *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (list[i].is_program)
            first = &list[i];
        else if (!worker)
            worker = &list[i];
    }
    *program = first;
    if (!first || first->waiting_ns < 9 * (first->running_ns + first->ready_ns))
        return NULL;
    return worker;
}
