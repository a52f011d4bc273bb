/*
 * trail record: runs a program with libtrail-preload.so in it, and writes the execution trace of
 * its threads.
 *
 * The program writes raw records into memory that it shares with this process, which turns them
 * into a trace (src/collect/).
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/duration.h"
#include "base/text.h"
#include "collect/account.h"
#include "collect/child.h"
#include "collect/mapped_files.h"
#include "collect/recorder.h"
#include "commands/record_slow.h"
#include "commands/record_summary.h"
#include "commands/viewer.h"
#include "inspect/preload_path.h"
#include "inspect/program.h"
#include "ui/cli.h"
#include "ui/follow_up.h"
#include "ui/refused_file.h"
#include "ui/show.h"
#include "ui/skip_frames.h"
#include "ui/values.h"
#include "words/vocabulary.h"

/* Interval between lines of progress. */
#define PROGRESS_NS 500000000

/* How long after a signal to report that trail waits for the program to end. */
#define PATIENCE_NS INT64_C(1500000000)

/* Processes that the program started may be about to end with it: how long to wait before a message
 * about them. */
#define NOTICE_NS 500000000

/* The title of a process that ended before its command line or modules could be read. */
#define NO_TITLE "(ended at once)"

/* Interval between looks at the libraries of a process that was already running. */
#define LOOK_NS 500000000

struct recording {
    struct recorder_options options;
    char default_output[4096];
    int code; /* the worst code of the recorder */
    bool quiet, progress, openmp, view, patience_printed;
    bool alone;       /* without the processes that the program starts */
    int64_t shown_ns; /* time of the last line of progress; CLOCK_MONOTONIC */
    struct viewer viewer;
    const char **skip_frames; /* contents of the file */
    const char *skip_file;    /* NULL: none */
    struct record_slow slow;
    char libomp[PATH_MAX]; /* loaded instead of gcc's; "": none */
    int flight_signal;
    char **argv;
    struct preload preload;
    struct program program;
    struct recorder recorder;
    struct child child;
    struct attach attach; /* for --pid */
    int64_t looked_ns;    /* when its libraries were last examined; CLOCK_MONOTONIC */
};

/* MARK: Options */

static const struct option_word stacks[] = {{"unwind", SHM_STACKS_UNWIND},
                                            {"fp", SHM_STACKS_FRAME_POINTERS},
                                            {"none", SHM_STACKS_NONE},
                                            {0}};
static const struct option_word groups[] = {{"locks", SHM_GROUP_LOCKS},
                                            {"conditions", SHM_GROUP_CONDITIONS},
                                            {"io", SHM_GROUP_IO},
                                            {"sleep", SHM_GROUP_SLEEP},
                                            {"threads", SHM_GROUP_THREADS},
                                            {"openmp", SHM_GROUP_OPENMP},
                                            {0}};
static const struct option_word switches[] = {
    {"auto", SWITCHES_AUTO}, {"off", SWITCHES_OFF}, {"need", SWITCHES_NEED}, {0}};
