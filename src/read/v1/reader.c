/*
 * v1, reader: Go 1.5 to 1.21 behind the public interface. Its verdict covers the whole file, so the
 * file is read several times, and ordinary events are not stored:
 *
 *   index    a sweep over the bytes as they arrive (v1_index)
 *   collect  merge -> check, no output: the verdict, and notes (v1_merge, v1_order, v1_check)
 *   verify   merge -> final order -> check; only if the final order may be judged differently:
 *            exits that move past other events, futile wake-ups
 *   emit     merge -> final order -> check -> convert, batch by batch (v1_convert)
 *
 * Partial: everything readable in a bad trace is delivered before the error. If not strict, the
 * index continues after damage, repairs are made as with that option, and the trace is converted
 * twice, so that sums exclude states with an unknown end (v1_shown). If strict, the emitting pass
 * meets the error of the judging pass at the same place and stops there. Without a Frequency record
 * 2.5 GHz / 64 is assumed.
 *
 * Each pass makes the same repairs; they are recorded once:
 *
 *   no event is ready      the goroutine of the earliest waiting event (by time, then by first
 *                          appearance of the P) is put into the state that it needs (v1_frontier)
 *   time runs backwards    the event gets the time of the one before it (v1_order)
 *   impossible exit time   the exit of a system call keeps its record's time (v1_order)
 *   contradiction          the states of G and P are corrected, the event is kept (v1_check)
 */
#include <stdlib.h>

#include "base/error.h"
#include "read/reader.h"
#include "read/v1/check.h"
#include "read/v1/convert.h"

#define BATCH_EVENTS      512
#define ASSUMED_FREQUENCY 39062500
#define PATIENCE_NS       1e6 /* how far a waiting P may be behind, see repair_with_patience */

enum state { STATE_NEW, STATE_EMITTING, STATE_LAST, STATE_ENDED, STATE_FAILED };

struct v1_reader {
    trail_reader base;
    enum state state;
    bool newer_rules; /* P2 of §3 */
    struct v1_format format;
    struct v1_index index;
    struct v1_gs gs;
    struct v1_repairs repairs;
    struct v1_notes notes;
    struct v1_order order;
    struct v1_check check;
    struct v1_shown shown; /* used if is_repaired() */
    struct v1_convert convert;
    struct v1_clock clock;
    uint64_t start_stack_id; /* 1.5: the last ID assigned to a start stack */
    struct idmap pc_stacks;  /* 1.5: start PC -> handle of its stack */
    trail_error early_end;   /* partial: what is wrong, reported at the end; time in ticks */
    trail_error fault;       /* of the last judging pass; time in ticks */
    trail_error failure;     /* reported after everything before it is delivered */
    trail_v1_event *view;    /* BATCH_EVENTS events, in TRAIL_VIEW_V1 */
    size_t view_count;
    trail_string_handle stw_texts[V1_STW_REASONS]; /* created on first use */
};

static int fail(struct v1_reader *r, const trail_error *err)
{
    r->failure = *err;
    trail_reader_stats *stats = &r->base.stats;
    if (err->offset >= 0 && (uint64_t)err->offset < stats->good_bytes)
        stats->good_bytes = (uint64_t)err->offset;
    if (r->failure.time_ns != TRAIL_NOWHERE)
        r->failure.time_ns = v1_clock_ns(&r->clock, r->failure.time_ns);
    r->state = STATE_FAILED;
    return -1;
}

static bool is_fault(const trail_error *err)
{
    return err->code != TRAIL_OK;
}

static int fail_plain(struct v1_reader *r, trail_code code, const char *message)
{
    trail_error err;
    error_set(&err, code, "%s", message);
    return fail(r, &err);
}

static int no_memory(struct v1_reader *r)
{
    return fail_plain(r, TRAIL_NO_MEMORY, "out of memory while reading the trace");
}

/* MARK: Stacks of 1.5 files, which have no symbols (§3.7) */

