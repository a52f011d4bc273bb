/*
 * Scheduling events of LTTng's kernel tracer, as babeltrace2 prints them:
 *
 *     [10.000300000] (+0.1) host sched_switch: { cpu_id = 0 }, { prev_comm = "sh", prev_tid = 7, ..., next_tid = 8 }
 *     [15:32:00.000300000] ...
 *
 * The name is followed by groups of fields: those of the packet, contexts, and last those of the
 * event. Events have their CPU, but not their thread: it is the one that runs on the CPU.
 *
 * The same goes for events of programs' mutexes (ust.h), which need the context vtid for their
 * thread:
 *
 *     [10.000300000] (+0.1) host lttng_ust_pthread:pthread_mutex_unlock: { cpu_id = 0 }, { vtid = 7 }, { mutex = 0x10, status = 0 }
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "import/forms.h"
#include "import/lines.h"
#include "import/scan.h"
#include "import/ust.h"

struct parsed {
    struct import_model *model;
    struct import_event event;
    trail_string fields;
};

typedef bool ctf_parser(struct parsed *parsed);

/* MARK: Fields */

/* Sets `rest` to what follows "NAME = ". */
static bool find_field(trail_string fields, const char *name, trail_string *rest)
{
    size_t size = strlen(name);
    for (size_t from = 0, at; from < fields.size; from += at + 1) {
        trail_string part = scan_part(fields, from, fields.size);
        at = scan_find(part, name);
        if (at == SIZE_MAX)
            return false;
        *rest = scan_part(part, at + size, part.size);
        if (at > 0 && part.data[at - 1] == ' ' && scan_word(rest, " = "))
            return true;
    }
    return false;
}

static bool find_tid(trail_string fields, const char *name, int32_t *tid)
{
    trail_string rest;
    uint64_t number;
    if (!find_field(fields, name, &rest) || !scan_number(&rest, IMPORT_TID_MAX, &number))
        return false;
    *tid = (int32_t)number;
    return true;
}

/* Takes a name, "sh", for the thread. Quotes and backslashes in names are escaped, and remain
 * so. */
static void name_thread(const struct parsed *parsed, trail_string fields, const char *name,
                        int32_t tid)
{
    trail_string rest;
    size_t size = 0;
    if (!find_field(fields, name, &rest) || !scan_word(&rest, "\""))
        return;
    while (size < rest.size && rest.data[size] != '"')
        size += rest.data[size] == '\\' && size + 1 < rest.size ? 2 : 1;
    import_thread_name(&parsed->model->threads, tid, scan_part(rest, 0, size));
}

/*
 * Finds the number of a state, "1" or "( "TASK_INTERRUPTIBLE" : container = 1 )": bits of Linux.
 * Bits above the lower eight mark a preempted thread, or do not describe a reason to wait.
 */
static bool find_state(trail_string fields, uint8_t *left)
{
    static const uint8_t bits[] = {IMPORT_SLEEPING, IMPORT_BLOCKED, IMPORT_STOPPED,
                                   IMPORT_STOPPED,  IMPORT_ENDED,   IMPORT_ENDED,
                                   IMPORT_SLEEPING, IMPORT_SLEEPING};
    trail_string rest;
    uint64_t state;
    if (!find_field(fields, "prev_state", &rest))
        return false;
    if (scan_word(&rest, "(")) {
        size_t at = scan_find(rest, "container = ");
        if (at == SIZE_MAX)
            return false;
        rest = scan_part(rest, at + strlen("container = "), rest.size);
    }
    if (!scan_number(&rest, UINT32_MAX, &state))
        return false;
    *left = IMPORT_PREEMPTED;
    for (unsigned i = 0; i < sizeof bits; i++) {
        if (state & 1u << i) {
            *left = bits[i];
            break;
        }
    }
    return true;
}

/* MARK: Events */

static bool parse_switch(struct parsed *p)
{
    if (!find_tid(p->fields, "prev_tid", &p->event.tid) ||
        !find_tid(p->fields, "next_tid", &p->event.other) || !find_state(p->fields, &p->event.left))
        return false;
    name_thread(p, p->fields, "prev_comm", p->event.tid);
    name_thread(p, p->fields, "next_comm", p->event.other);
    return true;
}