static const struct option_word signals[] = {
    {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {0}};
static const struct option_word formats[] = {
    {"1.22", 22}, {"1.23", 23}, {"1.25", 25}, {"1.26", 26}, {0}};

/* --rotate: a size, or a time. */
static int take_rotate(const struct command *command, void *member, const char *value)
{
    struct trace_limits *limits = member;
    if (parse_size(value, &limits->rotate_bytes) ||
        (parse_time(value, &limits->rotate_ns) && limits->rotate_ns > 0))
        return EXIT_GOOD;
    return usage_error(command, "'%s' is not a value for this option", value);
}

static int take_pid(const struct command *command, void *process, const char *value)
{
    char *end;
    long pid = strtol(value, &end, 10);
    if (end == value || *end || pid <= 0 || pid > INT32_MAX)
        return usage_error(command, "'%s' is not a process ID", value);
    *(pid_t *)process = (pid_t)pid;
    return EXIT_GOOD;
}

/* The kernel accepts at most 10000 samples per second (kernel.perf_event_max_sample_rate may be
 * higher). */
static const struct option rows[] = {
    {'o', "output", "FILE", "where the trace goes (PROGRAM.trace)",
     TO_TEXT(struct recording, options.output)},
    {'p', "pid", "PID",
     "attach to the running process PID and record it until it ends, --duration, or Ctrl-C; it "
     "keeps running",
     TO_PARSED(struct recording, options.process, pid_t, take_pid)},
    {0, "duration", "TIME", "record for this long; the program keeps running",
     TO_TIME(struct recording, options.duration_ns), .least = 1},
    {0, "cpu-samples", "HZ",
     "have the kernel sample each thread's stack at this rate, by its CPU time",
     TO_NUMBER(struct recording, options.cpu_samples), .least = 1, .most = 10000},
    {0, "flight", "TIME",
     "keep only the newest part, of this length, in memory; it is written when the program ends, "
     "however it ends, and on a signal",
     TO_TIME(struct recording, options.limits.flight_ns), .least = 1},
    {0, "heap", NULL, "record how much malloc memory the program uses over time",
     TO_FLAG(struct recording, options.heap)},
    {0, "children", NULL,
     "record the processes that it starts until they end, even if they outlive it",
     TO_FLAG(struct recording, options.outliving)},
    {0, "no-children", NULL, "do not record the processes that it starts",
     TO_FLAG(struct recording, alone)},
    {0, "view", NULL,
     "show the trace in the browser while the program runs, and afterwards until Ctrl-C",
     TO_FLAG(struct recording, view)},
    {0, "stacks", "HOW",
     "unwind: by the unwind tables, in any program (the default); fp: by frame pointers; none",
     TO_WORD(struct recording, options.stacks, stacks)},
    {0, "only", "GROUPS",
     "record only these: locks, conditions, io, sleep, threads, openmp; separated by commas",
     TO_WORDS(struct recording, options.groups, groups)},
    {0, "min-wait", "TIME", "leave out calls that blocked for less (10us)",
     TO_TIME(struct recording, options.min_wait_ns)},
    {0, "hold", "TIME", "record locks that were held for longer (1ms)",
     TO_TIME(struct recording, options.hold_ns)},
    {0, "all", NULL, "record every hold of every lock",
     TO_FLAG(struct recording, options.all_holds)},
    {0, "openmp", NULL,
     "run a program built by gcc with LLVM's OpenMP library, which reports parallel "
     "regions, tasks, barriers and locks",
     TO_FLAG(struct recording, openmp)},
    {0, "split", NULL, "one trace per process, with its PID in the name, not one for all",
     TO_FLAG(struct recording, options.split)},
    {0, "switches", "WHEN",
     "record the kernel's context switches: auto (if it permits that; the default), off, or need "
     "(refuse to record without)",
     TO_WORD(struct recording, options.switches, switches)},
    {0, "max-switches", "RATE",
     "pause it while a CPU switches threads more often per second, because each switch takes about "
     "a microsecond longer; 0: no limit (25000)",
     TO_NUMBER(struct recording, options.max_switches), .most = 1000000000},
    {0, "cpu-signal", NULL,
     "take these samples by a timer signal (PROF) in the program, if the kernel provides none",
     TO_FLAG(struct recording, options.cpu_signal)},
    {0, "attach-shm", "FILE",
     "start no program: wait for those that find FILE through the variables of 'trail env', until "
     "Ctrl-C",
     TO_TEXT(struct recording, options.shm)},
    {0, "delay", "TIME", "begin to record after this time",
     TO_TIME(struct recording, options.delay_ns)},
    {0, "flight-signal", "NAME", "the signal to 'trail record' that writes a snapshot (USR2)",
     TO_WORD(struct recording, flight_signal, signals)},
    {0, "snapshot-if", "CONDITION",
     "flight recorder: also write a snapshot when something was slow: 'task:request > 200ms', "
     "'region:parse > 50ms', 'wait:mutex > 50ms', 'lock > 50ms', 'wait > 500ms'; repeatable",
     TO_PARSED(struct recording, slow, struct record_slow, record_slow_add)},
    {0, "snapshot-every", "TIME", "... at most one in this time (1m)",
     TO_TIME(struct recording, options.snapshot_every_ns), .least = 1000000000},
    {0, "snapshot-max", "SIZE", "... and at most this much in total (1G)",
     TO_SIZE(struct recording, options.snapshot_max), .least = 1},
    {0, "max-size", "BYTES", "end the recording when the trace has this size (64M)",
     TO_SIZE(struct recording, options.max_size), .least = 1},
    {0, "rotate", "AMOUNT", "begin a new file after this size (64M) or time (60s)",
     TO_PARSED(struct recording, options.limits, struct trace_limits, take_rotate)},
    {0, "progress", NULL, "show the counts so far while the program runs",
     TO_FLAG(struct recording, progress)},
    {0, "format", "VERSION", "1.22, 1.23 (the default), 1.25 or 1.26",
     TO_WORD(struct recording, options.version, formats)},
    {0, "skip-frames", "FILE", SKIP_FRAMES_HELP, TAKE(0)},
    {'q', "quiet", NULL, "no summary", TO_FLAG(struct recording, quiet)},
    {0},
};

/* --skip-frames */
static int take_skip_frames(void *context, int id, const char *path)
{
    struct recording *r = context;
    (void)id;
    r->skip_file = path;
    return skip_frames_read(path, &r->skip_frames);
}

/* Options that take effect when a program starts cannot apply to a running one. */
static int check_with_pid(const struct recording *r, const struct command *command, int words)
{
    if (words > 0 || r->options.shm)
        return usage_error(command, "--pid starts no program: it records the running process %d",
                           (int)r->options.process);
    if (r->openmp || r->options.heap || r->options.outliving || r->options.cpu_signal)
        return usage_error(command, "--openmp, --heap, --children and --cpu-signal need a program "
                                    "to start: they cannot be used with --pid");
    return EXIT_GOOD;
}

#define SNAPSHOT_EVERY_NS 60000000000
#define SNAPSHOT_MAX      ((uint64_t)1 << 30)

static void end_progress(const struct recording *r)
{
    if (r->progress)
        terminal_control(stderr, "\r\033[K");
}

static void print_snapshot(void *context, const struct recorder_snapshot *snapshot)
{
    end_progress(context);
    record_slow_print(snapshot->event, snapshot->path);
}

/* --snapshot-if, -every and -max */
static int take_snapshots(struct recording *r, const struct command *command)
{
    struct recorder_options *options = &r->options;
    if (!r->slow.count)
        return options->snapshot_every_ns || options->snapshot_max
                   ? usage_error(command,
                                 "--snapshot-every and --snapshot-max require --snapshot-if")
                   : EXIT_GOOD;
    if (!options->limits.flight_ns)
        return usage_error(command, "--snapshot-if needs --flight=TIME, the length of a snapshot");
    if (options->output && strcmp(options->output, "-") == 0)
        return usage_error(command, "--snapshot-if writes several files: not with -o -");
    options->slow = r->slow.limits;
    options->slow_count = r->slow.count;
    options->snapshot = print_snapshot;
    options->snapshot_context = r;
    if (!options->snapshot_every_ns)
        options->snapshot_every_ns = SNAPSHOT_EVERY_NS;
    if (!options->snapshot_max)
        options->snapshot_max = SNAPSHOT_MAX;
    return record_slow_check(&r->slow, command, options);
}

static int read_options(struct recording *r, const struct command *command, int argc, char **argv)
{
    struct options options;
    int code = options_each(&options, command, argc, argv, take_skip_frames, r);
    r->options.skip_frames = r->skip_frames;
    if (code != EXIT_GOOD)
        return code;
    r->argv = options.words;
    code = take_snapshots(r, command);
    if (code != EXIT_GOOD)
        return code;
    if (r->options.cpu_signal && !r->options.cpu_samples)
        return usage_error(command, "--cpu-signal needs --cpu-samples=HZ");
    if (r->alone && (r->options.split || r->options.outliving))
        return usage_error(
            command,
            "--no-children records one process: it cannot be used with --children or --split");
    r->options.children = !r->alone && !r->options.process;
    if (r->options.shm && options.word_count > 0)
        return usage_error(command, "--attach-shm starts no program");
    if (r->options.shm && r->openmp)
        return usage_error(command, "--openmp needs a program to start: --attach-shm starts none");
    if (r->view &&
        (r->options.shm || r->options.limits.flight_ns || r->options.limits.rotate_bytes ||
         r->options.limits.rotate_ns || (r->options.output && strcmp(r->options.output, "-") == 0)))
        return usage_error(command, "--view needs a single growing file: it cannot be used with "
                                    "--attach-shm, --flight, --rotate or -o -");
    if (r->options.process)
        return check_with_pid(r, command, options.word_count);
    if (!r->options.shm && options.word_count == 0)
        return usage_error(command, "no program given: trail record -- PROGRAM [ARGUMENT...]");
    return EXIT_GOOD;
}

/* MARK: Before the start */

static int refuse(const char *why)
{
    print_message("%s", why);
    return EXIT_USAGE;
}

static int look_at_program(struct recording *r)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): read_options saw to it that there is
     * one. */
    program_inspect(&r->program, r->argv[0]);
    if (!program_refusal(&r->program))
        return EXIT_GOOD;
    print_message("%s", program_refusal(&r->program));
    return program_exit_code(&r->program);
}

