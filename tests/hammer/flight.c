/*
 * The flight recorder for as many events as weeks bring, in minutes: threads that come and go write
 * events as fast as they can, generations last 1 ms, the wall clock jumps by hours.
 *
 * usage: hammer-flight [EVENTS [SEED]]      1e8 events if not given; 1e10 take about ten minutes
 *
 * Not a test: how many events a second come, and how much memory the allocator keeps, depends on
 * the machine. About once a second it takes a snapshot, which must be a trace that the strict
 * reader accepts, with consecutive marks up to the last one before the snapshot, later times than
 * the snapshot before, and the current wall clock. Prints the resident memory at each tenth of the
 * events.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../tracer/trace.h"
#include "base/clock.h"

enum { WRITERS = 2, CALLS = 20000, LINES = 10 };

#define GENERATION_NS INT64_C(1000000)
#define HOUR_NS       INT64_C(3600000000000)
#define SECOND_NS     INT64_C(1000000000)

/* What a snapshot says. */
struct said {
    int64_t first_ns, last_ns, wall_s;
    uint64_t first_mark, end_mark; /* marks are numbered; [first, end) */
    bool has_gap;
};

static int64_t wall_step_ns; /* atomic: what was added to the wall clock */
static uint64_t written;     /* atomic: events of threads that have ended */
static bool quit;            /* atomic */

/* Takes the place of the C library's: the tracer reads the wall clock by it. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME)
        time->tv_sec += __atomic_load_n(&wall_step_ns, __ATOMIC_RELAXED) / SECOND_NS;
    return result;
}

/* MARK: Writers */

/* A region is two events. */
static void *write_events(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < CALLS; i++) {
        trail_region_begin(0, "work");
        trail_region_end(0, "work");
    }
    __atomic_add_fetch(&written, 2 * CALLS, __ATOMIC_RELAXED);
    return NULL;
}

/* Starts a thread of writers after the other. */
static void *start_writers(void *unused)
{
    pthread_t thread;
    (void)unused;
    while (!__atomic_load_n(&quit, __ATOMIC_RELAXED)) {
        if (pthread_create(&thread, NULL, write_events, NULL) != 0)
            abort();
        (void)pthread_join(thread, NULL);
    }
    return NULL;
}

/* MARK: Snapshots */

static void see(trail_reader *reader, const trail_event *event, void *context)
{
    struct said *said = context;
    char text[32] = "";
    if (said->first_ns == 0)
        said->first_ns = event->time_ns;
    said->last_ns = event->time_ns;
    if (event->kind == TRAIL_SYNC && event->sync.snapshot)
        said->wall_s = event->sync.snapshot->wall_s;
    if (event->kind != TRAIL_LOG)
        return;
    trail_string message = trail_reader_string(reader, event->log.message);
    memcpy(text, message.data, message.size < sizeof text ? message.size : 0);
    uint64_t mark = strtoull(text, NULL, 10);
    if (said->end_mark == 0)
        said->first_mark = mark;
    else
        said->has_gap |= mark != said->end_mark;
    said->end_mark = mark + 1;
}

static void fail(const char *what)
{
    fprintf(stderr, "flight: %s\n", what);
    exit(1);
}

static void take(struct trace *to)
{
    uint64_t size = 0;
    trail_error err;
    int fd = memfd_create("snapshot", 0);
    if (fd < 0 || !trail_flight_snapshot(fd, &size, &err))
        fail(fd < 0 ? "memfd_create" : err.message);
    if (to->capacity < size) {
        to->data = realloc(to->data, size);
        to->capacity = size;
    }
    to->size = size;
    if (!to->data || pread(fd, to->data, size, 0) != (ssize_t)size)
        fail("the snapshot cannot be read");
    (void)close(fd);
}

/* `marks`: so many were written before the snapshot. Returns the number of its events. */
static long check(const struct trace *trace, uint64_t marks, struct said *last)
{
    struct said said = {0};
    trail_error err;
    int64_t wall_s = (int64_t)clock_ns(CLOCK_REALTIME) / SECOND_NS;
    long events = trace_read(trace, see, &said, &err);
    if (events < 0)
        fail(err.message);
    if (said.has_gap || said.end_mark != marks)
        fail("marks are missing");
    if (said.last_ns <= last->last_ns || said.first_mark < last->first_mark)
        fail("time went backwards");
    if (said.wall_s < wall_s - 60 || said.wall_s > wall_s)
        fail("it has another wall clock");
    *last = said;
    return events;
}

/* MARK: All */

static long resident_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        fail("/proc/self/statm");
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void start(void)
{
    trail_error err;
    trail_flight_options options = {
        .trace = {.format = 26, .unwinder = TRAIL_UNWIND_NONE, .generation_ns = GENERATION_NS},
        .min_age_ns = SECOND_NS / 5,
        .max_bytes = (size_t)64 << 20,
    };
    if (!trail_flight_start(&options, &err))
        fail(err.message);
}

/* A mark each millisecond for `ns`. */
static uint64_t put_marks(uint64_t marks, int64_t ns)
{
    const struct timespec pause = {0, GENERATION_NS};
    for (int64_t end = now_ns() + ns; now_ns() < end; marks++) {
        trail_logf(0, "mark", "%" PRIu64, marks);
        (void)nanosleep(&pause, NULL);
    }
    return marks;
}

int main(int argc, char **argv)
{
    double wanted = argc > 1 ? strtod(argv[1], NULL) : 1e8;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    pthread_t writers[WRITERS];
    struct trace trace = {0};
    struct said last = {0};
    uint64_t marks = 0, events = 0;
    long most_kb = 0, snapshots = 0;
    start();
    for (size_t i = 0; i < WRITERS; i++)
        if (pthread_create(&writers[i], NULL, start_writers, NULL) != 0)
            fail("pthread_create");
    for (unsigned line = 1; line <= LINES;) {
        marks = put_marks(marks, SECOND_NS);
        take(&trace);
        long in_trace = check(&trace, marks, &last);
        snapshots++;
        __atomic_store_n(&wall_step_ns, (rand_r(&seed) % 49 - 24) * HOUR_NS, __ATOMIC_RELAXED);
        long kb = resident_kb();
        most_kb = kb > most_kb ? kb : most_kb;
        events = __atomic_load_n(&written, __ATOMIC_RELAXED);
        if ((double)events < wanted * line / LINES)
            continue;
        printf("%12" PRIu64 " events, %ld snapshots, the last of %ld events; %ld KB, at most %ld\n",
               events, snapshots, in_trace, kb, most_kb);
        (void)fflush(stdout);
        line++;
    }
    __atomic_store_n(&quit, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < WRITERS; i++)
        (void)pthread_join(writers[i], NULL);
    trail_stats stats;
    trail_stats_get(&stats);
    trail_flight_stop();
    trace_free(&trace);
    printf("lost: %" PRIu64 " events, %" PRIu64 " generations, %" PRIu64 " bytes; misused: %" PRIu64
           "\n",
           stats.lost_events, stats.lost_generations, stats.lost_bytes, stats.misuse);
    return stats.lost_events || stats.lost_generations || stats.lost_bytes || stats.misuse;
}