static void symbolize_frame(struct v1_reader *r, trail_frame *frame)
{
    const trail_reader_options *options = &r->base.options;
    const char *function = NULL, *file = NULL;
    uint64_t line = 0;
    if (!options->symbolize ||
        !options->symbolize(options->symbolize_context, frame->pc - 1, &function, &file, &line))
        return;
    struct tables *tables = &r->base.tables;
    frame->function = function ? tables_extra_string(tables, function, strlen(function)) : 0;
    frame->file = file ? tables_extra_string(tables, file, strlen(file)) : 0;
    frame->line = line;
}

static void symbolize_all(struct v1_reader *r)
{
    struct tables *tables = &r->base.tables;
    for (size_t i = 0; i < tables->frame_count; i++) {
        trail_frame *frame = &tables->frames[i];
        size_t first = (size_t)(uintptr_t)idmap_find(&tables->pc_frames, frame->pc);
        if (first > 0 && first - 1 < i)
            *frame = tables->frames[first - 1];
        else
            symbolize_frame(r, frame);
    }
}

/* Creates the start stack of a goroutine in a 1.5 file: one return address, PC + 1. */
static int add_start_stack(struct v1_reader *r, uint64_t pc)
{
    struct tables *tables = &r->base.tables;
    const uint64_t raw[4] = {pc + 1, 0, 0, 0};
    if (pc == 0 || idmap_find(&r->pc_stacks, pc))
        return 0;
    enum table_result result = TABLE_DUPLICATE;
    bool known_pc = idmap_find(&tables->pc_frames, pc + 1) != NULL;
    /* Any ID that the file does not use; counting down avoids repeated attempts. */
    while (result == TABLE_DUPLICATE)
        result = tables_add_stack(tables, --r->start_stack_id, raw, 1);
    uintptr_t handle = tables->stack_count - 1;
    if (result != TABLE_OK || !idmap_put(&r->pc_stacks, pc, (void *)handle))
        return no_memory(r);
    if (!known_pc)
        symbolize_frame(r, &tables->frames[tables->frame_count - 1]);
    return 0;
}

/* MARK: Index */

/* Whether everything readable is delivered before the error, with repairs. */
static bool is_lenient(const struct v1_reader *r)
{
    return r->base.options.partial && !r->base.options.strict;
}

/*
 * Where events are lost, others contradict earlier ones: only with repairs can they be shown. The
 * frequency comes after the events: a trace without it was cut, perhaps between two records.
 */
static void count_holes(struct v1_reader *r)
{
    if (!r->index.has_frequency)
        r->index.cut = r->repairs.enabled = true;
    for (size_t i = 0; i < r->index.hole_count; i++) {
        const struct v1_hole *hole = &r->index.holes[i];
        if (hole->text)
            continue;
        r->base.stats.holes += hole->end < r->base.stats.bytes; /* else the trace was cut */
        r->base.stats.lost_bytes += hole->end - hole->begin;
        r->repairs.enabled = true;
    }
}

static int read_index(struct v1_reader *r)
{
    trail_error err;
    v1_format_init(&r->format, r->base.version, r->newer_rules);
    if (!tables_reset(&r->base.tables))
        return no_memory(r);
    const bool salvage = is_lenient(r);
    int result =
        v1_index_build(&r->index, &r->format, r->base.source, &r->base.tables, salvage, &err);
    trail_reader_stats *stats = &r->base.stats;
    stats->next_trace = r->index.next_trace;
    stats->bytes = stats->next_trace >= 0 ? (uint64_t)stats->next_trace
                   : r->index.padded      ? r->index.end
                                          : v1_input_size(&r->index.input);
    stats->wire_events = r->index.timed;
    stats->good_bytes = r->index.end < stats->bytes ? r->index.end : stats->bytes;
    stats->strings = r->base.tables.string_ids.count;
    stats->stacks = r->base.tables.stack_ids.count;
    stats->cpu_samples = r->index.sample_count;
    stats->text_bytes = r->index.text_bytes;
    stats->text_offset = r->index.text_offset;
    if (salvage)
        count_holes(r);
    if (result < 0) {
        if (!r->base.options.partial || err.code == TRAIL_NO_MEMORY)
            return fail(r, &err);
        r->early_end = err;
    }
    uint64_t stack, string;
    bool is_file;
    /* Go treats a frame whose strings are missing as one without names. */
    (void)tables_resolve_frames(&r->base.tables, &stack, &string, &is_file);
    if (r->base.version < 7)
        symbolize_all(r);
    return 0;
}

