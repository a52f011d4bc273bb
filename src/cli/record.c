/*
 * trail record: runs a program with libtrail-preload.so in it, and writes the execution trace of its threads.
 *
 * The program writes raw records into memory that it shares with this process; here they become a trace
 * (src/collect/).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/cli.h"
#include "cli/preload_path.h"
#include "cli/program.h"
#include "cli/record_summary.h"
#include "cli/recorder.h"
#include "cli/values.h"
#include "cli/viewer.h"

enum {
    OPT_OUTPUT = 1,
    OPT_STACKS,
    OPT_ONLY,
    OPT_MIN_WAIT,
    OPT_HOLD,
    OPT_ALL,
    OPT_OPENMP,
    OPT_HEAP,
    OPT_CHILDREN,
    OPT_SWITCHES,
    OPT_CPU_SAMPLES,
    OPT_CPU_SIGNAL,
    OPT_ATTACH_SHM,
    OPT_DELAY,
    OPT_DURATION,
    OPT_FLIGHT,
    OPT_FLIGHT_SIGNAL,
    OPT_MAX_SIZE,
    OPT_ROTATE,
    OPT_PROGRESS,
    OPT_FORMAT,
    OPT_QUIET,
    OPT_VIEW,
};

static const struct option rows[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "where the trace goes (PROGRAM.trace)", NULL},
    {OPT_STACKS, 0, "stacks", "HOW",
     "unwind: by the unwind tables, in any program (the default);\n"
     "fp: by frame pointers; none",
     "unwind fp none"},
    {OPT_ONLY, 0, "only", "GROUPS",
     "record these only: locks, conditions, io, sleep, threads, openmp;\nseveral with commas",
     "locks conditions io sleep threads openmp"},
    {OPT_MIN_WAIT, 0, "min-wait", "TIME", "leave out calls that blocked for less (10us)", NULL},
    {OPT_HOLD, 0, "hold", "TIME", "record locks that were held for longer (1ms)", NULL},
    {OPT_ALL, 0, "all", NULL, "record every hold of every lock", NULL},
    {OPT_OPENMP, 0, "openmp", NULL,
     "run a program that gcc has built with LLVM's OpenMP library, which\ntells of parallel "
     "regions, tasks, barriers and locks",
     NULL},
    {OPT_HEAP, 0, "heap", NULL, "record how much memory of malloc the program has at each time",
     NULL},
    {OPT_CHILDREN, 0, "children", NULL,
     "record the processes that it starts, too: each has a trace,\nwith its PID in the name", NULL},
    {OPT_SWITCHES, 0, "switches", "WHEN",
     "ask the kernel when threads were really on a CPU: auto (the\ndefault): if it lets us; off; "
     "need: refuse to record without",
     "auto off need"},
    {OPT_CPU_SAMPLES, 0, "cpu-samples", "HZ",
     "have the kernel sample each thread's stack so often in a second of\nits CPU time", NULL},
    {OPT_CPU_SIGNAL, 0, "cpu-signal", NULL,
     "take these samples by a timer signal (PROF) in the program, where\nthe kernel gives none",
     NULL},
    {OPT_ATTACH_SHM, 0, "attach-shm", "FILE",
     "start no program: wait for those that find FILE by the variables of\n'trail env', until "
     "Ctrl-C",
     NULL},
    {OPT_DELAY, 0, "delay", "TIME", "begin to record after so long", NULL},
    {OPT_DURATION, 0, "duration", "TIME", "record for so long; the program goes on", NULL},
    {OPT_FLIGHT, 0, "flight", "TIME",
     "keep the newest so long in memory; it is written when the program\nends, in whatever way, "
     "and on a signal",
     NULL},
    {OPT_FLIGHT_SIGNAL, 0, "flight-signal", "NAME",
     "the signal to 'trail record' that has a snapshot written (USR2)", "USR1 USR2 HUP"},
    {OPT_MAX_SIZE, 0, "max-size", "BYTES", "end the recording when the trace is so large (64M)",
     NULL},
    {OPT_ROTATE, 0, "rotate", "AMOUNT",
     "begin another file after so many bytes (64M) or so long (60s)", NULL},
    {OPT_PROGRESS, 0, "progress", NULL, "show what is going on while the program runs", NULL},
    {OPT_FORMAT, 0, "format", "VERSION", "1.22, 1.23 (the default), 1.25 or 1.26",
     "1.22 1.23 1.25 1.26"},
    {OPT_QUIET, 'q', "quiet", NULL, "no summary", NULL},
    {OPT_VIEW, 0, "view", NULL,
     "look at the trace in the browser while the program runs, and\nafterwards until Ctrl-C", NULL},
    {0},
};

/* Between lines of progress. */
#define PROGRESS_NS 500000000