/*
 * gcc's OpenMP library has no tools interface; LLVM's has, and implements all of gcc's functions.
 */
static int choose_libomp(struct recording *r)
{
    if (r->openmp && !*r->preload.openmp)
        return refuse("--openmp: libtrail-ompt.so is not there; install it with the command");
    if (r->openmp && !preload_libomp(r->libomp, sizeof r->libomp))
        return refuse("--openmp: LLVM's OpenMP library is not installed: apt install libomp5");
    return EXIT_GOOD;
}

/* Writes the name of its file, or else of its first thread. */
static void name_of_process(pid_t pid, char *name, size_t size)
{
    char link[64], path[PATH_MAX];
    ssize_t n;
    (void)snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    n = readlink(link, path, sizeof path - 1);
    if (n <= 0)
        return;
    path[n] = '\0';
    (void)snprintf(name, size, "%.*s", (int)strcspn(path_name(path), " "), path_name(path));
}

/* Chooses NAME.trace in the current folder. */
static void choose_output(struct recording *r)
{
    char name[64] = "app";
    const char *word = r->options.shm ? "app" : r->options.process ? name : r->argv[0];
    if (r->options.output)
        return;
    if (r->options.process)
        name_of_process(r->options.process, name, sizeof name);
    (void)snprintf(r->default_output, sizeof r->default_output, "%s.trace", path_name(word));
    r->options.output = r->default_output;
}

