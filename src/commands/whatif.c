/*
 * trail whatif: how long the program would have taken under changed conditions.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/plain.h"
#include "base/utf8.h"
#include "replay/candidates.h"
#include "replay/plan.h"
#include "replay/schedule.h"
#include "replay/trial.h"
#include "ui/analysis.h"
#include "ui/follow_up.h"
#include "ui/table.h"
#include "ui/trace_file.h"
#include "ui/values.h"

enum {
    OPT_FREE = 1,
    OPT_HOLD,
    OPT_FASTER,
    OPT_CPUS,
    OPT_IO,
    OPT_NO_GC,
    OPT_POOL,
    OPT_GOAL,
};

/* Stalls of more than this fraction of the CPUs' time. */
#define STALL_SURE 0.1
/* Smaller gains, as a fraction of the goal, are not listed. */
#define GAIN_LEAST 0.005

enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };
static const char *const confidence_words[] = {"low", "medium", "high"};

enum { COUNT_MOST = 65536 }; /* CPUs, or threads of a pool */

enum { REASONS = 8, REASON_SIZE = 256 };

struct request {
    struct analysis analysis;
    struct change changes[REPLAY_CHANGES];
    size_t change_count;
    struct replay_goal goal;
    char *texts[REPLAY_CHANGES + 1]; /* copies of names */
    size_t text_count;
    size_t limit;
    const char *output; /* where the replay goes as a trace; NULL: nowhere */

    struct trial trial;
    enum confidence confidence;
    char reasons[REASONS][REASON_SIZE];
    size_t reason_count;
};

/* A change and what it gains. */
struct answer {
    struct change change;
    bool known;
    double then, gain; /* gain: positive is better */
};