/* What the program has started may be about to end with it. */
#define TELL_NS 500000000

struct recording {
    struct recorder_options options;
    char default_output[4096];
    bool quiet, progress, openmp, view;
    int64_t shown_ns; /* when the last line of progress was; CLOCK_MONOTONIC */
    struct viewer viewer;
    char libomp[PATH_MAX]; /* to be loaded instead of gcc's; "": not */
    int flight_signal;
    char **argv;
    struct preload preload;
    struct program program;
    struct recorder recorder;
    struct child child;
};

/* MARK: Options */

static bool parse_only(const char *text, uint32_t *only)
{
    static const struct {
        const char *word;
        uint32_t bit;
    } groups[] = {{"locks", SHM_GROUP_LOCKS},     {"conditions", SHM_GROUP_CONDITIONS},
                  {"io", SHM_GROUP_IO},           {"sleep", SHM_GROUP_SLEEP},
                  {"threads", SHM_GROUP_THREADS}, {"openmp", SHM_GROUP_OPENMP}};

    /* Annotations are few, and wanted. */
    *only = SHM_GROUP_ANNOTATIONS;
    while (*text) {
        size_t length = strcspn(text, ","), i = 0;
        while (i < sizeof groups / sizeof groups[0] &&
               (strlen(groups[i].word) != length || strncmp(groups[i].word, text, length) != 0))
            i++;
        if (i == sizeof groups / sizeof groups[0])
            return false;
        *only |= groups[i].bit;
        text += length + (text[length] == ',');
    }
    return *only != SHM_GROUP_ANNOTATIONS;
}

static bool parse_word(const char *text, const char *const *words, int *number)
{
    for (*number = 0; words[*number]; ++*number) {
        if (strcmp(words[*number], text) == 0)
            return true;
    }
    return false;
}

/* The kernel takes 10000 at most (kernel.perf_event_max_sample_rate is more). */
static bool parse_rate(const char *text, unsigned *rate)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    *rate = (unsigned)number;
    return *text >= '0' && *text <= '9' && *end == '\0' && number >= 1 && number <= 10000;
}