/* MARK: Running */

/* Called in the new process, before exec: enables recording, and keeps the program's output apart
 * from a trace on stdout. */
static void before_program(void *context)
{
    struct recording *r = context;
    recorder_announce(&r->recorder);
    if (strcmp(r->options.output, "-") == 0)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
}

static bool start_program(struct recording *r)
{
    char preload[4 * PATH_MAX], tools[2 * PATH_MAX], shm[96];
    const char *others = getenv("LD_PRELOAD"), *other_tools = getenv("OMP_TOOL_LIBRARIES");
    struct child_variable variables[] = {
        {"LD_PRELOAD", preload}, {SHM_VARIABLE, shm}, {"OMP_TOOL_LIBRARIES", tools}, {NULL, NULL}};
    (void)snprintf(preload, sizeof preload, "%s%s%s%s%s%s%s", r->program.first,
                   *r->program.first ? ":" : "", r->preload.path, *r->libomp ? ":" : "", r->libomp,
                   others && *others ? ":" : "", others ? others : "");
    /* OpenMP loads the first tool that accepts: the user's comes first. */
    (void)snprintf(tools, sizeof tools, "%s%s%s", other_tools ? other_tools : "",
                   other_tools && *other_tools ? ":" : "", r->preload.openmp);
    /* ThreadSanitizer has a tool of its own, without which it ignores OpenMP's barriers. */
    if (!*r->preload.openmp || (r->program.sanitizers & PROGRAM_TSAN))
        variables[2].name = NULL;
    recorder_variable(&r->recorder, shm, sizeof shm);
    if (!child_start(&r->child, r->argv, variables, before_program, r))
        return false;
    r->recorder.root = r->child.pid;
    return true;
}

