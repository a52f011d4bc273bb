/* Reads the fields of scheduler events in text: see sched_fields.h. */
#include "import/sched_fields.h"

#include <string.h>

#include "base/text.h"
#include "import/scan.h"

typedef enum sched_result sched_parser(struct import_model *model, trail_string fields,
                                       struct import_event *event);

/* MARK: Parts */

/* A placeholder for a name that the recorder has forgotten. */
static void take_name(struct import_model *model, int32_t tid, trail_string name)
{
    if (!text_is(name, "<...>"))
        import_thread_name(&model->threads, tid, name);
}

static bool take_tid(trail_string *text, int32_t *tid)
{
    uint64_t number;
    if (!scan_number(text, IMPORT_TID_MAX, &number))
        return false;
    *tid = (int32_t)number;
    return true;
}

/*
 * Takes "NAMEKEY123": a thread's name, which may have any characters, then its TID after the last
 * `key`. Leaves what follows the TID.
 */
static bool take_thread(struct import_model *model, trail_string *text, const char *key,
                        int32_t *tid)
{
    size_t at = scan_find_last(*text, key);
    if (at == SIZE_MAX)
        return false;
    trail_string rest = scan_part(*text, at + strlen(key), text->size);
    if (!take_tid(&rest, tid))
        return false;
    take_name(model, *tid, scan_part(*text, 0, at));
    *text = rest;
    return true;
}

/* Takes "comm=NAME pid=123 ..." or "NAME:123 [120] ...". */
static bool take_named(struct import_model *model, trail_string fields, const char *comm,
                       const char *pid, int32_t *tid)
{
    if (scan_word(&fields, comm))
        return take_thread(model, &fields, pid, tid);
    size_t prio = scan_find_last(fields, " [");
    if (prio == SIZE_MAX)
        return false;
    fields.size = prio;
    return take_thread(model, &fields, ":", tid) && fields.size == 0;
}

/* MARK: States */

static bool sched_left(trail_string letters, uint8_t *left)
{
    static const struct {
        char letter;
        uint8_t left;
    } of[] = {
        {'R', IMPORT_PREEMPTED}, {'S', IMPORT_SLEEPING}, {'D', IMPORT_BLOCKED},
        {'T', IMPORT_STOPPED},   {'t', IMPORT_STOPPED},  {'X', IMPORT_ENDED},
        {'x', IMPORT_ENDED},     {'Z', IMPORT_ENDED},    {'P', IMPORT_SLEEPING},
        {'I', IMPORT_SLEEPING},  {'K', IMPORT_BLOCKED},  {'W', IMPORT_BLOCKED},
        {'N', IMPORT_SLEEPING},
    };
    /* "R+" was preempted; "D|W" has several bits, the first of which decides. */
    for (size_t i = 0; letters.size > 0 && i < sizeof of / sizeof *of; i++) {
        if (of[i].letter == *letters.data) {
            *left = of[i].left;
            return true;
        }
    }
    return false;
}

/* Whether the preempted mark is set: "S+" was preempted on the way to sleep, and is on the run
 * queue. */
static bool is_preempted(trail_string letters)
{
    return letters.size > 0 && letters.data[letters.size - 1] == '+';
}

static bool take_state(trail_string letters, struct import_event *event)
{
    if (!sched_left(letters, &event->left))
        return false;
    if (is_preempted(letters))
        event->left = IMPORT_PREEMPTED;
    return true;
}

/* MARK: Events */

/* Takes the part before "==>": "prev_comm=sh prev_pid=7 prev_prio=120 prev_state=S" or "sh:7 [120]
 * S". */
static bool take_previous(struct import_model *model, trail_string part, int32_t *tid,
                          struct import_event *event)
{
    bool keys = part.size > 0 && scan_word(&part, "prev_comm=");
    size_t at = keys ? scan_find_last(part, " prev_state=") : scan_find_last(part, "] ");
    if (at == SIZE_MAX)
        return false;
    trail_string state = scan_part(part, at + (keys ? strlen(" prev_state=") : 2), part.size);
    part.size = at;
    if (!keys) {
        size_t prio = scan_find_last(part, " [");
        if (prio == SIZE_MAX)
            return false;
        part.size = prio;
    }
    return take_thread(model, &part, keys ? " prev_pid=" : ":", tid) && take_state(state, event);
}

static enum sched_result parse_switch(struct import_model *model, trail_string fields,
                                      struct import_event *event)
{
    size_t arrow = scan_find(fields, " ==> ");
    int32_t previous;
    if (arrow == SIZE_MAX || !take_previous(model, scan_part(fields, 0, arrow), &previous, event) ||
        !take_named(model, scan_part(fields, arrow + strlen(" ==> "), fields.size),
                    "next_comm=", " next_pid=", &event->other))
        return SCHED_BAD;
    event->tid = previous;
    return SCHED_EVENT;
}

static enum sched_result parse_wake(struct import_model *model, trail_string fields,
                                    struct import_event *event)
{
    if (!take_named(model, fields, "comm=", " pid=", &event->other))
        return SCHED_BAD;
    return event->other == 0 ? SCHED_NOTHING : SCHED_EVENT;
}

