/*
 * trail stuck: which thread waits for which in running processes. src/stuck examines them; this
 * prints deadlocks, then threads with what they wait for and their stacks, grouping those that are
 * alike.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/order.h"
#include "base/small_file.h"
#include "collect/mapped_files.h"
#include "collect/process.h"
#include "inspect/program.h"
#include "stuck/stuck.h"
#include "ui/cli.h"
#include "ui/refused_file.h"
#include "ui/show.h"
#include "words/function_name.h"
#include "words/place.h"
#include "words/runtimes.h"

struct request {
    bool json, children;
    int64_t repeat_ns, limit_ns;
    unsigned long count;
    size_t frames;
};

static const struct option rows[] = {
    {'j', "json", NULL, "one JSON object, with --repeat one per line",
     TO_FLAG(struct request, json)},
    {0, "children", NULL, "also the processes that it has started",
     TO_FLAG(struct request, children)},
    {0, "repeat", "TIME", "look again each TIME, and show what has changed",
     TO_TIME(struct request, repeat_ns), .least = 1000000, .most = INT64_C(86400000000000),
     .expects = "a time like 1s"},
    {0, "count", "N", "with --repeat: end after N looks", TO_NUMBER(struct request, count),
     .least = 1, .most = UINT32_MAX},
    {0, "limit", "TIME", "how long threads may take to stop (40ms)",
     TO_TIME(struct request, limit_ns), .least = 1000000, .most = INT64_C(3600000000000),
     .expects = "a time like 40ms"},
    {0, "frames", "N", "show N frames of each stack (20); 0: all",
     TO_LIMIT(struct request, frames)},
    {0},
};

/* MARK: Texts */

#define TEXT_SIZE 1024

/* "thread 12 (flush)" */
static void thread_text(const struct stuck_thread *thread, char *text, size_t size)
{
    (void)snprintf(text, size, "thread %d (%s)", thread->held->tid, thread->held->name);
}

static void holder_text(const struct stuck_thread *thread, char *text, size_t size)
{
    const struct stuck_thread *other = thread->holder.thread;
    if (other && other->process != thread->process)
        (void)snprintf(text, size, "thread %d (%s) of process %d", thread->holder.tid,
                       other->held->name, other->process->held.pid);
    else if (other)
        thread_text(other, text, size);
    else
        (void)snprintf(text, size, "thread %d, which has ended", thread->holder.tid);
}

/* "mutex a_mu" */
static void lock_text(const struct stuck_thread *thread, char *text, size_t size)
{
    const struct wire_wait_kind *kind = &wire_wait_kinds[thread->kind];
    (void)snprintf(text, size, "%s%s%s", kind->title, *thread->object ? " " : "", thread->object);
}

static void wait_text(const struct stuck_thread *thread, char *text, size_t size)
{
    const struct wire_wait_kind *kind = &wire_wait_kinds[thread->kind];
    char holder[256] = "";
    bool joins = thread->kind == WIRE_WAIT_JOIN;
    if (thread->holder.tid > 0)
        holder_text(thread, holder, sizeof holder);
    if (thread->kind == WIRE_WAIT_KERNEL)
        (void)snprintf(text, size, "in %s", thread->note);
    else if (joins && *holder)
        (void)snprintf(text, size, "%s %s", kind->phrase_of, holder);
    else
        (void)snprintf(text, size, "%s%s%s%s%s%s%s%s",
                       *thread->object ? kind->phrase_of : kind->phrase, *thread->object ? " " : "",
                       thread->object, *holder ? ", held by " : "", holder,
                       *holder && thread->holder.is_inferred ? " (inferred from its stack)" : "",
                       *thread->note ? ", " : "", thread->note);
}