/* Reports a program that continues after it was asked to end. */
static void print_patience(struct recording *r)
{
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);
    if (r->patience_printed || !r->child.asked || now - r->child.asked_ns < PATIENCE_NS)
        return;
    r->patience_printed = true;
    print_message("%s is still running; one more signal ends the recording without it", r->argv[0]);
}

/* Prints one line on stderr, overwriting the previous one. */
static void show_progress(struct recording *r)
{
    struct collect_summary summary;
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);
    if (!r->progress || !r->recorder.program || r->recorder.stopped ||
        now < r->shown_ns + PROGRESS_NS)
        return;
    r->shown_ns = now;
    account_summarize(&r->recorder, r->recorder.program, &summary);
    terminal_control(stderr, "\r");
    fprintf(stderr,
            "trail: %" PRIu64 " thread%s, %" PRIu64 " wait%s, %" PRIu64
            " event%s, %.1f MB, %" PRIu64 " lost ",
            summary.threads, plural_s(summary.threads), summary.waits, plural_s(summary.waits),
            summary.events, plural_s(summary.events),
            (double)trace_bytes(r->recorder.program->to->trace) / 1e6, summary.lost_records);
    terminal_control(stderr, "\033[K");
}

/* Starts the viewer once there is a file to show. */
static void start_viewer(struct recording *r)
{
    const struct recorded *program = r->recorder.program;
    if (!program || !program->to->out.open || !program->to->out.current)
        return;
    viewer_start(&r->viewer, program->to->out.current, r->skip_file);
    r->view = false;
}

/* Waits for the next step, and takes it. */
static void wait_and_step(struct recording *r)
{
    if (child_wait(&r->child, recorder_pause_ns(&r->recorder),
                   r->options.limits.flight_ns ? r->flight_signal : 0))
        recorder_snapshot(&r->recorder);
    recorder_step(&r->recorder);
}

/*
 * The program has ended, but processes that it started may still run. Most end with it. Those that
 * do not, such as daemons, are recorded further with --children; without it, the recording ends
 * with the program, as the command alone would.
 */
static void follow_children(struct recording *r)
{
    int64_t since = (int64_t)clock_ns(CLOCK_MONOTONIC);
    bool noticed = false;
    child_let_go(&r->child);
    recorder_program_ended(&r->recorder);
    while (!r->child.ended && recorder_goes_on(&r->recorder)) {
        wait_and_step(r);
        if (noticed || (int64_t)clock_ns(CLOCK_MONOTONIC) - since <= NOTICE_NS)
            continue;
        noticed = true;
        if (!r->quiet)
            print_message(r->options.outliving
                              ? "%s has ended; processes that it started are recorded until they "
                                "end, or Ctrl-C"
                              : "the recording has ended with %s; processes that it started are "
                                "still running: --children records them until they end",
                          r->argv[0]);
        if (!r->options.outliving)
            break;
    }
}

static void run_program(struct recording *r)
{
    while (!r->child.ended) {
        wait_and_step(r);
        if (r->view)
            start_viewer(r);
        show_progress(r);
        print_patience(r);
    }
    end_progress(r);
    if (r->child.given_up)
        print_message("the recording has ended; %s continues as process %d", r->argv[0],
                      (int)r->child.pid);
    if (!r->child.given_up && (r->options.outliving || recorder_has_others(&r->recorder)))
        follow_children(r);
}

/* Losses between two files of a rotated trace do not change the exit status. */
static void print_failure(void *context, const struct recorder_failure *failure)
{
    struct recording *r = context;
    int code = failure->path ? print_error(failure->path, failure->error)
                             : print_error_message(failure->error);
    r->code = worse_exit(r->code, code);
}

static void finish(struct recording *r)
{
    recorder_finish(&r->recorder);
    record_slow_print_left_out(&r->recorder);
    if (r->recorder.refused)
        print_message("refused to record %" PRIu64
                      " process%s that claimed to be of the program, but %s not",
                      r->recorder.refused, r->recorder.refused == 1 ? "" : "es",
                      r->recorder.refused == 1 ? "was" : "were");
}