/*
 * "comm=sh pid=7 child_comm=sh child_pid=8"; trace-cmd's "comm=sh:7 child_comm=sh:8" is not
 * supported.
 */
static enum sched_result parse_fork(struct import_model *model, trail_string fields,
                                    struct import_event *event)
{
    size_t at = scan_find_last(fields, " child_comm=");
    if (at == SIZE_MAX || !take_named(model, scan_part(fields, at + 1, fields.size),
                                      "child_comm=", " child_pid=", &event->other))
        return SCHED_BAD;
    return event->other == 0 ? SCHED_BAD : SCHED_EVENT;
}

static enum sched_result parse_exit(struct import_model *model, trail_string fields,
                                    struct import_event *event)
{
    int32_t tid;
    if (!take_named(model, fields, "comm=", " pid=", &tid))
        return SCHED_BAD;
    event->tid = tid;
    return tid == 0 ? SCHED_BAD : SCHED_EVENT;
}

/* Only learns the thread's name: the thread's next switch shows its new CPU. */
static enum sched_result parse_migrate(struct import_model *model, trail_string fields,
                                       struct import_event *event)
{
    int32_t tid;
    (void)event;
    return take_named(model, fields, "comm=", " pid=", &tid) ? SCHED_NOTHING : SCHED_BAD;
}

/* "pid=8 oldcomm=sh newcomm=cat oom_score_adj=0" */
static enum sched_result parse_rename(struct import_model *model, trail_string fields,
                                      struct import_event *event)
{
    int32_t tid;
    (void)event;
    if (!scan_word(&fields, "pid=") || !take_tid(&fields, &tid))
        return SCHED_BAD;
    size_t at = scan_find(fields, " newcomm=");
    if (at == SIZE_MAX)
        return SCHED_BAD;
    at += strlen(" newcomm=");
    size_t end = scan_find_last(fields, " oom_score_adj=");
    take_name(model, tid, scan_part(fields, at, end != SIZE_MAX && end > at ? end : fields.size));
    return SCHED_NOTHING;
}

/* Begins and ends of interrupts. */
static enum sched_result parse_kind(struct import_model *model, trail_string fields,
                                    struct import_event *event)
{
    (void)model, (void)fields, (void)event;
    return SCHED_EVENT;
}

/* Events that are recorded with the others by default but show nothing about states. */
static enum sched_result parse_nothing(struct import_model *model, trail_string fields,
                                       struct import_event *event)
{
    (void)model, (void)fields, (void)event;
    return SCHED_NOTHING;
}

/* docs/importing.md has the same rows. */
static const struct {
    const char *name;
    sched_parser *parse;
    enum import_kind kind; /* of its event, if it becomes one */
} rows[] = {
    {"sched_switch", parse_switch, IMPORT_SWITCH},
    {"sched_waking", parse_wake, IMPORT_WAKING},
    {"sched_wakeup", parse_wake, IMPORT_WAKEUP},
    {"sched_wakeup_new", parse_wake, IMPORT_STARTED},
    {"sched_process_fork", parse_fork, IMPORT_FORK},
    {"sched_process_exit", parse_exit, IMPORT_EXIT},
    {"sched_migrate_task", parse_migrate, 0},
    {"task_rename", parse_rename, 0},
    {"irq_handler_entry", parse_kind, IMPORT_INTERRUPT},
    {"irq_handler_exit", parse_kind, IMPORT_RESUME},
    {"softirq_entry", parse_kind, IMPORT_INTERRUPT},
    {"softirq_exit", parse_kind, IMPORT_RESUME},
    {"local_timer_entry", parse_kind, IMPORT_INTERRUPT},
    {"local_timer_exit", parse_kind, IMPORT_RESUME},
    {"reschedule_entry", parse_kind, IMPORT_INTERRUPT},
    {"reschedule_exit", parse_kind, IMPORT_RESUME},
    {"call_function_entry", parse_kind, IMPORT_INTERRUPT},
    {"call_function_exit", parse_kind, IMPORT_RESUME},
    {"call_function_single_entry", parse_kind, IMPORT_INTERRUPT},
    {"call_function_single_exit", parse_kind, IMPORT_RESUME},
    {"irq_work_entry", parse_kind, IMPORT_INTERRUPT},
    {"irq_work_exit", parse_kind, IMPORT_RESUME},
    {"sched_stat_runtime", parse_nothing, 0},
    {"sched_stat_wait", parse_nothing, 0},
    {"sched_stat_sleep", parse_nothing, 0},
    {"sched_stat_iowait", parse_nothing, 0},
    {"sched_stat_blocked", parse_nothing, 0},
    {"sched_process_exec", parse_nothing, 0},
    {"sched_process_free", parse_nothing, 0},
    {"sched_process_wait", parse_nothing, 0},
};

enum sched_result sched_parse(struct import_model *model, trail_string name, trail_string fields,
                              struct import_event *event)
{
    size_t i = 0, count = sizeof rows / sizeof *rows;
    while (i < count && !text_is(name, rows[i].name))
        i++;
    if (i == count)
        return SCHED_UNKNOWN;
    event->kind = (uint8_t)rows[i].kind;
    return rows[i].parse(model, fields, event);
}