static int set_clock(struct v1_reader *r)
{
    bool assume = r->base.options.partial;
    int64_t frequency = r->index.frequency;
    if (!r->index.has_frequency && !assume)
        return fail_plain(r, TRAIL_TRUNCATED, "no EvFrequency event: the trace has no end");
    if (r->index.has_frequency && frequency <= 0 && !assume)
        return fail_plain(r, TRAIL_TIME_ORDER,
                          "time stamps out of order: the trace's frequency is not positive");
    if (frequency <= 0) {
        frequency = ASSUMED_FREQUENCY;
        r->base.stats.frequency_assumed = true;
        if (!is_fault(&r->early_end))
            error_set(&r->early_end, TRAIL_TRUNCATED, "the trace has no end: %s",
                      r->index.has_frequency ? "its frequency is not positive"
                                             : "no EvFrequency event");
    }
    r->clock.ns_per_tick = 1e9 / (double)frequency;
    return 0;
}

/* MARK: Passes */

static bool is_repaired(const struct v1_reader *r)
{
    return r->repairs.count > 0 || r->index.cut || v1_index_is_damaged(&r->index);
}

static int begin_pass(struct v1_reader *r, bool replay, bool judging, bool fast)
{
    v1_check_fini(&r->check);
    v1_order_fini(&r->order);
    r->repairs.record = judging;
    if (judging) {
        r->repairs.count = r->repairs.list_count = 0;
        memset(r->repairs.by_kind, 0, sizeof r->repairs.by_kind);
    }
    const struct v1_order_setup setup = {
        .index = &r->index,
        .gs = &r->gs,
        .repairs = &r->repairs,
        .notes = &r->notes,
        .global_keeps_g = r->newer_rules || r->base.options.view == TRAIL_VIEW_EVENTS,
        .removes = !r->newer_rules,
        .replay = replay,
        .note_calls = judging,
        .go_on = !r->base.options.partial,
        .fast = fast,
    };
    int result = v1_order_init(&r->order, &setup);
    v1_check_init(&r->check, &r->order.merge, &r->base.tables, &r->repairs, r->base.options.strict);
    return result < 0 ? fail(r, &r->order.error) : 0;
}

/* Counts the events that a pass would deliver, without converting them. */
struct tally {
    uint64_t type[V1_TYPE_MASK + 1];
    uint64_t events;
    bool started;      /* the first Gomaxprocs was seen */
    uint64_t silent;   /* goroutines created before it */
    uint64_t snapshot; /* of these: no events before it */
};

static void tally_start(struct tally *tally, const struct v1_event *ev)
{
    switch (ev->type) {
    case V1_Gomaxprocs:
        tally->started = true;
        break;
    case V1_GoCreate:
        tally->silent++;
        tally->snapshot++;
        ev->key->snapshot = true;
        break;
    case V1_GoStart:
    case V1_GoWaiting:
    case V1_GoInSyscall:
        if (ev->gs->snapshot)
            tally->snapshot--;
        ev->gs->snapshot = false;
        break;
    default:
        break;
    }
}

static inline void tally_add(struct tally *tally, const struct v1_event *ev)
{
    tally->events++;
    tally->type[ev->type]++;
    if (__builtin_expect(!tally->started, 0))
        tally_start(tally, ev);
}

/* Returns the number of converted events by the rules of §4.3. */
static uint64_t tally_converted(const struct tally *tally, const struct v1_notes *notes)
{
    if (tally->events == 0)
        return 1;
    uint64_t count = tally->events + 2 - tally->type[V1_GoSysBlock] - tally->type[V1_FutileWakeup];
    count += tally->type[V1_GoStartLabel] + tally->type[V1_GoSysCall] - notes->blocking_count;
    count -= tally->silent;
    return tally->started ? count - 1 + tally->snapshot : count;
}

