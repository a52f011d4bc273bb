/*
 * A small shop: three workers answer requests, a flusher writes their cache to disk now and then.
 * It has the faults that the documents look for (docs/questions.md):
 *
 *   shop          the flusher keeps cache_mu while it writes; request 7 waits for a slow supplier
 *   shop fixed    the flusher writes a copy, and does not hold cache_mu meanwhile
 *   shop stuck    the flusher takes cache_mu and log_mu in another order than a worker: deadlock
 *
 * What takes time only sleeps, so that the figures are about the same on every machine.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <trail/record.h>
#include <unistd.h>

enum { WORKERS = 3, REQUESTS = 12, SLOW_REQUEST = 7 };

struct request {
    int number;
    uint64_t task;
};

static pthread_mutex_t cache_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct request queue[REQUESTS];
static int queued, taken;
static bool closed, fixed, stuck;
static int supplier[2]; /* a pipe: what it sends arrives late */

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *supply(void *arg)
{
    (void)arg;
    sleep_ms(80);
    (void)!write(supplier[1], "x", 1);
    return NULL;
}

static void flush_once(void)
{
    pthread_mutex_lock(&cache_mu);
    if (fixed)
        pthread_mutex_unlock(&cache_mu);
    sleep_ms(15); /* the disk */
    if (stuck) {
        pthread_mutex_lock(&log_mu);
        pthread_mutex_unlock(&log_mu);
    }
    if (!fixed)
        pthread_mutex_unlock(&cache_mu);
}

static void *flush(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        flush_once();
        sleep_ms(5);
    }
    return NULL;
}

static void look_up(const struct request *request)
{
    trail_region_begin(request->task, "look up");
    if (stuck)
        pthread_mutex_lock(&log_mu);
    pthread_mutex_lock(&cache_mu);
    sleep_ms(1);
    pthread_mutex_unlock(&cache_mu);
    if (stuck)
        pthread_mutex_unlock(&log_mu);
    if (request->number == SLOW_REQUEST) {
        char answer;
        (void)!read(supplier[0], &answer, 1);
    }
    trail_region_end(request->task, "look up");
}

static void answer(struct request *request)
{
    trail_region_begin(request->task, "answer");
    trail_logf(request->task, "shop", "request %d", request->number);
    sleep_ms(2);
    trail_region_end(request->task, "answer");
    trail_task_end(request->task);
}

static bool take(struct request *request)
{
    pthread_mutex_lock(&queue_mu);
    while (taken == queued && !closed)
        pthread_cond_wait(&queue_filled, &queue_mu);
    bool any = taken < queued;
    if (any)
        *request = queue[taken++];
    pthread_mutex_unlock(&queue_mu);
    return any;
}

static void *work(void *arg)
{
    struct request request;
    (void)arg;
    while (take(&request)) {
        look_up(&request);
        answer(&request);
    }
    return NULL;
}

static void put(int number)
{
    pthread_mutex_lock(&queue_mu);
    queue[queued++] = (struct request){number, trail_task_begin(0, "request")};
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_mu);
}

int main(int argc, char **argv)
{
    pthread_t workers[WORKERS], flusher, supplies;
    fixed = argc > 1 && strcmp(argv[1], "fixed") == 0;
    stuck = argc > 1 && strcmp(argv[1], "stuck") == 0;
    if (pipe(supplier) != 0)
        return 1;
    pthread_create(&supplies, NULL, supply, NULL);
    pthread_create(&flusher, NULL, flush, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    for (int i = 1; i <= REQUESTS; i++) {
        sleep_ms(6);
        put(i);
    }
    if (stuck) {
        sleep_ms(200);
        _exit(0);
    }
    pthread_mutex_lock(&queue_mu);
    closed = true;
    pthread_cond_broadcast(&queue_filled);
    pthread_mutex_unlock(&queue_mu);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    pthread_join(flusher, NULL);
    pthread_join(supplies, NULL);
    return 0;
}
