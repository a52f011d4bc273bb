/*
 * libtrail-record as a guest of its host: no thread exists and no signal is handled except on
 * request. Prints violations. C99.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <trail/record.h>
#include <unistd.h>

static int failures;
static int own_threads; /* those of the program itself, and of a sanitizer */
static struct sigaction before[65];

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    int n = 0;
    while (tasks && (entry = readdir(tasks)))
        n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* A thread that was joined may be listed for some moments more. */
static void expect_threads(const char *when, int more)
{
    int n = 0;
    for (int tries = 0; tries < 5000 && (n = count_threads()) != own_threads + more; tries++)
        usleep(1000);
    if (n != own_threads + more) {
        printf("%s: %d threads more instead of %d\n", when, n - own_threads, more);
        failures++;
    }
}

static void expect_no_handlers(const char *when)
{
    for (int number = 1; number < 65; number++) {
        struct sigaction now;
        if (sigaction(number, NULL, &now) == 0 && now.sa_handler != before[number].sa_handler) {
            printf("%s: signal %d has another action\n", when, number);
            failures++;
        }
    }
}

static void expect(const char *when, int more_threads)
{
    expect_threads(when, more_threads);
    expect_no_handlers(when);
}

static bool take(void *bytes, const trail_chunk *chunk)
{
    *(size_t *)bytes += chunk->size;
    return true;
}

static void streams(void)
{
    trail_options nobody_reads = {.wait_ns = -1};
    size_t bytes = 0;
    failures += !trail_start(&nobody_reads, NULL);
    trail_log(0, "guest", "read by the program");
    expect("after trail_start", 0);
    (void)trail_stop(NULL);
    expect("after its stop", 0);

    failures += !trail_start_sink(NULL, take, &bytes, NULL);
    trail_log(0, "guest", "read by a sink");
    expect("after trail_start_sink", 1);
    failures += !trail_stop(NULL);
    expect("after its stop", 0);
    if (bytes < 100) {
        printf("the sink got %zu bytes\n", bytes);
        failures++;
    }
}

static void flight(void)
{
    size_t bytes = 0;
    failures += !trail_flight_start(NULL, NULL);
    expect("after trail_flight_start", 1);
    failures += !trail_start_sink(NULL, take, &bytes, NULL);
    expect("with a sink beside it", 1);
    failures += !trail_stop(NULL);
    trail_flight_stop();
    expect("after trail_flight_stop", 0);
}

/* The one signal that can be asked for. Afterwards one that is on its way does not end the program. */
static void samples(void)
{
    trail_options sampling = {.cpu_hz = 100, .wait_ns = -1};
    struct sigaction now;
    failures += !trail_start(&sampling, NULL);
    if (sigaction(SIGPROF, NULL, &now) != 0 || now.sa_handler == before[SIGPROF].sa_handler) {
        printf("cpu_hz: SIGPROF has no handler\n");
        failures++;
    }
    before[SIGPROF].sa_handler = SIG_IGN;
    (void)trail_stop(NULL);
    expect("after a trace with cpu_hz", 0);
}

int main(void)
{
    trail_m m;
    trail_p p;
    trail_g g;
    own_threads = count_threads();
    for (int number = 1; number < 65; number++)
        (void)sigaction(number, NULL, &before[number]);
    trail_log(0, "guest", "nobody listens");
    expect("before the first call", 0);
    trail_m_start(&m);
    trail_p_init(&p, 0);
    trail_g_init(&g);
    trail_proc_start(&m, &p);
    trail_go_create(&m, &g, 0, 0);
    trail_go_start(&m, &g);
    expect("after trail_m_start", 0);
    streams();
    flight();
    samples();
    trail_go_end(&m);
    trail_proc_stop(&m);
    trail_m_exit(&m);
    return failures != 0;
}
