/*
 * A host built with ThreadSanitizer, using a library that is not: threads annotate with the same
 * strings and stacks while traces are started, stopped and read, and generations end. TSan must
 * report nothing.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <trail/record.h>

#define THREADS 4
#define TRACES  20

static int done;

static void *annotate(void *arg)
{
    char own[32], shared[] = "all threads say this";
    snprintf(own, sizeof own, "thread %ld", (long)arg);
    for (int i = 0; !__atomic_load_n(&done, __ATOMIC_RELAXED); i++) {
        uint64_t task = trail_task_begin(0, own);
        trail_region_begin(task, "region");
        trail_log(task, "category", shared);
        trail_logf(task, "count", "%d of %s", i % 100, own);
        trail_region_end(task, "region");
        trail_task_end(task);
        nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return NULL;
}

/* Reads every byte, as a consumer does. */
static bool add_up(void *context, const trail_chunk *chunk)
{
    unsigned long *sum = context;
    for (size_t i = 0; i < chunk->size; i++)
        *sum += chunk->data[i];
    return true;
}

int main(void)
{
    static const int formats[] = {11, 21, 22, 23, 26};
    unsigned long sum = 0;
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, annotate, (void *)i);
    for (int i = 0; i < TRACES; i++) {
        trail_options options = {.format = formats[i % 5], .generation_ns = 1000000};
        trail_error err;
        if (!trail_start_sink(&options, add_up, &sum, &err)) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        for (int j = 0; j < 5; j++)
            trail_advance();
        trail_stop(NULL);
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return sum == 0;
}