enum outcome {
    OUTCOME_GOOD,
    OUTCOME_RETRY,         /* fast pass only: the exact merge must decide */
    OUTCOME_DISORDER,      /* order or times are wrong */
    OUTCOME_CONTRADICTION, /* a check failed */
    OUTCOME_BROKEN         /* cannot continue: no memory, or a read error */
};

static enum outcome outcome_of(struct v1_reader *r, int result, const trail_error **fault)
{
    struct v1_order *order = &r->order;
    *fault = result < 0                     ? &order->error
             : is_fault(&order->time_error) ? &order->time_error
             : is_fault(&order->exit_error) ? &order->exit_error
                                            : &r->check.error;
    if (!is_fault(*fault))
        return OUTCOME_GOOD;
    if ((*fault)->code == TRAIL_NO_MEMORY || (*fault)->code == TRAIL_IO)
        return OUTCOME_BROKEN;
    return *fault == &r->check.error ? OUTCOME_CONTRADICTION : OUTCOME_DISORDER;
}

/*
 * Runs a judging pass to its end. As in Go, errors of the order take precedence over errors of
 * times, exits of system calls, and checks, wherever they are in the file.
 */
static enum outcome judge(struct v1_reader *r, bool replay, bool fast, struct tally *tally)
{
    *tally = (struct tally){0};
    error_clear(&r->failure);
    if (begin_pass(r, replay, true, fast) < 0)
        return OUTCOME_BROKEN;
    struct v1_order *order = &r->order;
    struct v1_event *ev;
    const bool starts = r->base.version < 7;
    bool checking = true;
    uint64_t good = 0;
    int result;
    const struct v1_short_cut cut = {
        .notes = &r->notes,
        .last_ticks = &order->last_ticks,
        .types = tally->type,
        .events = &tally->events,
    };
    while ((result = v1_order_next(order, &ev)) == 1) {
        if (__builtin_expect(checking && v1_check_event(&r->check, ev) < 0, 0)) {
            checking = false;
            good = good ? good : v1_merge_done_before(&order->merge);
        }
        if (__builtin_expect(order->at_fault && !good, 0))
            good = v1_merge_done_before(&order->merge);
        if (__builtin_expect(starts, 0) && ev->type == V1_GoCreate &&
            add_start_stack(r, ev->arg[1]) < 0)
            return OUTCOME_BROKEN;
        tally_add(tally, ev);
        order->merge.short_cut = tally->started && checking && !order->at_fault ? &cut : NULL;
    }
    if (result == V1_RETRY)
        return OUTCOME_RETRY;
    r->clock.first_ticks = order->first_ticks;
    r->base.stats.misused = is_repaired(r) ? 0 : r->check.misused;
    const trail_error *fault;
    enum outcome outcome = outcome_of(r, result, &fault);
    r->base.stats.good_bytes = outcome == OUTCOME_GOOD ? r->index.end
                               : good                  ? good
                                                       : v1_merge_done_before(&order->merge);
    r->fault = *fault;
    if (outcome != OUTCOME_GOOD)
        fail(r, fault);
    return outcome;
}

/*
 * When an event that another waits for is lost, its P waits until no other P can continue, and all
 * its later events are late. Repeats the repair with limited patience, and keeps the result if it
 * needs fewer repairs.
 */
static enum outcome repair_with_patience(struct v1_reader *r, enum outcome outcome,
                                         struct tally *tally)
{
    uint64_t repairs = r->repairs.count;
    if (outcome == OUTCOME_BROKEN || r->repairs.by_kind[TRAIL_REPAIR_SEQUENCE] == 0)
        return outcome;
    double ticks = PATIENCE_NS / r->clock.ns_per_tick;
    r->repairs.patience = ticks >= 1 && ticks < 1e18 ? (int64_t)ticks : 1;
    v1_notes_fini(&r->notes);
    outcome = judge(r, false, false, tally);
    if (outcome == OUTCOME_BROKEN || r->repairs.count < repairs)
        return outcome;
    r->repairs.patience = 0;
    v1_notes_fini(&r->notes);
    return judge(r, false, false, tally);
}