/* Records until a signal, or the end of the recording. */
static void record_others(struct recording *r)
{
    print_message("waiting at %s; Ctrl-C ends the recording", r->options.shm);
    child_none(&r->child);
    while (!r->child.ended && !r->recorder.stopped)
        wait_and_step(r);
    finish(r);
}

/* MARK: A process that runs */

struct attaching {
    struct attach *attach;
    struct recorder *recorder;
    bool (*action)(struct attaching *a);
    trail_error err;
    bool good;
    bool done; /* atomic */
};

static void *attach_in_thread(void *context)
{
    struct attaching *a = context;
    a->good = a->action(a);
    __atomic_store_n(&a->done, true, __ATOMIC_RELEASE);
    return NULL;
}

static void take_found(void *recorder, const struct shm_waiting *found)
{
    if (found)
        recorder_announce_thread(recorder, found);
    else
        recorder_forget_threads(recorder);
}

static bool join(struct attaching *a)
{
    char word[128];
    recorder_variable(a->recorder, word, sizeof word);
    return attach_join(a->attach, word, take_found, a->recorder, &a->err);
}

static bool leave(struct attaching *a)
{
    return attach_leave(a->attach, &a->err);
}

/* Steps the recorder meanwhile, because it hands out the memory. */
static bool attach_do(struct recording *r, bool (*action)(struct attaching *a))
{
    struct attaching a = {
        .attach = &r->attach, .recorder = &r->recorder, .action = action, .err = no_error()};
    pthread_t thread;
    if (pthread_create(&thread, NULL, attach_in_thread, &a) != 0) {
        r->code = worse_exit(r->code, refuse("cannot start a thread"));
        return false;
    }
    while (!__atomic_load_n(&a.done, __ATOMIC_ACQUIRE)) {
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        recorder_step(&r->recorder);
    }
    (void)pthread_join(thread, NULL);
    if (!a.good)
        r->code = worse_exit(r->code, print_error_message(&a.err));
    return a.good;
}

/* A process that could not be recorded when it joined will not join again. */
static bool process_goes_on(const struct recording *r)
{
    const struct recorded *program = r->recorder.program;
    return !r->recorder.stopped && (program ? !program->over : !r->recorder.failed);
}

static bool renew(struct attaching *a)
{
    return attach_renew(a->attach, &a->err);
}

/* Libraries that the process loads are recorded, too: checks for them twice a second. */
static void look_for_libraries(struct recording *r)
{
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);
    if (now < r->looked_ns + LOOK_NS)
        return;
    r->looked_ns = now;
    if (attach_has_changed(&r->attach))
        (void)attach_do(r, renew);
}

/* A zombie counts as ended: its parent may not reap it for a long time. */
static bool is_alive(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {fd, POLLIN, 0};
    bool ended = fd < 0 ? errno == ESRCH : poll(&end, 1, 0) > 0;
    if (fd >= 0)
        close(fd);
    return !ended;
}

/* Records a running process until it ends, a signal, or the end of the recording. */
static void record_process(struct recording *r)
{
    child_none(&r->child);
    if (attach_do(r, join)) {
        while (!r->child.ended && process_goes_on(r)) {
            wait_and_step(r);
            look_for_libraries(r);
            show_progress(r);
        }
        end_progress(r);
        if (is_alive(r->options.process)) {
            recorder_stop(&r->recorder);
            (void)attach_do(r, leave);
        }
    }
    finish(r);
}

static size_t count_processes(const struct recording *r)
{
    size_t count = 0;
    for (const struct recorded *p = r->recorder.processes; p; p = p->next)
        count++;
    return count;
}

/* Returns the rows of all processes, in the order in which they began; NULL: out of memory. */
static struct record_summary_process *make_rows(const struct recording *r, size_t count)
{
    struct record_summary_process *all = calloc(count + 1, sizeof *all);
    size_t at = count;
    for (const struct recorded *p = r->recorder.processes; all && p && at > 0; p = p->next) {
        all[--at] = (struct record_summary_process){.title = *p->title ? p->title : NO_TITLE,
                                                    .path = r->recorder.shared ? NULL : p->to->path,
                                                    .pid = (int)p->pid,
                                                    .cost_ns = p->cost_ns,
                                                    .why = p->why};
        account_summarize(&r->recorder, p, &all[at].summary);
        all[at].cpu_ns = account_cpu_ns(p, &all[at].summary);
    }
    return all;
}