/* False: the value is wrong. */
static bool take_option(struct recording *r, int id, const char *value)
{
    static const char *const switches[] = {"auto", "off", "need", NULL};
    static const char *const stacks[] = {"none", "unwind", "fp", NULL};
    static const char *const formats[] = {"1.22", "1.23", "1.25", "1.26", NULL};
    static const int versions[] = {22, 23, 25, 26};
    static const char *const signal_names[] = {"USR1", "USR2", "HUP", NULL};
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGHUP};
    int number;

    switch (id) {
    case OPT_OUTPUT:
        r->options.output = value;
        return true;
    case OPT_STACKS:
        if (!parse_word(value, stacks, &number))
            return false;
        r->options.stacks = (uint32_t)number;
        return true;
    case OPT_ONLY:
        return parse_only(value, &r->options.groups);
    case OPT_MIN_WAIT:
        return parse_time(value, &r->options.min_wait_ns);
    case OPT_HOLD:
        return parse_time(value, &r->options.hold_ns);
    case OPT_ALL:
        r->options.all_holds = true;
        return true;
    case OPT_OPENMP:
        r->openmp = true;
        return true;
    case OPT_HEAP:
        r->options.heap = true;
        return true;
    case OPT_CHILDREN:
        r->options.children = true;
        return true;
    case OPT_SWITCHES:
        if (!parse_word(value, switches, &number))
            return false;
        r->options.switches = (enum recorder_switches)number;
        return true;
    case OPT_CPU_SAMPLES:
        return parse_rate(value, &r->options.cpu_samples);
    case OPT_CPU_SIGNAL:
        r->options.cpu_signal = true;
        return true;
    case OPT_ATTACH_SHM:
        r->options.shm = value;
        return true;
    case OPT_DELAY:
        return parse_time(value, &r->options.delay_ns);
    case OPT_DURATION:
        return parse_time(value, &r->options.duration_ns) && r->options.duration_ns > 0;
    case OPT_FLIGHT:
        return parse_time(value, &r->options.limits.flight_ns) && r->options.limits.flight_ns > 0;
    case OPT_FLIGHT_SIGNAL:
        if (!parse_word(value, signal_names, &number))
            return false;
        r->flight_signal = signals[number];
        return true;
    case OPT_MAX_SIZE:
        return parse_size(value, &r->options.max_size) && r->options.max_size > 0;
    case OPT_ROTATE:
        return parse_size(value, &r->options.limits.rotate_bytes) ||
               (parse_time(value, &r->options.limits.rotate_ns) && r->options.limits.rotate_ns > 0);
    case OPT_PROGRESS:
        r->progress = true;
        return true;
    case OPT_FORMAT:
        if (!parse_word(value, formats, &number))
            return false;
        r->options.version = versions[number];
        return true;
    case OPT_QUIET:
        r->quiet = true;
        return true;
    case OPT_VIEW:
        r->view = true;
        return true;
    default:
        return false;
    }
}

/*
 * Our options come before the program: what follows its name is its own. So the words are cut off in front of
 * the parser. Returns how many words are ours.
 */
static int own_words(int argc, char **argv)
{
    int i = 0;

    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
        const struct option *row = rows;
        const char *name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
        while (row->id && !(argv[i][1] == '-' ? strcmp(row->name, name) == 0
                                              : row->short_name == name[0] && !name[1]))
            row++;
        i += row->id && row->argument ? 2 : 1;
    }
    return i < argc ? i : argc;
}

static int read_options(struct recording *r, const struct command *command, int argc, char **argv)
{
    int own = own_words(argc, argv), id;
    struct options options;

    options_begin(&options, command, own, argv);
    while ((id = options_next(&options)) > 0) {
        if (!take_option(r, id, options.value))
            return usage_error(command, "'%s' is no value for this option", options.value);
    }
    if (id == OPTIONS_HELP)
        return OPTIONS_HELP;
    if (id == OPTIONS_WRONG)
        return EXIT_USAGE;
    r->argv = argv + own;
    if (own < argc && strcmp(argv[own], "--") == 0)
        r->argv++;
    if (r->options.cpu_signal && !r->options.cpu_samples)
        return usage_error(command, "--cpu-signal is about --cpu-samples=HZ: how many a second?");
    if (r->options.shm && r->argv < argv + argc)
        return usage_error(command, "--attach-shm starts no program");
    if (r->options.shm && r->openmp)
        return usage_error(command, "--openmp goes with a program: --attach-shm starts none");
    if (r->view &&
        (r->options.shm || r->options.limits.flight_ns || r->options.limits.rotate_bytes ||
         r->options.limits.rotate_ns || (r->options.output && strcmp(r->options.output, "-") == 0)))
        return usage_error(command, "--view goes with one file that grows: not with --attach-shm, "
                                    "--flight, --rotate or -o -");
    if (!r->options.shm && r->argv >= argv + argc)
        return usage_error(command, "which program? trail record -- PROGRAM [ARGUMENT...]");
    return EXIT_GOOD;
}