/* Judges the order of the merge, and repairs it if that is enabled. */
static enum outcome judge_order(struct v1_reader *r, struct tally *tally)
{
    bool may_be_fast =
        r->base.version >= 7 && !r->repairs.enabled && (r->newer_rules || r->index.futile == 0);
    enum outcome outcome = may_be_fast ? judge(r, false, true, tally) : OUTCOME_RETRY;
    if (outcome != OUTCOME_GOOD && outcome != OUTCOME_BROKEN)
        outcome = judge(r, false, false, tally);
    return repair_with_patience(r, outcome, tally);
}

/* Judges the final order. Returns 0 if there is something to emit. */
static int judge_all(struct v1_reader *r, struct tally *tally)
{
    const trail_reader_options *options = &r->base.options;
    enum outcome outcome = judge_order(r, tally);
    if ((outcome == OUTCOME_DISORDER || outcome == OUTCOME_CONTRADICTION) && is_lenient(r)) {
        r->early_end = r->fault;
        r->repairs.enabled = true;
        v1_notes_fini(&r->notes);
        outcome = judge_order(r, tally);
    }
    if (r->notes.removed_count > 0)
        r->notes.irregular = true;
    if (r->notes.irregular && (outcome == OUTCOME_GOOD || outcome == OUTCOME_CONTRADICTION ||
                               (outcome == OUTCOME_DISORDER && options->partial)))
        outcome = judge(r, true, false, tally);
    bool delivers = options->partial && !options->verdict_only && outcome != OUTCOME_BROKEN;
    return outcome == OUTCOME_GOOD || delivers ? 0 : -1;
}

/* Converts a difference of ticks to ns; damaged traces have differences that exceed int64_t. */
static int64_t shift_ns(const struct v1_clock *clock, int64_t ticks)
{
    double ns = (double)ticks * clock->ns_per_tick;
    if (ns >= 9.2e18)
        return INT64_MAX;
    return ns <= -9.2e18 ? INT64_MIN : (int64_t)ns;
}

static void convert_repairs(struct v1_reader *r)
{
    for (size_t i = 0; i < r->repairs.list_count; i++) {
        trail_repair *repair = &r->repairs.list[i];
        repair->time_ns = v1_clock_ns(&r->clock, repair->time_ns);
        repair->shift_ns = shift_ns(&r->clock, repair->shift_ns);
    }
    r->base.stats.repairs = r->repairs.count;
    memcpy(r->base.stats.repairs_by_kind, r->repairs.by_kind, sizeof r->repairs.by_kind);
}

/* Whether the conversion may fail, late in the trace, at a position known only by converting. */
static bool must_convert(const struct v1_reader *r)
{
    return is_repaired(r) || (r->newer_rules && r->index.futile > 0);
}

static int begin_convert(struct v1_reader *r)
{
    struct v1_shown *shown = is_repaired(r) ? &r->shown : NULL;
    bool good = v1_convert_init(&r->convert, &r->base.tables, &r->notes, &r->clock, r->base.version,
                                !r->newer_rules, shown, &r->pc_stacks);
    r->convert.open_holes = r->index.cut;
    return good ? 0 : no_memory(r);
}

/* Events are lost: converts the trace without output, to find the states whose end is lost too. */
static int collect_shown(struct v1_reader *r)
{
    struct v1_event *ev;
    int result;
    v1_shown_collect(&r->shown);
    if (begin_pass(r, true, false, false) < 0 || begin_convert(r) < 0)
        return -1;
    while ((result = v1_order_next(&r->order, &ev)) > 0) {
        r->convert.out_count = 0;
        if (v1_check_event(&r->check, ev) < 0)
            return fail(r, &r->check.error);
        if (v1_convert_event(&r->convert, ev) < 0)
            return fail(r, &r->convert.error);
    }
    v1_convert_fini(&r->convert);
    if (result < 0)
        return fail(r, &r->order.error);
    return v1_shown_replay(&r->shown) ? 0 : no_memory(r);
}