static void state_text(const struct stuck_thread *thread, char *text, size_t size)
{
    static const char *const texts[] = {
        [STUCK_RUNS] = "running, or ready to run",
        [STUCK_STOPPED] = "stopped by a signal",
        [STUCK_ENDED] = "ended",
        [STUCK_UNKNOWN] = "not known: the thread could not be stopped",
    };
    if (thread->state == STUCK_WAITS)
        wait_text(thread, text, size);
    else
        (void)snprintf(text, size, "%s", texts[thread->state]);
}

/* Writes what a thread of a cycle waits for: "waits for mutex a_mu", "waits to read pipe, whose
 * other end ...". */
static void wanted_text(const struct stuck_thread *thread, char *text, size_t size)
{
    static const char waiting[] = "waiting";
    char name[320];
    if (thread->kind != WIRE_WAIT_JOIN && thread->holder.thread) {
        lock_text(thread, name, sizeof name);
        (void)snprintf(text, size, "waits for %s", name);
        return;
    }
    wait_text(thread, name, sizeof name);
    if (strncmp(name, waiting, sizeof waiting - 1) == 0)
        (void)snprintf(text, size, "waits%s", name + sizeof waiting - 1);
    else
        (void)snprintf(text, size, "waits %s", name);
}

/* "thread 12 (flush) holds mutex b_mu and waits for mutex a_mu" */
static void cycle_text(const struct stuck_thread *thread, const struct stuck_thread *before,
                       char *text, size_t size)
{
    char name[128], held[256], wanted[TEXT_SIZE / 2];
    bool is_lock = before->kind != WIRE_WAIT_JOIN && before->holder.thread;
    thread_text(thread, name, sizeof name);
    lock_text(before, held, sizeof held);
    wanted_text(thread, wanted, sizeof wanted);
    if (before == thread && is_lock)
        (void)snprintf(text, size, "%s %s, which it holds itself", name, wanted);
    else if (is_lock)
        (void)snprintf(text, size, "%s holds %s and %s", name, held, wanted);
    else
        (void)snprintf(text, size, "%s %s", name, wanted);
}

/* MARK: Cycles */

/* Calls `show` for each thread of a cycle, with the one that waits for it. */
static void each_of_cycle(const struct stuck_thread *first,
                          void (*show)(void *context, const struct stuck_thread *thread,
                                       const struct stuck_thread *before),
                          void *context)
{
    const struct stuck_thread *before = first, *at = first;
    while (before->next != first)
        before = before->next;
    do {
        show(context, at, before);
        before = at;
        at = at->next;
    } while (at != first);
}

static bool is_inferred_cycle(const struct stuck_thread *first)
{
    const struct stuck_thread *at = first;
    do {
        if (at->holder.is_inferred)
            return true;
        at = at->next;
    } while (at != first);
    return false;
}

static void print_cycle_line(void *context, const struct stuck_thread *thread,
                             const struct stuck_thread *before)
{
    char text[TEXT_SIZE];
    (void)context;
    cycle_text(thread, before, text, sizeof text);
    show_line("  %s", text);
}

static void print_cycles(const struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->cycle_count; i++) {
        show_line("%s%s:", i == 0 ? "deadlock" : "another deadlock",
                  is_inferred_cycle(stuck->cycles[i]) ? ", with holders inferred from stacks" : "");
        each_of_cycle(stuck->cycles[i], print_cycle_line, NULL);
        putchar('\n');
    }
}

/* MARK: Threads */

static void frame_text(const struct stuck_frame *frame, char *text, size_t size)
{
    char name[FUNCTION_NAME_SIZE];
    trail_string function = {frame->function, strlen(frame->function)};
    trail_string file = {frame->file, strlen(frame->file)};
    if (function.size)
        (void)place_of_frame(function_name_short(function, name), file, frame->line,
                             PLACE_PARENTHESES, text, size);
    else if (*frame->module)
        (void)snprintf(text, size, "%s+0x%" PRIx64, frame->module, frame->address);
    else
        (void)snprintf(text, size, "0x%" PRIx64, frame->pc);
}