/* The CPU time of the processes whose times are shown, where the trace does not have it exactly;
 * else -1. */
static int64_t sum_of_clocks(const struct collect_summary *summary,
                             const struct record_summary_process *all, size_t count)
{
    int64_t sum = 0;
    if (!all || (!summary->switches && summary->unseen_ns == 0))
        return -1;
    for (size_t i = 0; i < count; i++)
        sum += all[i].left_out ? 0 : all[i].cpu_ns;
    return sum;
}

/* Prints the summary of the trace that all processes share. */
static void print_shared(const struct recording *r, struct record_summary_process *all,
                         size_t count, int64_t cpu_ns)
{
    struct collect_summary summary;
    char about[RECORD_SUMMARY_ABOUT];
    if (account_summarize_all(&r->recorder, &summary) > 0) {
        for (size_t i = 0; all && i < count; i++)
            all[i].left_out = account_only_waits(&all[i].summary);
    }
    cpu_ns = cpu_ns < 0 ? sum_of_clocks(&summary, all, count) : cpu_ns;
    record_summary_print(&summary, r->recorder.shared->path, summary.left ? -1 : cpu_ns,
                         all ? record_summary_about(all, count, about) : NULL);
}

/* If there are more processes, only the first has a summary of its own. */
#define FEW_PROCESSES 3

/* Prints the summary of each process that has its own trace. */
static void print_own(const struct recording *r, size_t count, int64_t cpu_ns)
{
    struct collect_summary summary;
    for (struct recorded *p = r->recorder.processes; p; p = p->next) {
        if (count > FEW_PROCESSES && p != r->recorder.program)
            continue;
        account_summarize(&r->recorder, p, &summary);
        /* The CPU time would include what the process executed later. */
        record_summary_print(&summary, p->to->path, summary.left ? -1 : cpu_ns, NULL);
    }
}

static void print_summaries(const struct recording *r)
{
    const struct recorder *recorder = &r->recorder;
    size_t count = count_processes(r);
    struct record_summary_process *all = make_rows(r, count);
    uint64_t turned_away = 0, confined = 0;
    /* With several processes, it is unknown which one was meant. */
    bool known =
        count == 1 && !r->options.shm && !r->options.process && recorder->executed.count == 0;
    int64_t cpu_ns = known ? record_summary_cpu_ns(RUSAGE_CHILDREN) : -1;
    for (size_t i = 0; all && i < count; i++) {
        turned_away += all[i].summary.turned_away;
        confined += all[i].summary.confined;
    }
    if (recorder->shared)
        print_shared(r, all, count, cpu_ns);
    else
        print_own(r, count, cpu_ns);
    if (count > 1 && all)
        record_summary_print_all(all, count, recorder->program ? (int)recorder->program->pid : 0);
    if (all)
        record_summary_print_left(all, count);
    free(all);
    record_summary_print_executed(&recorder->executed, turned_away);
    if (turned_away > 0)
        print_message(
            "%" PRIu64
            " process%s not recorded: processes started faster than the recorder could accept them",
            turned_away, turned_away == 1 ? " was" : "es were");
    if (confined > 0)
        print_message(
            "%" PRIu64
            " process%s not recorded: forked or executed under a seccomp filter, which could have "
            "killed %s for what the recorder does",
            confined, confined == 1 ? " was" : "es were", confined == 1 ? "it" : "them");
}

/* Reports losses that no summary counts. */
static void print_cut_files(void)
{
    uint64_t pages = mapped_files_cut();
    if (pages)
        print_message("the shared memory or a library of the program became shorter while it was "
                      "read: %" PRIu64 " page%s of it missing",
                      pages, pages == 1 ? " is" : "s are");
    print_refused_file();
}