/* MARK: Before the start */

static int refuse(const char *why)
{
    fprintf(stderr, "trail: %s\n", why);
    return EXIT_USAGE;
}

static int look_at_program(struct recording *r)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): read_options saw to it that there is one. */
    program_inspect(&r->program, r->argv[0]);
    if (!program_refusal(&r->program))
        return EXIT_GOOD;
    fprintf(stderr, "trail: %s\n", program_refusal(&r->program));
    return program_exit_code(&r->program);
}

/* gcc's OpenMP library tells nobody what it does; LLVM's does, and has all of its functions. */
static int choose_libomp(struct recording *r)
{
    if (r->openmp && !*r->preload.openmp)
        return refuse("--openmp: libtrail-ompt.so is not there; install it with the command");
    if (r->openmp && !preload_libomp(r->libomp, sizeof r->libomp))
        return refuse("--openmp: LLVM's OpenMP library is not installed: apt install libomp5");
    return EXIT_GOOD;
}

/* NAME.trace in the current folder. */
static void choose_output(struct recording *r)
{
    const char *word = r->options.shm ? "app" : r->argv[0], *slash = strrchr(word, '/');

    if (r->options.output)
        return;
    (void)snprintf(r->default_output, sizeof r->default_output, "%s.trace",
                   slash ? slash + 1 : word);
    r->options.output = r->default_output;
}

/* MARK: Running */

/* In the new process: what it will be may join; its own output does not mix with a trace. */
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
    /* The first that wants to is loaded: the user's. */
    (void)snprintf(tools, sizeof tools, "%s%s%s", other_tools ? other_tools : "",
                   other_tools && *other_tools ? ":" : "", r->preload.openmp);
    /* ThreadSanitizer has a tool of its own, without which it takes OpenMP's barriers for nothing. */
    if (!*r->preload.openmp || (r->program.sanitizers & PROGRAM_TSAN))
        variables[2].name = NULL;
    recorder_variable(&r->recorder, shm, sizeof shm);
    if (!child_start(&r->child, r->argv, variables, before_program, r))
        return false;
    r->recorder.root = r->child.pid;
    return true;
}

/* One line on stderr, over and over. */
static void show_progress(struct recording *r)
{
    struct collect_summary summary;
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);

    if (!r->progress || !r->recorder.program || r->recorder.stopped ||
        now < r->shown_ns + PROGRESS_NS)
        return;
    r->shown_ns = now;
    collect_summarize(r->recorder.program->collect, &summary);
    fprintf(stderr,
            "\rtrail: %" PRIu64 " threads, %" PRIu64 " waits, %" PRIu64 " events, %.1f MB, %" PRIu64
            " lost \033[K",
            summary.threads, summary.waits, summary.events,
            (double)collect_bytes(r->recorder.program->collect) / 1e6, summary.lost_records);
}

static void end_progress(const struct recording *r)
{
    if (r->progress)
        fputs("\r\033[K", stderr);
}

/* When there is a file to look at. */
static void start_viewer(struct recording *r)
{
    const struct recorded *program = r->recorder.program;

    if (!program || !program->out.open || !program->out.current)
        return;
    viewer_start(&r->viewer, program->out.current);
    r->view = false;
}

/* Until the next step; and that. */
static void wait_and_step(struct recording *r)
{
    if (child_wait(&r->child, recorder_pause_ns(&r->recorder),
                   r->options.limits.flight_ns ? r->flight_signal : 0))
        recorder_snapshot(&r->recorder);
    recorder_step(&r->recorder);
}

/* A program that becomes a daemon ends at once: what it has started goes on. */
static void follow_children(struct recording *r)
{
    int64_t since = (int64_t)clock_ns(CLOCK_MONOTONIC);
    bool told = r->quiet;

    child_let_go(&r->child);
    recorder_program_ended(&r->recorder);
    while (!r->child.ended && recorder_goes_on(&r->recorder)) {
        wait_and_step(r);
        if (!told && (int64_t)clock_ns(CLOCK_MONOTONIC) - since > TELL_NS) {
            fprintf(stderr,
                    "trail: %s has ended; what it has started is recorded until it ends, too, or "
                    "Ctrl-C\n",
                    r->argv[0]);
            told = true;
        }
    }
}