static bool parse_other(struct parsed *p, const char *comm, const char *tid)
{
    if (!find_tid(p->fields, tid, &p->event.other) || p->event.other == 0)
        return false;
    name_thread(p, p->fields, comm, p->event.other);
    return true;
}

static bool parse_wake(struct parsed *p)
{
    return parse_other(p, "comm", "tid");
}

static bool parse_fork(struct parsed *p)
{
    return parse_other(p, "child_comm", "child_tid") &&
           find_tid(p->fields, "parent_tid", &p->event.tid);
}

static bool parse_exit(struct parsed *p)
{
    if (!parse_wake(p))
        return false;
    p->event.tid = p->event.other;
    return true;
}

/* The begin or the end of an interrupt. */
static bool parse_kind(struct parsed *p)
{
    (void)p;
    return true;
}

/* docs/importing.md has the same rows. */
static const struct {
    const char *name;
    ctf_parser *parse; /* NULL: only names are taken */
    enum import_kind kind;
} rows[] = {
    {"sched_switch", parse_switch, IMPORT_SWITCH},
    {"sched_waking", parse_wake, IMPORT_WAKING},
    {"sched_wakeup", parse_wake, IMPORT_WAKEUP},
    {"sched_wakeup_new", parse_wake, IMPORT_STARTED},
    {"sched_process_fork", parse_fork, IMPORT_FORK},
    {"sched_process_exit", parse_exit, IMPORT_EXIT},
    {"irq_handler_entry", parse_kind, IMPORT_INTERRUPT},
    {"irq_handler_exit", parse_kind, IMPORT_RESUME},
    {"irq_softirq_entry", parse_kind, IMPORT_INTERRUPT},
    {"irq_softirq_exit", parse_kind, IMPORT_RESUME},
    {"sched_migrate_task", NULL, 0},
    {"sched_process_free", NULL, 0},
    {"sched_process_wait", NULL, 0},
    {"sched_process_exec", NULL, 0},
    {"sched_stat_runtime", NULL, 0},
    {"lttng_statedump_process_state", NULL, 0},
};

/* MARK: Lines */

/* Takes "15:32:00.000300000": the time of day. */
static bool take_time_of_day(trail_string *text, int64_t *ns)
{
    trail_string rest = *text;
    uint64_t hours, minutes;
    int64_t seconds_ns;
    if (!scan_number(&rest, 23, &hours) || !scan_word(&rest, ":") ||
        !scan_number(&rest, 59, &minutes) || !scan_word(&rest, ":") ||
        !scan_seconds(&rest, &seconds_ns))
        return false;
    *ns = (int64_t)(hours * 60 + minutes) * 60 * 1000000000 + seconds_ns;
    *text = rest;
    return true;
}

/* Takes "[10.000300000] (+0.1) host sched_switch: ". */
static bool take_header(trail_string *line, int64_t *ns, trail_string *name)
{
    if (!scan_word(line, "[") || (!scan_seconds(line, ns) && !take_time_of_day(line, ns)) ||
        !scan_word(line, "]"))
        return false;
    size_t end = scan_find(*line, ": {");
    if (end == SIZE_MAX)
        return false;
    size_t at = end;
    while (at > 0 && !scan_is_space(line->data[at - 1]))
        at--;
    *name = scan_part(*line, at, end);
    *line = scan_part(*line, end + 2, line->size);
    return name->size > 0;
}

static bool take_cpu(trail_string fields, int32_t *cpu)
{
    trail_string rest;
    uint64_t number;
    if (!find_field(fields, "cpu_id", &rest) || !scan_number(&rest, IMPORT_CPU_MAX, &number))
        return false;
    *cpu = (int32_t)number;
    return true;
}

/* Takes the names of threads that existed before the recording. */
static void take_state_dump(struct parsed *parsed)
{
    int32_t tid;
    if (find_tid(parsed->fields, "tid", &tid))
        name_thread(parsed, parsed->fields, "name", tid);
}

