/*
 * A program that works while it overwrites the memory shared with the recorder; a number seeds the
 * values and places. In every case it ends by itself with status 0, or at SIGTERM.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm/shm.h"

#define WORKERS 3
#define WRITES  400
#define WORDS   16 /* at a time */

static struct shm_area *area;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static volatile int over;

static void pause_us(long us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

/* The writes may have misled the C library, or the recorder's library in it. Only the program is
 * affected, and a crash is not a failure. */
static void leave(int number)
{
    (void)number;
    _exit(0);
}

static void find_area(void)
{
    unsigned long begin;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !area && fgets(line, sizeof line, maps)) {
        if (strstr(line, "memfd:trail") && sscanf(line, "%lx-", &begin) == 1)
            area = (struct shm_area *)begin;
    }
    if (maps)
        fclose(maps);
}

/* MARK: Work */

static void *work(void *arg)
{
    int mine = (int)(long)arg;
    while (!over) {
        pthread_mutex_lock(&mutex);
        while (turn != mine && !over)
            pthread_cond_wait(&changed, &mutex);
        turn = (turn + 1) % WORKERS;
        pthread_cond_broadcast(&changed);
        pause_us(30);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *nothing(void *arg)
{
    return arg;
}

/* MARK: Damage */

static unsigned long long state;

static unsigned long long next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Only the parts in use: others are not read. */
static size_t place(void)
{
    static const struct {
        size_t begin, size;
    } parts[] = {
        {0, sizeof(struct shm_header)},
        {offsetof(struct shm_area, threads), 12 * sizeof(struct shm_thread)},
        {offsetof(struct shm_area, chunks), 12 * SHM_CHUNK_SIZE},
        {offsetof(struct shm_area, objects), sizeof(struct shm_object) * SHM_OBJECTS},
        {offsetof(struct shm_area, stack_words), 4096},
        {offsetof(struct shm_area, modules), 2048},
        {offsetof(struct shm_area, generations), 64},
        {offsetof(struct shm_area, stack_index), sizeof(uint32_t) * SHM_STACK_INDEX},
    };
    unsigned only = (unsigned)(state % 11); /* some seeds write to one part only */
    size_t i = only < 8 && next() % 4 ? only : next() % 8;
    return parts[i].begin + next() % parts[i].size / 4 * 4;
}

static uint32_t value(const uint32_t *old)
{
    switch (next() % 8) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX;
    case 2:
        return (uint32_t)(next() % 32);
    case 3:
        return *old + (uint32_t)(next() % 3) - 1;
    case 4:
        return *old ^ 1u << next() % 32;
    case 5:
        return *(const uint32_t *)((const char *)area + place());
    case 6:
        return INT32_MAX;
    default:
        return (uint32_t)next();
    }
}

static void *damage(void *arg)
{
    (void)arg;
    for (int i = 0; i < WRITES && !over; i++) {
        for (int k = 0; k < WORDS; k++) {
            uint32_t *at = (uint32_t *)((char *)area + place());
            __atomic_store_n(at, value(at), __ATOMIC_RELAXED);
        }
        pause_us(200);
    }
    over = 1;
    return NULL;
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGTERM};
    pthread_t workers[WORKERS], other;
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        signal(deadly[i], leave);
    state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15 + 1 : 1;
    find_area();
    if (!area) {
        fputs("there is no shared memory\n", stderr);
        return 2;
    }
    for (long i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, (void *)i);
    pthread_create(&other, NULL, damage, NULL);
    while (!over) {
        pthread_t brief;
        if (pthread_create(&brief, NULL, nothing, NULL) == 0)
            pthread_join(brief, NULL);
        pause_us(500);
    }
    fflush(NULL);
    _exit(0);
}
