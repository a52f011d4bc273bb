/*
 * A heap with a known answer: a staircase of large steps, each recorded when it happens. After each
 * step, prints a line "LIVE BLOCKS" with the program's own count of the bytes requested and the
 * number of blocks, which heap.py compares with the trace.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB    (1024L * 1024)
#define STEPS 8
#define MANY  20000
#define SMALL 56

static char *steps[STEPS];
static char *many[2][MANY];
static long live, blocks;

static void step(long bytes, long count)
{
    live += bytes;
    blocks += count;
    printf("%ld %ld\n", live, blocks);
}

static void *check(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void up(void)
{
    for (int i = 0; i < STEPS; i++) {
        steps[i] = check(malloc(10 * MB));
        step(10 * MB, 1);
    }
}

/* Another thread frees what main allocated. */
static void *down(void *none)
{
    for (int i = 0; i < STEPS / 2; i++) {
        free(steps[i]);
        step(-10 * MB, -1);
    }
    return none;
}

static void moves(void)
{
    char *one = check(realloc(NULL, 4 * MB));
    step(4 * MB, 1);
    one = check(realloc(one, 40 * MB));
    step(36 * MB, 0);
    one = check(reallocarray(one, 3, 2 * MB));
    step(-34 * MB, 0);
    /* A failed allocation changes nothing. */
    char *none = realloc(one, PTRDIFF_MAX - 4096), *more = malloc(PTRDIFF_MAX - 4096);
    if (none || more)
        abort();
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): the C library frees it. */
    free(realloc(one, 0));
    step(-6 * MB, -1);
}

/* `has_pvalloc`: jemalloc has no pvalloc(), and cannot free memory from the C library's. */
static void aligned(int has_pvalloc)
{
    char *all[6] = {check(calloc(5, MB)),
                    check(memalign(4096, 6 * MB)),
                    check(aligned_alloc(64, 7 * MB)),
                    check(valloc(8 * MB)),
                    check(has_pvalloc ? pvalloc(9 * MB) : malloc(9 * MB)),
                    NULL};
    step(35 * MB, 5);
    if (posix_memalign((void **)&all[5], 1 << 16, 12 * MB) != 0)
        abort();
    step(12 * MB, 1);
    for (int i = 0; i < 6; i++)
        free(all[i]);
    step(-47 * MB, -6);
}

/* Small blocks, which are recorded at the latest when the thread ends. */
static void *allocate_many(void *place)
{
    for (int i = 0; i < MANY; i++)
        ((char **)place)[i] = check(malloc(SMALL));
    return NULL;
}

static void small(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, allocate_many, many[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    step(2L * MANY * SMALL, 2L * MANY);
    for (int i = 0; i < 2 * MANY; i++)
        free(many[i / MANY][i % MANY]);
    step(-2L * MANY * SMALL, -2L * MANY);
}

/* A child starts with its parent's heap, and counts on its own from there. */
static void child(void)
{
    int status;
    pid_t pid;
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        free(steps[STEPS - 1]);
        printf("child %ld\n", live - 10 * MB);
        fflush(stdout);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        abort();
}

int main(int argc, char **argv __attribute__((unused)))
{
    pthread_t thread;
    up();
    pthread_create(&thread, NULL, down, NULL);
    pthread_join(thread, NULL);
    moves();

    aligned(argc < 2);
    small();
    child();
    for (int i = STEPS / 2; i < STEPS; i++) {
        free(steps[i]);
        step(-10 * MB, -1);
    }
    return 0;
}