/* Takes an address, "0x10", of the event's own fields. */
static bool find_address(trail_string fields, const char *name, uint64_t *address)
{
    trail_string rest;
    char text[2 + 16 + 1], *end;
    if (!find_field(fields, name, &rest))
        return false;
    (void)snprintf(text, sizeof text, "%.*s",
                   (int)(rest.size < sizeof text ? rest.size : sizeof text - 1), rest.data);
    *address = strtoull(text, &end, 16);
    return end > text + 2;
}

static const struct {
    const char *name;
    enum ust_kind kind;
    bool has_status; /* 0: success */
} ust_rows[] = {
    {"lttng_ust_pthread:pthread_mutex_lock_req", UST_REQUEST, false},
    {"lttng_ust_pthread:pthread_mutex_lock_acq", UST_ACQUIRE, true},
    {"lttng_ust_pthread:pthread_mutex_trylock", UST_ACQUIRE, true},
    {"lttng_ust_pthread:pthread_mutex_unlock", UST_UNLOCK, true},
};

/* Takes an event of a mutex; *known: whether it is one. Returns false if out of memory. */
static bool take_ust(struct ust *ust, trail_string name, struct parsed *parsed, trail_string groups,
                     bool *known)
{
    struct import_stats *stats = ust->model->threads.stats;
    struct ust_event event = {.time_ns = parsed->event.time_ns};
    size_t i = 0, count = sizeof ust_rows / sizeof *ust_rows;
    trail_string status;
    while (i < count && !text_is(name, ust_rows[i].name))
        i++;
    *known = i < count;
    if (i == count)
        return true;
    event.kind = ust_rows[i].kind;
    if (!find_tid(groups, "vtid", &event.tid) || event.tid == 0 ||
        !find_address(parsed->fields, "mutex", &event.mutex)) {
        import_count_bad(stats);
        return true;
    }
    name_thread(parsed, groups, "procname", event.tid);
    stats->events++;
    bool failed = ust_rows[i].has_status && find_field(parsed->fields, "status", &status) &&
                  !scan_word(&status, "0");
    return failed || ust_take(ust, &event);
}

/* Returns false if out of memory. */
static bool take_event(struct ust *ust, trail_string name, trail_string groups, int64_t ns)
{
    struct import_model *model = ust->model;
    struct import_stats *stats = model->threads.stats;
    bool is_ust;
    struct parsed parsed = {.model = model};
    size_t i = 0, last = scan_find_last(groups, "}, {"), count = sizeof rows / sizeof *rows;
    parsed.event = (struct import_event){.time_ns = ns, .tid = IMPORT_TID_OF_CPU};
    parsed.fields = scan_part(groups, last == SIZE_MAX ? 0 : last + 3, groups.size);
    while (i < count && !text_is(name, rows[i].name))
        i++;
    if (i == count) {
        bool good = take_ust(ust, name, &parsed, groups, &is_ust);
        if (!is_ust)
            import_count_unknown(stats, name);
        return good;
    }
    parsed.event.kind = (uint8_t)rows[i].kind;
    if (!rows[i].parse) {
        take_state_dump(&parsed);
    } else if (!take_cpu(groups, &parsed.event.cpu) || !rows[i].parse(&parsed)) {
        import_count_bad(stats);
        return true;
    }
    stats->events++;
    return !rows[i].parse || import_model_put(model, &parsed.event);
}

int import_ctf_text(trail_source *source, struct import_model *model, trail_error *err)
{
    struct lines lines = {.source = source, .err = err};
    struct import_stats *stats = model->threads.stats;
    trail_string line, name;
    int64_t ns;
    struct ust ust;
    bool good = true;
    ust_init(&ust, model);
    while (good && lines_next(&lines, &line)) {
        stats->lines++;
        if (take_header(&line, &ns, &name))
            good = take_event(&ust, name, line, ns);
        else if (line.size > 0)
            import_count_unreadable(stats);
    }
    ust_free(&ust);
    lines_free(&lines);
    if (lines.failed)
        return -1;
    return good ? 0 : error_no_memory(err);
}
