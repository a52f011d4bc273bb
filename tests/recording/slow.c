/*
 * Executes commands read from its input, and answers each with a line: the longest that the task,
 * region or wait can have lasted, in ns, if one has ended. So the test decides how long each takes.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <trail/record.h>
#include <unistd.h>

#include "asleep.h"
#include "check.h"

static pthread_mutex_t stats_mu = PTHREAD_MUTEX_INITIALIZER;
static sem_t jobs;
static pid_t worker_tid;
static pthread_t worker_thread;
static uint64_t task;
static char name[100];
static int64_t begin;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void *worker(void *for_job)
{
    __atomic_store_n(&worker_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    if (for_job) {
        while (sem_wait(&jobs) != 0)
            ;
    } else {
        pthread_mutex_lock(&stats_mu);
        pthread_mutex_unlock(&stats_mu);
    }
    return NULL;
}

/* Returns when the worker sleeps. */
static void start_worker(void *for_job)
{
    worker_tid = 0;
    CHECK(pthread_create(&worker_thread, NULL, worker, for_job) == 0);
    until_asleep(&worker_tid);
}

static int64_t since_begin(void)
{
    return now() - begin;
}

static int64_t obey(const char *word)
{
    int64_t lasted = 0;
    if (strcmp(word, "task") == 0) {
        begin = now();
        task = trail_task_begin(0, name);
    } else if (strcmp(word, "end") == 0) {
        trail_task_end(task);
        lasted = since_begin();
    } else if (strcmp(word, "region") == 0) {
        begin = now();
        trail_region_begin(0, name);
    } else if (strcmp(word, "leave") == 0) {
        trail_region_end(0, name);
        lasted = since_begin();
    } else if (strcmp(word, "hold") == 0) {
        begin = now();
        pthread_mutex_lock(&stats_mu);
        start_worker(NULL);
    } else if (strcmp(word, "release") == 0) {
        pthread_mutex_unlock(&stats_mu);
        pthread_join(worker_thread, NULL);
        lasted = since_begin();
    } else if (strcmp(word, "idle") == 0) {
        begin = now();
        start_worker(&jobs);
    } else if (strcmp(word, "job") == 0) {
        sem_post(&jobs);
        pthread_join(worker_thread, NULL);
        lasted = since_begin();
    } else {
        CHECK(!word);
    }
    return lasted;
}

int main(void)
{
    char line[200], word[20];
    CHECK(sem_init(&jobs, 0, 0) == 0);
    while (fgets(line, sizeof line, stdin)) {
        CHECK(sscanf(line, "%19s %99[^\n]", word, name) >= 1);
        printf("%lld\n", (long long)obey(word));
        fflush(stdout);
    }
    return 0;
}