static void print_pause(const struct recording *r)
{
    char pause[DURATION_SIZE];
    print_message("a thread of process %d was delayed by up to %s", (int)r->options.process,
                  show_duration_as(pause, r->attach.paused_ns, DURATION_WORDS));
}

static int record_program(struct recording *r)
{
    char program[FOLLOW_UP_SIZE];
    if (r->options.shm) {
        record_others(r);
        print_cut_files();
        if (!r->quiet)
            print_summaries(r);
        return r->code;
    }
    if (r->options.process) {
        record_process(r);
        print_cut_files();
        if (!r->quiet && r->recorder.processes)
            print_summaries(r);
        if (!r->quiet && r->attach.paused_ns > 0)
            print_pause(r);
        return r->code;
    }
    if (!start_program(r)) {
        int reason = errno;
        print_message("%s: %s", r->argv[0], strerror(reason));
        return reason == ENOENT ? 127 : 126;
    }
    run_program(r);
    finish(r);
    if (!r->recorder.program && !r->recorder.failed)
        print_message("%s did not load the recorder: nothing was recorded; see: trail doctor %s",
                      r->argv[0], shell_file(r->argv[0], program));
    print_cut_files();
    if (!r->quiet)
        print_summaries(r);
    viewer_finish(&r->viewer);
    return r->code == EXIT_GOOD ? child_exit_code(&r->child) : r->code;
}

static int look_at_process(struct recording *r)
{
    trail_error err = no_error();
    if (attach_look(&r->attach, r->options.process, r->preload.path, &err))
        return EXIT_GOOD;
    return print_error_message(&err);
}

static int record(struct recording *r)
{
    trail_error err = no_error();
    int code;
    mapped_files_guard();
    choose_output(r);
    if (recorder_open(&r->recorder, &r->options, &err))
        code = record_program(r);
    else
        code = err.code == TRAIL_USAGE ? print_error_message(&err)
                                       : print_error(r->options.output, &err);
    recorder_close(&r->recorder);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct recording *r = calloc(1, sizeof *r);
    int code;
    if (!r)
        return EXIT_INOUT;
    r->options.groups = UINT32_MAX;
    r->options.stacks = SHM_STACKS_UNWIND;
    r->options.min_wait_ns = 10000;
    r->options.hold_ns = 1000000;
    r->options.max_switches = SWITCH_PAUSE_RATE;
    r->options.version = 23;
    r->options.is_hurried = child_is_hurried;
    r->options.is_hurried_context = &r->child;
    r->options.failed = print_failure;
    r->options.failed_context = r;
    r->flight_signal = SIGUSR2;
    code = read_options(r, command, argc, argv);
    if (code == EXIT_GOOD && !r->options.shm && !r->options.process)
        code = look_at_program(r);
    /* Annotations are few, and always recorded. */
    r->options.groups |= SHM_GROUP_ANNOTATIONS;
    if (r->options.heap)
        r->options.groups |= SHM_GROUP_HEAP;
    if (code == EXIT_GOOD &&
        !(r->options.heap ? preload_path_with_heap(&r->preload) : preload_path(&r->preload)))
        code = refuse(r->preload.wrong);
    if (code == EXIT_GOOD && r->options.process)
        code = look_at_process(r);
    if (code == EXIT_GOOD)
        code = choose_libomp(r);
    if (code == EXIT_GOOD)
        code = record(r);
    skip_frames_free(r->skip_frames);
    record_slow_free(&r->slow);
    free(r);
    return code;
}

const struct command command_record = {
    COMMAND_ROW(record),
    .synopsis = "[options] -- PROGRAM [ARGUMENT...]",
    .details =
        "Runs the program with a library that sees its locks, conditions, I/O, sleeps and "
        "threads, and writes an execution trace with stacks and wakers. No rebuild, no root. The "
        "program's exit status is passed on; 128 + n if signal n ended it.",
    .examples = "  trail record -- ./server --port=8080\n"
                "  trail record --view -- ./server --port=8080\n"
                "  trail record -p $(pidof server) --duration=10s\n"
                "  trail record -o pigz.trace -- pigz -k big.tar && go tool trace pigz.trace\n",
    .no_input = true,
    .has_command = true,
};