/* Prepares index and verdict before the first event. Returns 0 if there is something to emit. */
static int prepare(struct v1_reader *r)
{
    struct tally tally;
    r->repairs.enabled = r->base.options.repair;
    if (read_index(r) < 0)
        return -1;
    if (r->index.timed == 0) {
        if (is_fault(&r->early_end))
            return fail(r, &r->early_end);
        if (!r->newer_rules || r->index.batch_count == 0)
            return fail_plain(r, TRAIL_TRUNCATED, "trace is empty");
    }
    if (set_clock(r) < 0 || judge_all(r, &tally) < 0)
        return -1;
    if (r->check.misused > 0)
        r->base.options.verdict_only = false;
    convert_repairs(r);
    error_clear(&r->failure);
    r->state = STATE_EMITTING;
    bool view = r->base.options.view == TRAIL_VIEW_V1;
    if (is_repaired(r) && !view && collect_shown(r) < 0)
        return -1;
    if (begin_pass(r, true, false, false) < 0)
        return -1;
    if (view && !(r->view = malloc(BATCH_EVENTS * sizeof *r->view)))
        return no_memory(r);
    if (begin_convert(r) < 0)
        return -1;
    /* If not skipped, the conversion counts them. */
    if (r->base.options.verdict_only && !must_convert(r))
        r->base.stats.events = view ? tally.events : tally_converted(&tally, &r->notes);
    return 0;
}

/* MARK: Emitting */

static trail_string_handle view_stw(struct v1_reader *r, uint64_t kind)
{
    const char *text = v1_stw_kind(kind, r->base.version);
    size_t slot = kind < V1_STW_REASONS ? (size_t)kind : 0;
    if (!text)
        return 0;
    if (r->stw_texts[slot] == 0)
        r->stw_texts[slot] = tables_extra_string(&r->base.tables, text, strlen(text));
    return r->stw_texts[slot];
}

static trail_string_handle view_string(const struct v1_reader *r, uint64_t id)
{
    uint32_t handle;
    return tables_string(&r->base.tables, id, &handle) ? handle : 0;
}

static void view_texts(struct v1_reader *r, const struct v1_event *ev, trail_v1_event *out)
{
    switch (ev->type) {
    case V1_STWStart:
        out->text[0] = view_stw(r, ev->arg[0]);
        break;
    case V1_GoStartLabel:
    case V1_UserTaskCreate:
    case V1_UserRegion:
        out->text[0] = view_string(r, ev->arg[2]);
        break;
    case V1_UserLog:
        out->text[0] = view_string(r, ev->arg[1]);
        out->text[1] = v1_log_text(&r->base.tables, ev);
        break;
    case V1_UserTaskEnd:
        out->arg[1] = out->arg[2] = out->arg[3] = 0;
        break;
    default:
        break;
    }
}

static void view_event(struct v1_reader *r, const struct v1_event *ev)
{
    trail_v1_event *out = &r->view[r->view_count++];
    *out = (trail_v1_event){
        .time_ns = v1_clock_ns(&r->clock, ev->ticks),
        .proc = ev->proc,
        .goroutine = (int64_t)ev->g,
        .offset = (int64_t)ev->offset,
        .arg = {ev->arg[0], ev->arg[1], ev->arg[2], ev->arg[3]},
        .type = ev->type,
    };
    out->stack = ev->type == V1_GoStart
                     ? v1_start_stack(&r->base.tables, &r->pc_stacks, r->base.version, ev->stack)
                     : v1_stack_handle(&r->base.tables, ev->stack);
    view_texts(r, ev, out);
}

static int end_of_order(struct v1_reader *r)
{
    r->state = STATE_LAST;
    if (is_fault(&r->early_end))
        return fail(r, &r->early_end);
    if (r->base.options.view == TRAIL_VIEW_EVENTS && v1_convert_end(&r->convert) < 0)
        return fail(r, &r->convert.error);
    return 0;
}