static void run_program(struct recording *r)
{
    while (!r->child.ended) {
        wait_and_step(r);
        if (r->view)
            start_viewer(r);
        show_progress(r);
    }
    end_progress(r);
    if (r->options.children)
        follow_children(r);
}

/* Until a signal ends it, or the recording is over. */
static int record_others(struct recording *r)
{
    fprintf(stderr, "trail: waiting at %s; Ctrl-C ends the recording\n", r->options.shm);
    child_none(&r->child);
    while (!r->child.ended && !r->recorder.stopped)
        wait_and_step(r);
    return recorder_finish(&r->recorder);
}

static void tell_summaries(const struct recording *r)
{
    struct collect_summary summary;
    /* Of several processes nobody tells whose it was. */
    bool known = r->recorder.processes && !r->recorder.processes->next && !r->options.shm;
    int64_t cpu_ns = known ? record_summary_cpu_ns(RUSAGE_CHILDREN) : -1;

    for (struct recorded *p = r->recorder.processes; p; p = p->next) {
        recorder_summarize(&r->recorder, p, &summary);
        record_summary_print(&summary, p->path, cpu_ns);
    }
}

static int record_program(struct recording *r)
{
    int code;

    if (r->options.shm) {
        code = record_others(r);
        if (!r->quiet)
            tell_summaries(r);
        return code;
    }
    if (!start_program(r)) {
        int reason = errno;
        fprintf(stderr, "trail: %s: %s\n", r->argv[0], strerror(reason));
        return reason == ENOENT ? 127 : 126;
    }
    run_program(r);
    code = recorder_finish(&r->recorder);
    if (!r->recorder.program)
        fprintf(
            stderr,
            "trail: %s did not load the recorder: nothing was recorded; see 'trail doctor %s'\n",
            r->argv[0], r->argv[0]);
    if (!r->quiet)
        tell_summaries(r);
    viewer_finish(&r->viewer);
    return code == EXIT_GOOD ? child_exit_code(&r->child) : code;
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
    r->options.version = 23;
    r->flight_signal = SIGUSR2;
    code = read_options(r, command, argc, argv);
    if (code == EXIT_GOOD && !r->options.shm)
        code = look_at_program(r);
    if (r->options.heap)
        r->options.groups |= SHM_GROUP_HEAP;
    if (code == EXIT_GOOD &&
        !(r->options.heap ? preload_path_with_heap(&r->preload) : preload_path(&r->preload)))
        code = refuse(r->preload.wrong);
    if (code == EXIT_GOOD)
        code = choose_libomp(r);
    if (code == EXIT_GOOD) {
        choose_output(r);
        code = recorder_open(&r->recorder, &r->options) ? record_program(r)
               : r->recorder.code                       ? r->recorder.code
                                                        : EXIT_INOUT;
        recorder_close(&r->recorder);
    }
    free(r);
    return code == OPTIONS_HELP ? EXIT_GOOD : code;
}

const struct command command_record = {
    .name = "record",
    .summary = "run a program and record where its threads wait, for whom",
    .synopsis = "[options] -- PROGRAM [ARGUMENT...]",
    .details =
        "Runs the program with a library that sees its locks, conditions, I/O, sleeps and "
        "threads,\n"
        "and writes an execution trace with stacks, and with who woke whom. No rebuild, no root.\n"
        "The program's exit status is passed on; 128 + n if signal n ended it.\n",
    .examples = "  trail record -- ./server --port=8080\n"
                "  trail record --view -- ./server --port=8080\n"
                "  trail record -o pigz.trace -- pigz -k big.tar && go tool trace pigz.trace\n",
    .options = rows,
    .run = run,
};