/* Leaves out the frames that started the thread's function, unless all are wanted. */
static void print_stack(const struct stuck_thread *thread, size_t most)
{
    char text[PLACE_TEXT_SIZE];
    size_t count = thread->frame_count;
    if (most != 0 && most < SIZE_MAX)
        count = runtime_frames_outside(stuck_frame_of, thread, count);
    for (size_t i = 0; i < count && i < most; i++) {
        frame_text(&thread->frames[i], text, sizeof text);
        show_line("    %s", text);
    }
    if (count > most)
        show_line("    ... %zu more: --frames=0", thread->frame_count - most);
    else if (thread->is_cut)
        puts("    ... its further callers are not known");
}

/* Deadlocked threads first, then those that others wait for, then those that wait for a thread. */
static unsigned rank_of(const struct stuck_thread *thread)
{
    return thread->cycle                 ? 0
           : thread->waiters             ? 1
           : thread->holder.tid > 0      ? 2
           : thread->state == STUCK_RUNS ? 3
                                         : 4;
}

/* A thread to print, and a hash to group it by. */
struct row {
    const struct stuck_thread *thread;
    uint64_t likeness; /* hash of its state, stack and name */
};

static uint64_t likeness_of(const struct stuck_thread *thread)
{
    const char *name = thread->held->name;
    char text[TEXT_SIZE];
    state_text(thread, text, sizeof text);
    uint64_t hash = hash_mix(hash_bytes(text, strlen(text)), hash_bytes(name, strlen(name)));
    for (size_t i = 0; i < thread->frame_count; i++)
        hash = hash_mix(hash, thread->frames[i].pc);
    return hash;
}

/* Threads that others wait for are shown alone. */
static bool is_alike(const struct row *a, const struct row *b)
{
    const struct stuck_thread *x = a->thread, *y = b->thread;
    return a->likeness == b->likeness && !x->cycle && !y->cycle && !x->waiters && !y->waiters;
}

static int by_likeness(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return ORDER(x->likeness, y->likeness) ?: ORDER(x->thread->held->tid, y->thread->held->tid);
}

/* Threads that are alike, consecutive in the list. */
struct group {
    const struct row *rows;
    size_t count;
};

static int by_rank(const void *a, const void *b)
{
    const struct stuck_thread *x = ((const struct group *)a)->rows->thread;
    const struct stuck_thread *y = ((const struct group *)b)->rows->thread;
    return ORDER(rank_of(x), rank_of(y)) ?: ORDER(x->held->tid, y->held->tid);
}

/* Sorts the list and fills in the groups, at most `count`; returns their number. */
static size_t gather(struct row *list, size_t count, struct group *groups)
{
    size_t found = 0;
    qsort(list, count, sizeof *list, by_likeness);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !is_alike(&list[i - 1], &list[i]))
            groups[found++] = (struct group){&list[i], 0};
        groups[found - 1].count++;
    }
    qsort(groups, found, sizeof *groups, by_rank);
    return found;
}

/* "threads 12, 13, 14 and 9 others (worker): ..." */
static void print_heading(const struct group *group)
{
    const struct stuck_thread *first = group->rows->thread;
    size_t count = group->count;
    char state[TEXT_SIZE], list[160];
    size_t used = 0;
    state_text(first, state, sizeof state);
    for (size_t i = 0; i < count && i < 4; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", i ? ", " : "",
                                 group->rows[i].thread->held->tid);
    if (count > 4)
        (void)snprintf(list + used, sizeof list - used, " and %zu more", count - 4);
    show_line("%s %s (%s): %s", count == 1 ? "thread" : "threads", list, first->held->name, state);
    if (first->waiters)
        show_line("    %u thread%s wait%s for this thread", first->waiters,
                  first->waiters == 1 ? "" : "s", first->waiters == 1 ? "s" : "");
}

/* MARK: What has changed */

/*
 * Whether the thread is in the same state as at the last look; stores its state in `history`, which
 * maps TIDs to nonzero hashes.
 */