/* Passes one event through the stages. Returns 1, 0 at the end, -1 on an error. */
static int emit_one(struct v1_reader *r)
{
    struct v1_event *ev;
    int result = v1_order_next(&r->order, &ev);
    if (result == 0)
        return end_of_order(r);
    if (result < 0)
        return fail(r, is_fault(&r->early_end) ? &r->early_end : &r->order.error);
    if (v1_check_event(&r->check, ev) < 0)
        return fail(r, &r->check.error);
    if (r->base.options.view == TRAIL_VIEW_V1 && ev->type != V1_LOST)
        view_event(r, ev);
    else if (r->base.options.view == TRAIL_VIEW_EVENTS && v1_convert_event(&r->convert, ev) < 0)
        return fail(r, &r->convert.error);
    return 1;
}

/* Fills the batch. Returns its number of events, 0 at the end, -1 with the error set. */
static long fill(struct v1_reader *r, const size_t *count)
{
    if (r->state == STATE_NEW)
        (void)prepare(r);
    const bool verdict_only = r->base.options.verdict_only;
    if (r->state == STATE_EMITTING && verdict_only && !must_convert(r)) {
        r->state = STATE_ENDED;
        if (is_fault(&r->early_end))
            fail(r, &r->early_end);
    }
    r->convert.out_count = r->view_count = 0;
    while (r->state == STATE_EMITTING && *count < BATCH_EVENTS) {
        (void)emit_one(r);
        if (verdict_only) {
            r->base.stats.events += *count;
            r->convert.out_count = r->view_count = 0;
        }
    }
    if (*count > 0 && !verdict_only) {
        r->base.stats.events += *count;
        return (long)*count;
    }
    if (r->state != STATE_FAILED)
        return 0;
    r->base.error = r->failure;
    return -1;
}

static long v1_next_batch(trail_reader *reader, const trail_event **events)
{
    struct v1_reader *r = (struct v1_reader *)reader;
    if (reader->options.view != TRAIL_VIEW_EVENTS)
        return error_set(&reader->error, TRAIL_USAGE, "the reader was opened for v1 events");
    long count = fill(r, &r->convert.out_count);
    *events = r->convert.out;
    return count;
}

static long v1_next_v1_batch(trail_reader *reader, const trail_v1_event **events)
{
    struct v1_reader *r = (struct v1_reader *)reader;
    long count = fill(r, &r->view_count);
    *events = r->view;
    return count;
}

static size_t v1_repairs_made(const trail_reader *reader, const trail_repair **repairs)
{
    const struct v1_reader *r = (const struct v1_reader *)reader;
    *repairs = r->repairs.list;
    return r->repairs.list_count;
}

static void v1_close(trail_reader *reader)
{
    struct v1_reader *r = (struct v1_reader *)reader;
    v1_convert_fini(&r->convert);
    v1_shown_fini(&r->shown);
    v1_check_fini(&r->check);
    v1_order_fini(&r->order);
    v1_notes_fini(&r->notes);
    v1_gs_fini(&r->gs);
    v1_index_fini(&r->index);
    idmap_free(&r->pc_stacks);
    tables_free(&reader->tables);
    free(r->repairs.list);
    free(r->view);
    free(r);
}

trail_reader *v1_reader_open(trail_source *source, int version, const trail_reader_options *options,
                             trail_error *err)
{
    static const struct reader_ops ops = {
        .next_batch = v1_next_batch,
        .next_v1_batch = v1_next_v1_batch,
        .repairs = v1_repairs_made,
        .close = v1_close,
    };
    struct v1_reader *r = calloc(1, sizeof *r);
    if (!r || !tables_reset(&r->base.tables)) {
        free(r);
        error_no_memory(err);
        return NULL;
    }
    r->base.ops = &ops;
    r->base.source = source;
    r->base.options = *options;
    r->base.version = version;
    r->newer_rules =
        version >= 11 && options->view != TRAIL_VIEW_V1 && options->verdict != TRAIL_VERDICT_GO121;
    error_clear(&r->base.error);
    error_clear(&r->early_end);
    error_clear(&r->failure);
    r->base.stats.text_offset = r->base.stats.next_trace = -1;
    v1_gs_init(&r->gs);
    r->clock.ns_per_tick = 1;
    return &r->base;
}