static const struct option rows[] = {
    {0, "free", "LOCK", "this lock never makes a thread wait", TAKE(OPT_FREE)},
    {0, "hold", "LOCK=0.5x", "this lock is held half as long", TAKE(OPT_HOLD)},
    {0, "faster", "NAME=2x", "this function, region or start function runs twice as fast",
     TAKE(OPT_FASTER)},
    {0, "cpus", "N", "with N CPUs", TAKE(OPT_CPUS)},
    {0, "io", "NAME=0.2x", "I/O and sleeps of this peer, file, kind or function take a fifth",
     TAKE(OPT_IO)},
    {0, "pool", "NAME=N", "N threads or goroutines of this start function share its work",
     TAKE(OPT_POOL)},
    {0, "no-gc", NULL, "Go: without the work and pauses of the garbage collector", TAKE(OPT_NO_GC)},
    {0, "goal", "GOAL",
     "what to count: end, threads:NAME, task:NAME:p99, rate:REGION or waits (default: end)",
     TAKE(OPT_GOAL), .values = "end waits"},
    {'n', "limit", "N", "at most N changes in the list (default 10; 0: all)",
     TO_LIMIT(struct request, limit), .expects = "a number"},
    {'o', "output", "FILE",
     "write the replay as a trace, to look at and to compare with trail diff",
     TO_TEXT(struct request, output)},
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

/* Returns a copy that lives as long as the request; NULL if out of memory. */
static char *keep(struct request *request, const char *value)
{
    char *copy = strdup(value);
    if (copy)
        request->texts[request->text_count++] = copy;
    return copy;
}

static int add_change(struct request *request, const struct change *change)
{
    if (request->change_count >= REPLAY_CHANGES)
        return usage_error(request->analysis.command, "at most %d changes at a time",
                           REPLAY_CHANGES);
    request->changes[request->change_count++] = *change;
    return EXIT_GOOD;
}

/* Parses "2x" or "0.5x". Returns false if it is neither. */
static bool parse_factor(const char *text, double *factor)
{
    char *end;
    errno = 0;
    *factor = strtod(text, &end);
    return errno == 0 && end != text && (strcmp(end, "x") == 0 || *end == '\0') &&
           *factor >= 0.001 && *factor <= 1000;
}

/* Parses a number of CPUs or threads. Returns false if it is none. */
static bool parse_count(const char *text, unsigned *count)
{
    int64_t number;
    if (!parse_id(text, "", &number) || number < 1 || number > COUNT_MOST)
        return false;
    *count = (unsigned)number;
    return true;
}

static bool has_pool(const struct request *request)
{
    for (size_t i = 0; i < request->change_count; i++)
        if (request->changes[i].kind == CHANGE_POOL)
            return true;
    return false;
}

/* Parses NAME=FACTOR, or NAME=N for a pool; the name may contain '='. */
static int parse_change(struct request *request, enum change_kind kind, const char *value)
{
    static const char *const expected[CHANGE_KINDS] = {
        [CHANGE_HOLD] = "a name and factor from 0.001 to 1000, as in --hold=stats_mu=0.5x",
        [CHANGE_FASTER] = "a name and factor from 0.001 to 1000, as in --faster=parse=2x",
        [CHANGE_IO] = "a name and factor from 0.001 to 1000, as in --io=db=0.2x",
        [CHANGE_POOL] = "a start function and a number of threads, as in --pool=worker=16",
    };
    struct change change = {.kind = kind};
    if (request->change_count >= REPLAY_CHANGES)
        return add_change(request, &change);
    if (kind == CHANGE_POOL && has_pool(request))
        return usage_error(request->analysis.command, "one --pool at a time");
    char *name = keep(request, value);
    char *sign = name ? strrchr(name, '=') : NULL;
    if (!name)
        return exit_no_memory();
    if (!sign || sign == name ||
        !(kind == CHANGE_POOL ? parse_count(sign + 1, &change.threads)
                              : parse_factor(sign + 1, &change.factor)))
        return usage_error(request->analysis.command, "'%s' is not %s", value, expected[kind]);
    *sign = '\0';
    change.name = name;
    if (kind == CHANGE_FASTER)
        change.factor = 1 / change.factor;
    return add_change(request, &change);
}

/* Parses "task:NAME:p99", "rate:REGION", "threads:NAME", "end" or "waits". */
static int parse_goal(struct request *request, const char *value)
{
    struct replay_goal *goal = &request->goal;
    char *name, *colon, *end;
    if (goal->name)
        return usage_error(request->analysis.command, "one --goal at a time");
    if (strcmp(value, "end") == 0 || strcmp(value, "waits") == 0) {
        goal->of = *value == 'e' ? GOAL_END : GOAL_WAITS;
        return EXIT_GOOD;
    }
    name = keep(request, value);
    if (!name)
        return exit_no_memory();
    if (strncmp(name, "rate:", 5) == 0 && name[5]) {
        goal->of = GOAL_RATE;
        goal->name = name + 5;
        return EXIT_GOOD;
    }
    if (strncmp(name, "threads:", 8) == 0 && name[8]) {
        goal->of = GOAL_THREADS;
        goal->name = name + 8;
        return EXIT_GOOD;
    }
    colon = strrchr(name, ':');
    if (strncmp(name, "task:", 5) != 0 || colon <= name + 5 || colon[1] != 'p')
        return usage_error(request->analysis.command,
                           "'%s' is not a goal: end, threads:NAME, task:NAME:p99, rate:REGION or "
                           "waits",
                           value);
    goal->of = GOAL_TASK;
    goal->name = name + 5;
    goal->quantile = strtod(colon + 2, &end) / 100;
    *colon = '\0';
    if (end == colon + 2 || *end || !(goal->quantile >= 0 && goal->quantile <= 1))
        return usage_error(request->analysis.command,
                           "'%s' has no quantile from p0 to p100 at its end", value);
    return EXIT_GOOD;
}

static int parse_option(void *context, int id, const char *value)
{
    struct request *request = context;
    struct change cpus = {.kind = CHANGE_CPUS};
    switch (id) {
    case OPT_FREE:
        return add_change(request, &(struct change){.kind = CHANGE_FREE, .name = value});
    case OPT_HOLD:
        return parse_change(request, CHANGE_HOLD, value);
    case OPT_FASTER:
        return parse_change(request, CHANGE_FASTER, value);
    case OPT_IO:
        return parse_change(request, CHANGE_IO, value);
    case OPT_CPUS:
        if (!parse_count(value, &cpus.cpus))
            return usage_error(request->analysis.command, "'%s' is not a number of CPUs", value);
        return add_change(request, &cpus);
    case OPT_POOL:
        return parse_change(request, CHANGE_POOL, value);
    case OPT_NO_GC:
        return add_change(request, &(struct change){.kind = CHANGE_NO_GC});
    default:
        return parse_goal(request, value);
    }
}

static int parse_request(struct request *request, int argc, char **argv)
{
    struct options options;
    int code = options_each(&options, request->analysis.command, argc, argv, parse_option, request);
    if (code == EXIT_GOOD && request->output && strcmp(request->output, "-") == 0)
        return usage_error(request->analysis.command,
                           "--output needs a file name: the answer is printed on stdout");
    if (code == EXIT_GOOD && request->output && has_pool(request))
        return usage_error(request->analysis.command,
                           "--output writes what the threads of the trace did: not with --pool");
    if (code == EXIT_GOOD && request->output)
        code = check_trace_output(&options, "trace", request->output);
    return code == EXIT_GOOD ? analysis_words(&request->analysis, &options) : code;
}

/* MARK: Text */

/* Returns the change as an option, quoted for a shell if needed. `buf` has FOLLOW_UP_SIZE bytes. */
static const char *option_shown(const struct change *change, char *buf)
{
    char text[FOLLOW_UP_SIZE / 2];
    return shell_word(change_option(change, text, sizeof text), buf);
}

/* Returns the value of the goal: "2.24 s" or "31.5 per second". */
static const char *value_text(const struct request *request, double value, char *buf)
{
    if (request->goal.of == GOAL_RATE)
        (void)snprintf(buf, SHOW_SIZE, "%.4g per second", value);
    else
        (void)show_duration_as(buf, (int64_t)value, DURATION_WORDS);
    return buf;
}

static const char *goal_text(const struct request *request, char *buf, size_t size)
{
    const struct chains *chains = request->trial.chains;
    const struct replay_goal *goal = &request->goal;
    if (goal->of == GOAL_TASK)
        (void)snprintf(buf, size, "p%g of the tasks '%s'", goal->quantile * 100, goal->name);
    else if (goal->of == GOAL_RATE)
        (void)snprintf(buf, size, "rate of the region '%s'", goal->name);
    else if (goal->of == GOAL_THREADS)
        (void)snprintf(buf, size, "until all %s of %s have done their work",
                       term(&request->analysis.vocabulary, TERM_tasks), goal->name);
    else if (goal->of == GOAL_WAITS)
        (void)snprintf(buf, size, "waits for other %s, in all",
                       term(&request->analysis.vocabulary, TERM_tasks));
    else {
        const struct chain_thread *thread = &chains->threads[chains->goal];
        trail_string name = analysis_text(&request->analysis, thread->name);
        (void)snprintf(buf, size, "up to the end of %s %" PRId64 " (%.*s)",
                       term(&request->analysis.vocabulary, TERM_task), thread->id,
                       (int)(name.size < 200 ? name.size : 200), name.data);
    }
    return plain_inside(buf, size);
}

/* MARK: Confidence */

static __attribute__((format(printf, 3, 4))) void
doubt(struct request *request, enum confidence most, const char *format, ...)
{
    va_list arguments;
    if (most < request->confidence)
        request->confidence = most;
    if (request->reason_count >= REASONS)
        return;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is right above. */
    (void)vsnprintf(request->reasons[request->reason_count++], REASON_SIZE, format, arguments);
    va_end(arguments);
}

/* How far the replay can be trusted, whatever the question. Returns false if out of memory. */
static bool doubt_trace(struct request *request)
{
    const struct chains *chains = request->trial.chains;
    int64_t real = replay_real_ns(chains);
    double all = (double)real * chains->cpus;
    double off = fabs(request->trial.off);
    doubt(request, off > TRIAL_OFF_SURE ? CONFIDENCE_LOW : CONFIDENCE_HIGH,
          "replayed unchanged, it takes %.1f %% %s than in the trace", off * 100,
          request->trial.off < 0 ? "less" : "more");
    if (all > 0 && (double)chains->late_ns > STALL_SURE * all) {
        char text[SHOW_SIZE];
        doubt(request, CONFIDENCE_MEDIUM,
              "threads were ready for %s while a CPU was free or another program had it; the "
              "replay repeats that unchanged",
              show_duration_as(text, chains->late_ns, DURATION_WORDS));
    }
    if (chains->readiness_inferred)
        doubt(request, CONFIDENCE_MEDIUM,
              "when threads were ready but not running is inferred: CPUs are not limited");
    trail_name stopped;
    if (!trial_may_be_stopped(chains, &stopped))
        return false;
    if (stopped != 0 && request->goal.of == GOAL_END) {
        trail_string name = utf8_first(analysis_text(&request->analysis, stopped), 80);
        doubt(request, CONFIDENCE_MEDIUM,
              "%.*s ran until the end. If it runs only until it is stopped, the program may end "
              "sooner; --goal=threads:NAME shows when other %s have done their work",
              (int)name.size, name.data, term(&request->analysis.vocabulary, TERM_tasks));
    }
    if (trial_misses_places(chains))
        doubt(request, CONFIDENCE_LOW,
              "%" PRIu64 " wake-ups come from threads that were not running: their times are kept",
              chains->unplaced);
    return true;
}

static void doubt_change(struct request *request, const struct change *change)
{
    bool certain;
    (void)plan_applies(request->trial.chains, change, &certain);
    switch (change->kind) {
    case CHANGE_FREE:
    case CHANGE_HOLD:
        if (!certain)
            doubt(
                request, CONFIDENCE_MEDIUM,
                "not all holders of '%.100s' are known: it is passed on in the order of the trace",
                change->name);
        break;
    case CHANGE_FASTER:
        if (!certain)
            doubt(request, CONFIDENCE_MEDIUM, "the time in '%.100s' is estimated from CPU samples",
                  change->name);
        break;
    case CHANGE_NO_GC:
        doubt(request, CONFIDENCE_LOW,
              "the gain may be larger or smaller: write barriers, caches, and page faults of new "
              "instead of reused memory are not modelled");
        break;
    case CHANGE_POOL:
        doubt(request, CONFIDENCE_MEDIUM,
              "when each piece of work was queued is not known: the gain is at most this");
        break;
    default:
        break;
    }
}

/* MARK: Asking */

static int greatest_first(const void *a, const void *b)
{
    const struct answer *x = a, *y = b;
    return ORDER(y->known, x->known) ?: ORDER(y->gain, x->gain);
}

/* Whether the candidate can be asked. Returns false if out of memory. */
static bool can_ask(const struct request *request, const struct change *candidate, bool *can)
{
    enum trial_pool verdict = TRIAL_POOL_GOOD;
    double off;
    *can = candidate->kind != CHANGE_POOL || !has_pool(request); /* one at a time */
    if (candidate->kind != CHANGE_POOL)
        return true;
    bool good = !*can || trial_pool(&request->trial, candidate, &verdict, &off);
    *can = *can && verdict == TRIAL_POOL_GOOD;
    return good;
}

/*
 * Tries each candidate on top of the request's changes, which yield `base`. *answers: those that
 * gain something, greatest first. Returns false if out of memory.
 */
static bool ask_each(struct request *request, const struct candidates *candidates, double base,
                     struct answer *answers, size_t *count)
{
    struct change changes[REPLAY_CHANGES];
    size_t had =
        request->change_count < REPLAY_CHANGES ? request->change_count : REPLAY_CHANGES - 1;
    *count = 0;
    if (had > 0)
        memcpy(changes, request->changes, had * sizeof *changes);
    for (size_t i = 0; i < candidates->count; i++) {
        struct answer *answer = &answers[*count];
        bool can;
        changes[had] = candidates->items[i];
        if (!can_ask(request, &changes[had], &can))
            return false;
        if (!can)
            continue;
        if (!trial_ask(&request->trial, changes, had + 1, &answer->then))
            return false;
        answer->change = candidates->items[i];
        answer->known = answer->then >= 0;
        answer->then = trial_as_now(&request->trial, answer->then);
        answer->gain = trial_gain(&request->trial, base, answer->then);
        if (answer->known && answer->gain >= GAIN_LEAST * trial_now(&request->trial))
            ++*count;
    }
    qsort(answers, *count, sizeof *answers, greatest_first);
    return true;
}

/* MARK: Cannot answer */

/* Explains why there is no answer. Returns the exit code. */
static __attribute__((format(printf, 2, 3))) int cannot_answer(const struct request *request,
                                                               const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is right above. */
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (request->analysis.json) {
        struct json json = analysis_json_begin(&request->analysis);
        json_string(&json, "cannot_answer", text);
        analysis_json_end(&json);
    } else {
        printf("Cannot answer: %s\n", plain_inside(text, sizeof text));
    }
    return EXIT_GOOD;
}

static int print_not_found(const struct request *request, const struct change *change)
{
    switch (change->kind) {
    case CHANGE_FREE:
    case CHANGE_HOLD:
        return usage_error(request->analysis.command,
                           "no lock '%s' is waited for in the trace; 'trail locks' lists them",
                           change->name);
    case CHANGE_FASTER:
        if (request->trial.chains->sample_count == 0)
            return cannot_answer(request,
                                 "no wait shows that '%s' runs, and the trace has no CPU samples. "
                                 "Record with --cpu-samples=100 (Go: with a CPU profile), or put a "
                                 "region around it.",
                                 change->name);
        return usage_error(
            request->analysis.command,
            "no CPU sample, stack or region has '%s'; 'trail profile' lists functions",
            change->name);
    case CHANGE_POOL:
        return usage_error(request->analysis.command,
                           "no start function '%s' in the trace; 'trail goroutines' lists them",
                           change->name);
    case CHANGE_IO:
        return usage_error(
            request->analysis.command,
            "no wait that ends from outside has '%s' in its name; 'trail latency' lists them",
            change->name);
    default:
        return usage_error(request->analysis.command, "the trace has no garbage collection");
    }
}

/* Returns EXIT_GOOD, and true in *good if the work of a pool can be divided. */
static int check_pool(const struct request *request, const struct change *change, bool *good)
{
    enum trial_pool verdict;
    double off;
    const char *tasks = term(&request->analysis.vocabulary, TERM_tasks);
    *good = false;
    if (!trial_pool(&request->trial, change, &verdict, &off))
        return exit_no_memory();
    switch (verdict) {
    case TRIAL_POOL_DECIDES:
        return cannot_answer(request,
                             "the goal is the end of '%.100s' itself, which a pool cannot move.",
                             change->name);
    case TRIAL_POOL_FEW:
        return cannot_answer(request,
                             "the trace does not show where one piece of work of '%.100s' ends and "
                             "the next begins. Put a region around each.",
                             change->name);
    case TRIAL_POOL_STUCK:
        return cannot_answer(request,
                             "if the %s of '%.100s' take their pieces of work in turn, they wait "
                             "for each other forever.",
                             tasks, change->name);
    case TRIAL_POOL_OFF:
        return cannot_answer(
            request,
            "if the %s of '%.100s' take their pieces of work in turn, it takes "
            "%.1f %% %s than in the trace: not all of them can do all of the work.",
            tasks, change->name, fabs(off) * 100, off < 0 ? "less" : "more");
    default:
        *good = true;
        return EXIT_GOOD;
    }
}

/* Returns EXIT_GOOD, and true in *good if the replay can answer questions. */
static int check(struct request *request, bool *good)
{
    const struct chains *chains = request->trial.chains;
    bool certain;
    *good = false;
    if (chains->too_long)
        return cannot_answer(request,
                             "the trace has too many events for a replay. Choose a part with "
                             "--from and --to.");
    if (chains->goal == CHAIN_NONE)
        return cannot_answer(request, "nothing ran.");
    if (!trial_begin(&request->trial, chains, &request->goal))
        return exit_no_memory();
    if (request->trial.off >= 1)
        return cannot_answer(request, "replayed unchanged, the threads wait for each other "
                                      "forever: the trace does not show all wake-ups.");
    if (fabs(request->trial.off) > TRIAL_OFF_MOST)
        return cannot_answer(
            request,
            "replayed unchanged, it takes %.1f %% %s than in the trace: the model does not explain "
            "how its threads got CPUs or locks. Try a recording on an idle machine.",
            fabs(request->trial.off) * 100, request->trial.off < 0 ? "less" : "more");
    if (request->trial.unchanged < 0 && request->goal.of == GOAL_THREADS)
        return usage_error(request->analysis.command,
                           plan_thread_name(chains, request->goal.name) != 0
                               ? "the %s of '%s' do not finish in a replay"
                               : "the trace has no %s of '%s'",
                           term(&request->analysis.vocabulary, TERM_tasks), request->goal.name);
    if (request->trial.unchanged < 0)
        return usage_error(request->analysis.command, "no %s '%s' ends in the trace",
                           request->goal.of == GOAL_RATE ? "region" : "task", request->goal.name);
    for (size_t i = 0; i < request->change_count; i++)
        if (!plan_applies(chains, &request->changes[i], &certain))
            return print_not_found(request, &request->changes[i]);
    int code = EXIT_GOOD;
    *good = true;
    for (size_t i = 0; i < request->change_count && *good; i++)
        if (request->changes[i].kind == CHANGE_POOL)
            code = check_pool(request, &request->changes[i], good);
    return code;
}

/* MARK: Output */

static void json_option(struct json *json, const char *key, const struct change *change)
{
    char text[1024];
    json_string(json, key, change_option(change, text, sizeof text));
}

static void json_answer(struct json *json, const char *key, const struct answer *answer)
{
    json_open(json, key, '{');
    json_option(json, "change", &answer->change);
    json_real(json, "then", answer->then);
    json_real(json, "gain", answer->gain);
    json_close(json, '}');
}

static void json_confidence(const struct request *request, struct json *json)
{
    json_string(json, "confidence", confidence_words[request->confidence]);
    json_open(json, "reasons", '[');
    for (size_t i = 0; i < request->reason_count; i++)
        json_string(json, NULL, request->reasons[i]);
    json_close(json, ']');
    json_real(json, "replay_error", request->trial.off);
}

static void json_now(const struct request *request, struct json *json)
{
    char text[512];
    json_string(json, "goal", goal_text(request, text, sizeof text));
    json_string(json, "unit", request->goal.of == GOAL_RATE ? "per second" : "ns");
    json_number(json, "cpus", request->trial.chains->cpus);
    json_real(json, "now", trial_now(&request->trial));
}

static void show_confidence(const struct request *request)
{
    printf("\nConfidence: %s\n", confidence_words[request->confidence]);
    for (size_t i = 0; i < request->reason_count; i++) {
        char text[REASON_SIZE];
        (void)snprintf(text, sizeof text, "%s", request->reasons[i]);
        printf("  %s\n", plain_inside(text, sizeof text));
    }
    puts("  caches, memory bandwidth and CPU frequency are not modelled");
}

static double percent_of(const struct request *request, double gain)
{
    double now = trial_now(&request->trial);
    return now > 0 ? gain / now * 100 : 0;
}

/* MARK: A question */

static void show_question(const struct request *request, double then, const struct answer *next)
{
    char a[SHOW_SIZE], b[SHOW_SIZE], c[SHOW_SIZE], goal[512], option[FOLLOW_UP_SIZE];
    double gain = trial_gain(&request->trial, trial_now(&request->trial), then);
    const char *less = request->goal.of == GOAL_RATE ? gain < 0 ? "less" : "more"
                       : gain < 0                    ? "more"
                                                     : "less";
    printf("now   %-12s %s\n", value_text(request, trial_now(&request->trial), a),
           goal_text(request, goal, sizeof goal));
    printf("then  %-12s %s %s (%.1f %%)\n", value_text(request, then, b),
           value_text(request, fabs(gain), c), less, fabs(percent_of(request, gain)));
    if (next)
        printf("next  %-12s with %s, too\n", value_text(request, next->then, a),
               option_shown(&next->change, option));
    else
        printf("next  none of the changes that trail tries would gain more\n");
    show_confidence(request);
}

static void json_question(const struct request *request, double then, const struct answer *next)
{
    struct json json = analysis_json_begin(&request->analysis);
    json_now(request, &json);
    json_open(&json, "changes", '[');
    for (size_t i = 0; i < request->change_count; i++)
        json_option(&json, NULL, &request->changes[i]);
    json_close(&json, ']');
    json_real(&json, "then", then);
    json_real(&json, "gain", trial_gain(&request->trial, trial_now(&request->trial), then));
    if (next)
        json_answer(&json, "next", next);
    json_confidence(request, &json);
    analysis_json_end(&json);
}

static int answer_question(struct request *request, const struct candidates *candidates)
{
    struct answer answers[CANDIDATES + 1];
    double then;
    size_t count;
    if (!trial_ask(&request->trial, request->changes, request->change_count, &then))
        return exit_no_memory();
    if (then < 0) {
        request->output = NULL;
        return cannot_answer(request, "with this change, the threads wait for each other forever: "
                                      "the trace does not show all wake-ups.");
    }
    then = trial_as_now(&request->trial, then);
    for (size_t i = 0; i < request->change_count; i++)
        doubt_change(request, &request->changes[i]);
    /* No room for another change. */
    count = 0;
    if (request->change_count < REPLAY_CHANGES &&
        !ask_each(request, candidates, then, answers, &count))
        return exit_no_memory();
    const struct answer *next = count > 0 ? &answers[0] : NULL;
    if (request->analysis.json)
        json_question(request, then, next);
    else
        show_question(request, then, next);
    return EXIT_GOOD;
}

/* MARK: The list */

static void show_list(const struct request *request, const struct answer *answers, size_t count)
{
    struct table table;
    char text[FOLLOW_UP_SIZE], goal[512];
    printf("now   %-12s %s\n\n", value_text(request, trial_now(&request->trial), text),
           goal_text(request, goal, sizeof goal));
    if (count == 0)
        puts("None of the changes that trail tries would gain 0.5 % or more.");
    else
        table_begin(&table, "gain> part> then> change<");
    for (size_t i = 0; i < count && i < request->limit; i++) {
        table_word(&table, value_text(request, answers[i].gain, text));
        table_percent(&table, percent_of(request, answers[i].gain) / 100);
        table_word(&table, value_text(request, answers[i].then, text));
        table_word(&table, option_shown(&answers[i].change, text));
    }
    if (count > 0)
        table_print(&table);
    show_confidence(request);
}

static void json_list(const struct request *request, const struct answer *answers, size_t count)
{
    struct json json = analysis_json_begin(&request->analysis);
    json_now(request, &json);
    json_open(&json, "list", '[');
    for (size_t i = 0; i < count && i < request->limit; i++)
        json_answer(&json, NULL, &answers[i]);
    json_close(&json, ']');
    json_confidence(request, &json);
    analysis_json_end(&json);
}

static int answer_list(struct request *request, const struct candidates *candidates)
{
    struct answer answers[CANDIDATES + 1];
    size_t count;
    if (!ask_each(request, candidates, trial_now(&request->trial), answers, &count))
        return exit_no_memory();
    if (request->analysis.json)
        json_list(request, answers, count);
    else
        show_list(request, answers, count);
    return EXIT_GOOD;
}

/* MARK: The replay as a trace */

/* Writes the changes as options, as far as there is room. */
static const char *changes_text(const struct request *request, char *text, size_t size)
{
    char option[FOLLOW_UP_SIZE];
    size_t used = (size_t)snprintf(text, size, "trail whatif");
    for (size_t i = 0; i < request->change_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %s",
                                 change_option(&request->changes[i], option, sizeof option));
    return text;
}

static int write_replay(const struct request *request)
{
    struct trace_file file;
    char what[1024];
    trail_error err = no_error();
    int code = open_trace_file(&file, request->output);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = packed_sink(&file.packed);
    bool made =
        schedule_write(request->trial.chains, request->changes, request->change_count,
                       &request->trial.goal, changes_text(request, what, sizeof what), &sink, &err);
    if (!made && !file.output.reason)
        code = print_error(request->output, &err);
    return close_trace_file(&file, request->output, made, code);
}

/* MARK: Running */

static int show(void *context)
{
    struct request *request = context;
    struct candidates candidates = {0};
    bool good;
    request->trial.chains = chains_of(request->analysis.answers);
    if (!request->trial.chains)
        return exit_no_memory();
    int code = check(request, &good);
    if (!good)
        return code;
    if (!doubt_trace(request) || !candidates_make(&candidates, request->trial.chains))
        code = exit_no_memory();
    else if (request->change_count > 0)
        code = answer_question(request, &candidates);
    else
        code = answer_list(request, &candidates);
    candidates_free(&candidates);
    return code == EXIT_GOOD && request->output ? write_replay(request) : code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {
        .analysis = {.command = command, .options.what = ANALYZE_CHAINS},
        .limit = 10,
        .confidence = CONFIDENCE_HIGH,
    };
    int code = parse_request(&request, argc, argv);
    code = analysis_answer(&request.analysis, code, show, &request);
    for (size_t i = 0; i < request.text_count; i++)
        free(request.texts[i]);
    return code;
}

const struct command command_whatif = {
    COMMAND_ROW(whatif),
    .synopsis = "[options] FILE",
    .details =
        "Replays the trace under changed conditions: each goroutine does the same, waits for the "
        "same "
        "goroutines and takes the same locks; only the times change. "
        "Shows how long it took, how long it would have taken, what would gain most then, and how "
        "far that can be trusted. Without a change: the changes that would gain most. If the "
        "replay does not reproduce the trace itself, that is reported instead.",
    .examples = "  trail whatif app.trace\n"
                "  trail whatif --free=stats_mu app.trace\n"
                "  trail whatif --faster=parse=2x --cpus=8 app.trace\n"
                "  trail whatif --pool=worker=16 --goal=rate:job app.trace\n"
                "  trail whatif --io=10.0.0.1:5432=0.2x --goal=task:request:p99 app.trace\n"
                "  trail whatif --json app.trace | jq '.list[0]'",
    .wrapped = true,
};