static bool is_as_before(struct idmap *history, const struct row *row)
{
    uint64_t tid = (uint64_t)row->thread->held->tid;
    void *likeness = (void *)(uintptr_t)(row->likeness | 1);
    bool same = idmap_find(history, tid) == likeness;
    return idmap_put(history, tid, likeness) && same;
}

/* MARK: Text */

static bool has_musl(const struct held *held)
{
    for (size_t i = 0; i < held->mapping_count; i++) {
        if (held_is_musl(held->mappings[i].path))
            return true;
    }
    return false;
}

/* Returns what could not be examined of a program's threads; NULL: nothing. */
static const char *what_is_missing(const struct stuck_process *process)
{
    struct program program;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/exe", process->held.pid);
    program_inspect(&program, path);
    if (program.verdict == PROGRAM_GO)
        return "a Go program: its goroutines are not threads, and are not shown; its stacks of "
               "goroutines are in /debug/pprof/goroutine?debug=2, or printed at SIGQUIT, which "
               "ends it";
    if (has_musl(&process->held))
        return "linked with musl: its mutexes have no owner, and its waits are futexes";
    return NULL;
}

static void print_process_heading(const struct stuck_process *process, size_t changed)
{
    const char *missing = what_is_missing(process);
    char stopped[DURATION_SIZE];
    show_duration_as(stopped, process->held.stopped_ns, DURATION_WORDS);
    show_line("process %d (%s): %zu thread%s, %sstopped for %s%s", process->held.pid,
              process->held.name, process->held.count, process->held.count == 1 ? "" : "s",
              process->held.groups > 1 ? "each " : "", process->held.groups > 1 ? "at most " : "",
              stopped);
    if (process->held.groups > 1)
        show_line("    in %zu groups, so not seen at one instant; deadlocks were confirmed by a "
                  "second look",
                  process->held.groups);
    if (missing)
        show_line("    %s", missing);
    if (process->hangs)
        show_line("    no thread can continue: each waits for another, without a time limit");
    if (process->is_related)
        puts("    not requested: only threads that others wait for are shown");
    else if (changed < process->held.count)
        show_line("    %zu as before", process->held.count - changed);
    if (process->held.unstopped)
        show_line("    %zu could not be stopped in time", process->held.unstopped);
    putchar('\n');
}

/* For processes that were not requested: whether others wait for the thread, or it is part of a
 * cycle. */
static bool is_relevant(const struct stuck_thread *thread)
{
    return thread->cycle || thread->waiters;
}

static bool has_relevant(const struct stuck_process *process)
{
    for (size_t i = 0; i < process->held.count; i++) {
        if (is_relevant(&process->threads[i]))
            return true;
    }
    return false;
}

static bool print_process(const struct stuck_process *process, const struct request *request,
                          struct idmap *history)
{
    size_t count = 0, shown;
    struct row *list = calloc(process->held.count + 1, sizeof *list);
    struct group *groups = calloc(process->held.count + 1, sizeof *groups);
    bool good = list && groups;
    for (size_t i = 0; good && i < process->held.count; i++) {
        const struct stuck_thread *thread = &process->threads[i];
        if (process->is_related && !is_relevant(thread))
            continue;
        list[count] = (struct row){thread, likeness_of(thread)};
        count += !is_as_before(history, &list[count]);
    }
    shown = good ? gather(list, count, groups) : 0;
    if (good && (count > 0 || !process->is_related))
        print_process_heading(process, count);
    for (size_t i = 0; i < shown; i++) {
        print_heading(&groups[i]);
        print_stack(groups[i].rows->thread, request->frames);
        putchar('\n');
    }
    free(list);
    free(groups);
    return good;
}

/* MARK: JSON */

static void json_frame(struct json *json, const struct stuck_frame *frame)
{
    json_open(json, NULL, '{');
    json_string(json, "function", frame->function);
    json_string(json, "file", frame->file);
    json_number(json, "line", frame->line);
    json_string(json, "module", frame->module);
    json_number(json, "address", frame->address);
    json_close(json, '}');
}

