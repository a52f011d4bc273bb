/* The command: starts the scheduler and then the trace, does the work, stops both. */
#include "scheduler.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "scheduler - a work-stealing coroutine scheduler that traces itself\n"
    "\n"
    "Usage: scheduler [options] -o FILE\n"
    "\n"
    "Options:\n"
    "  -o FILE          write the trace to FILE\n"
    "  --format=F       1.7, 1.11, 1.19, 1.21, 1.22, 1.23 (default) or 1.26\n"
    "  --work=WORK      echo: a TCP server and its clients (default); pipeline: a sieve and a\n"
    "                   word count; all: both, and everything else that can be in a trace\n"
    "  --seconds=N      repeat the work for N seconds; without, it is done once\n"
    "  --seed=N         of what is random (default 1)\n"
    "  --procs=N        how many coroutines run at once, 1 to 15 (default 4)\n"
    "  --alloc-free     record single objects, spans and stacks too (1.23, 1.26)\n"
    "  --before=F       record a trace of format F first, and throw it away\n"
    "  --busy           work goes on while the trace starts and stops\n"
    "  --log=FILE       write what the tracer was called with, to compare\n"
    "  --help           show this text\n";

struct command {
    const char *output, *work, *log;
    unsigned procs;
    uint64_t seed, seconds;
    trail_options trace;
    int before; /* format of a first trace that is discarded; 0: none */
    bool busy;
    _Atomic bool enough; /* of being busy */
    struct sema start;
    sem_t ready; /* what exists when the trace starts */
    sem_t done;  /* the work; being busy */
};

/* MARK: The command line */

static _Noreturn void wrong(const char *what, const char *value)
{
    fprintf(stderr, "scheduler: %s '%s'; see scheduler --help\n", what, value);
    exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t max)
{
    char *end;
    unsigned long long n;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-' || n > max)
        wrong(name, text);
    return n;
}

static int format(const char *text)
{
    static const int known[] = {7, 11, 19, 21, 22, 23, 26};
    uint64_t n = strncmp(text, "1.", 2) == 0 ? number("format", text + 2, 99) : 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if ((uint64_t)known[i] == n)
            return known[i];
    wrong("format", text);
}

enum { FORMAT = 256, WORK, SECONDS, SEED, PROCS, ALLOC_FREE, BEFORE, BUSY, LOG, HELP };

static void take_option(struct command *c, int option)
{
    switch (option) {
    case 'o':
        c->output = optarg;
        break;
    case FORMAT:
        c->trace.format = format(optarg);
        break;
    case WORK:
        c->work = optarg;
        if (strcmp(c->work, "echo") != 0 && strcmp(c->work, "pipeline") != 0 &&
            strcmp(c->work, "all") != 0)
            wrong("work", optarg);
        break;
    case SECONDS:
        c->seconds = number("seconds", optarg, 1000000);
        break;
    case SEED:
        c->seed = number("seed", optarg, UINT64_MAX);
        break;
    case PROCS:
        c->procs = (unsigned)number("procs", optarg, MAX_PROCS - 1);
        if (!c->procs)
            wrong("procs", optarg);
        break;
    case ALLOC_FREE:
        c->trace.alloc_free = sched.alloc_free = true;
        break;
    case BEFORE:
        c->before = format(optarg);
        break;
    case BUSY:
        c->busy = true;
        break;
    case LOG:
        c->log = optarg;
        break;
    case HELP:
        fputs(help, stdout);
        exit(0);
    default:
        exit(2);
    }
}

static void parse(struct command *c, int argc, char **argv)
{
    static const struct option options[] = {{"format", required_argument, NULL, FORMAT},
                                            {"work", required_argument, NULL, WORK},
                                            {"seconds", required_argument, NULL, SECONDS},
                                            {"seed", required_argument, NULL, SEED},
                                            {"procs", required_argument, NULL, PROCS},
                                            {"alloc-free", no_argument, NULL, ALLOC_FREE},
                                            {"before", required_argument, NULL, BEFORE},
                                            {"busy", no_argument, NULL, BUSY},
                                            {"log", required_argument, NULL, LOG},
                                            {"help", no_argument, NULL, HELP},
                                            {0}};
    int option;
    while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1)
        take_option(c, option);
    if (optind < argc)
        wrong("unexpected argument", argv[optind]);
    if (!c->output)
        wrong("no output: -o FILE", "");
}