static void json_wait(struct json *json, const struct stuck_thread *thread)
{
    json_string(json, "wait_kind", wire_wait_kinds[thread->kind].word);
    if (*thread->object)
        json_string(json, "object", thread->object);
    if (*thread->note)
        json_string(json, "note", thread->note);
    if (thread->peers.count > 0 && thread->kind != WIRE_WAIT_FILE) {
        json_open(json, "peers", '[');
        for (size_t i = 0; i < thread->peers.count; i++)
            json_signed(json, NULL, thread->peers.pids[i]);
        json_close(json, ']');
    }
    if (thread->holder.tid > 0)
        json_signed(json, "holder", thread->holder.tid);
    if (thread->holder.tid > 0 && thread->holder.is_inferred)
        json_bool(json, "holder_inferred", true);
}

static void json_thread(struct json *json, const struct stuck_thread *thread)
{
    static const char *const states[] = {
        [STUCK_WAITS] = "waiting", [STUCK_RUNS] = "running",    [STUCK_STOPPED] = "stopped",
        [STUCK_ENDED] = "ended",   [STUCK_UNKNOWN] = "unknown",
    };
    json_open(json, NULL, '{');
    json_signed(json, "tid", thread->held->tid);
    json_string(json, "name", thread->held->name);
    json_string(json, "state", states[thread->state]);
    if (thread->state == STUCK_WAITS)
        json_wait(json, thread);
    json_number(json, "waiters", thread->waiters);
    json_open(json, "stack", '[');
    for (size_t i = 0; i < thread->frame_count; i++)
        json_frame(json, &thread->frames[i]);
    json_close(json, ']');
    json_close(json, '}');
}

static void json_cycle_thread(void *context, const struct stuck_thread *thread,
                              const struct stuck_thread *before)
{
    struct json *json = context;
    char text[TEXT_SIZE];
    cycle_text(thread, before, text, sizeof text);
    json_open(json, NULL, '{');
    json_signed(json, "tid", thread->held->tid);
    json_string(json, "text", text);
    json_close(json, '}');
}

static void print_json(const struct stuck *stuck)
{
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    json_open(&json, "deadlocks", '[');
    for (size_t i = 0; i < stuck->cycle_count; i++) {
        json_open(&json, NULL, '[');
        each_of_cycle(stuck->cycles[i], json_cycle_thread, &json);
        json_close(&json, ']');
    }
    json_close(&json, ']');
    json_open(&json, "processes", '[');
    for (size_t i = 0; i < stuck->count; i++) {
        const struct stuck_process *process = &stuck->processes[i];
        const char *missing = what_is_missing(process);
        if (process->is_related && !has_relevant(process))
            continue;
        json_open(&json, NULL, '{');
        json_signed(&json, "pid", process->held.pid);
        json_string(&json, "name", process->held.name);
        if (missing)
            json_string(&json, "note", missing);
        json_bool(&json, "hangs", process->hangs);
        json_signed(&json, "stopped_ns", process->held.stopped_ns);
        json_number(&json, "groups", process->held.groups);
        json_number(&json, "unstopped", process->held.unstopped);
        json_open(&json, "threads", '[');
        for (size_t j = 0; j < process->held.count; j++)
            json_thread(&json, &process->threads[j]);
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    putchar('\n');
}

/* MARK: Processes */

struct pids {
    pid_t *list;
    size_t count, capacity;
};

static bool is_listed(const void *context, pid_t pid)
{
    const struct pids *pids = context;
    for (size_t i = 0; i < pids->count; i++) {
        if (pids->list[i] == pid)
            return true;
    }
    return false;
}

static bool add_pid(struct pids *pids, pid_t pid)
{
    if (is_listed(pids, pid))
        return true;
    return APPEND(pids->list, pids->capacity, pids->count, pid);
}

static bool add_children(struct pids *pids)
{
    struct pids given = *pids;
    bool good = true;
    /* Copies the list, which may move while it grows. */
    given.list = malloc((given.count + 1) * sizeof *given.list);
    if (!given.list)
        return false;
    if (given.count > 0)
        memcpy(given.list, pids->list, given.count * sizeof *given.list);
    const struct process_family family = {is_listed, &given};
    SMALL_FILE_NUMBERS(process, "/proc")
        good = good && (!process_descends(process.at, &family) || add_pid(pids, process.at));
    free(given.list);
    return good;
}

static int look(const struct request *request, const struct pids *pids, struct idmap *history)
{
    struct stuck stuck = {.limit_ns = request->limit_ns};
    trail_error err;
    int code = EXIT_GOOD;
    for (size_t i = 0; i < pids->count && code == EXIT_GOOD; i++) {
        if (!stuck_add(&stuck, pids->list[i], &err))
            code = print_error_message(&err);
    }
    if (code == EXIT_GOOD)
        stuck_follow(&stuck);
    if (code == EXIT_GOOD && !stuck_connect(&stuck, &err))
        code = print_error_message(&err);
    if (code == EXIT_GOOD) {
        if (request->json) {
            print_json(&stuck);
        } else {
            print_cycles(&stuck);
            for (size_t i = 0; i < stuck.count; i++)
                (void)print_process(&stuck.processes[i], request, history);
        }
    }
    stuck_free(&stuck);
    return code;
}

static int look_again(const struct request *request, const struct pids *pids)
{
    struct idmap history = {0};
    unsigned long most = request->count ? request->count : request->repeat_ns ? ULONG_MAX : 1;
    struct timespec pause = {request->repeat_ns / 1000000000, request->repeat_ns % 1000000000};
    int code = EXIT_GOOD;
    for (unsigned long i = 0; i < most && code == EXIT_GOOD; i++) {
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        code = look(request, pids, &history);
        if (fflush(stdout) != 0 || ferror(stdout))
            break;
    }
    idmap_free(&history);
    return finish_stdout(code);
}

static int read_pids(const struct command *command, const struct options *options,
                     struct pids *pids)
{
    for (int i = 0; i < options->word_count; i++) {
        char *end;
        errno = 0;
        long pid = strtol(options->words[i], &end, 10);
        if (errno || *end || pid <= 0 || pid > INT32_MAX)
            return usage_error(command,
                               "'%s' is not a process ID; 'pgrep NAME' lists those of a name",
                               options->words[i]);
        if (!add_pid(pids, (pid_t)pid))
            return print_output_error("the processes", ENOMEM);
    }
    return pids->count ? EXIT_GOOD : usage_error(command, "no process given: give its ID");
}

static int run(const struct command *command, int argc, char **argv)
{
    struct options options;
    struct request request = {.frames = 20, .limit_ns = HELD_LIMIT_NS};
    struct pids pids = {0};
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code != EXIT_GOOD)
        return code;
    mapped_files_guard();
    code = read_pids(command, &options, &pids);
    if (code == EXIT_GOOD && request.children && !add_children(&pids))
        code = print_output_error("the processes", ENOMEM);
    if (code == EXIT_GOOD)
        code = look_again(&request, &pids);
    print_refused_file();
    free(pids.list);
    return code;
}

const struct command command_stuck = {
    COMMAND_ROW(stuck),
    .synopsis = "[options] PID...",
    .details =
        "Stops the threads of a process for some milliseconds, copies their registers, stacks and "
        "what they wait for, and lets them continue. Shows deadlocks; then each thread: what it "
        "waits for, the holder of that, and its stack. Needs no preparation of the process. Exit "
        "status: 0, also if there is a deadlock; 3 if the process may not be read.",
    .examples = "  trail stuck $(pidof server)\n"
                "  trail stuck --children $(pidof -s postgres)\n"
                "  trail stuck --repeat=1s --count=5 1234\n"
                "  trail stuck --json 1234 | jq '.deadlocks'",
    .wrapped = true,
    .no_input = true,
};