/* MARK: Work */

static void expect(const char *what, unsigned got, unsigned expected)
{
    if (got == expected)
        return;
    fprintf(stderr, "scheduler: %s: %u instead of %u\n", what, got, expected);
    exit(1);
}

static void work_once(const char *work)
{
    bool all = strcmp(work, "all") == 0;
    if (all || strcmp(work, "echo") == 0)
        expect("echo", echo(8, 20), 160);
    if (all || strcmp(work, "pipeline") == 0) {
        expect("primes below 200", sieve(200), 46);
        expect("words", count_words(4, 1000), 1000);
    }
}

static void be_busy(void *argument)
{
    struct command *c = argument;
    while (!atomic_load(&c->enough))
        work_once("pipeline");
    sem_post(&c->done);
}

/* The first coroutine. */
static void run(void *argument)
{
    struct command *c = argument;
    int64_t end_ns;
    timer_start();
    heap_start();
    if (c->busy)
        go(be_busy, c);
    if (strcmp(c->work, "all") == 0)
        tour_before();
    sem_post(&c->ready);
    sema_wait(&c->start, TRAIL_BLOCK_UNSPECIFIED);
    if (strcmp(c->work, "all") == 0)
        tour();
    end_ns = now_ns() + (int64_t)c->seconds * 1000000000;
    do
        work_once(c->work);
    while (now_ns() < end_ns);
    sem_post(&c->done);
}

static void check(bool good, const char *what, const trail_error *err)
{
    if (good)
        return;
    fprintf(stderr, "scheduler: %s: %s\n", what, err->message);
    exit(1);
}

static void start_trace(const trail_options *options, int fd)
{
    trail_error err = {0};
    check(trail_start_fd(options, fd, &err), "start", &err);
}

/* After one stopped world, every event whose line has + has been reported to the tracer. */
static void stop_trace(void)
{
    trail_error err = {0};
    if (sched.log) {
        atomic_store(&sched.log_sure, false);
        world_stop();
        world_start();
    }
    check(trail_stop(&err), "stop", &err);
}

/* States and sequence numbers continue from one trace to the next, whatever the formats. */
static void throw_one_away(int format)
{
    trail_options options = {.format = format};
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    start_trace(&options, fd);
    usleep(1000); /* coroutines begin meanwhile */
    stop_trace();
    close(fd);
}

static void wait_for(sem_t *s)
{
    while (sem_wait(s) != 0)
        ;
}

static void print_stats(void)
{
    trail_stats s;
    trail_stats_get(&s);
    if (s.lost_events || s.lost_bytes || s.misuse)
        fprintf(stderr, "scheduler: lost %llu events, %llu bytes; %llu in a wrong order\n",
                (unsigned long long)s.lost_events, (unsigned long long)s.lost_bytes,
                (unsigned long long)s.misuse);
}

int main(int argc, char **argv)
{
    static const trail_alloc_info info = {.page_size = 4096, .object_align = 8, .min_stack = 4096};
    struct command c = {.work = "echo", .procs = 4, .seed = 1};
    int fd;
    parse(&c, argc, argv);
    fd = open(c.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        perror(c.output);
        return 1;
    }
    if (c.log)
        log_open(c.log);
    sem_init(&c.ready, 0, 0);
    sem_init(&c.done, 0, 0);
    trail_alloc_host(&info, heap_snapshot, NULL);
    sched_start(c.procs, c.seed);
    sched_run(run, &c);
    wait_for(&c.ready);
    if (c.before)
        throw_one_away(c.before);
    c.trace.task_word = "coroutine";
    start_trace(&c.trace, fd);
    atomic_store(&sched.log_sure, true);
    sema_post(&c.start);
    wait_for(&c.done);
    stop_trace();
    close(fd);
    atomic_store(&c.enough, true);
    if (c.busy)
        wait_for(&c.done);
    sched_stop();
    heap_stop();
    log_close();
    print_stats();
    return 0;
}
