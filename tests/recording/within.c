/*
 * Threads wait for locks within the C library, whose holders wait for a semaphore. Ends when
 * standard input does.
 *
 *   has_stream, wants_stream: the lock of a stream, in a wrapped call
 *   fills_pipe, waits_to_write: the lock of a stream that a function of stdio keeps while it writes
 *   has_loader, wants_loader: the loader's lock, in a call that is not wrapped
 *   sleeps_itself: a system call made directly
 */
#include "asleep.h"
#include "check.h"

#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUCH 100000 /* more than a pipe has room for */

static FILE *stream, *pipe_end;
static sem_t has_lock, waiters_sleep, never;
static pid_t waiting_tids[5];

static void begin_wait(int which)
{
    __atomic_store_n(&waiting_tids[which], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

/* Waits for the semaphore once the waiters for the lock sleep. */
static void keep_lock(void)
{
    sem_post(&has_lock);
    sem_wait(&waiters_sleep);
    sem_wait(&never);
}

static void *has_stream(void *arg)
{
    flockfile(stream);
    keep_lock();
    return arg;
}

static int in_loader(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info;
    (void)size;
    (void)arg;
    keep_lock();
    return 1;
}

static void *has_loader(void *arg)
{
    dl_iterate_phdr(in_loader, NULL);
    return arg;
}

static void *wants_stream(void *arg)
{
    begin_wait(0);
    fprintf(stream, "%p\n", arg);
    return arg;
}

static void *wants_loader(void *arg)
{
    begin_wait(1);
    dl_iterate_phdr(in_loader, NULL);
    return arg;
}

static void *sleeps_itself(void *arg)
{
    begin_wait(2);
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"((long)SYS_pause) : "rcx", "r11", "memory");
#else
    sem_wait(&never);
#endif
    return arg;
}

static void *fills_pipe(void *arg)
{
    static const char text[MUCH];
    begin_wait(3);
    fwrite(text, 1, sizeof text, pipe_end);
    return arg;
}

static void *waits_to_write(void *arg)
{
    begin_wait(4);
    fputs("x", pipe_end);
    return arg;
}

/* One thread writes to a full pipe, and another one waits for the stream meanwhile. */
static void fill_pipe(void)
{
    static char text[MUCH];
    int fds[2];
    pthread_t fills, waits;
    CHECK(pipe(fds) == 0 && (pipe_end = fdopen(fds[1], "w")));
    CHECK(setvbuf(pipe_end, NULL, _IONBF, 0) == 0);
    CHECK(pthread_create(&fills, NULL, fills_pipe, NULL) == 0);
    until_asleep(&waiting_tids[3]);
    CHECK(pthread_create(&waits, NULL, waits_to_write, NULL) == 0);
    until_asleep(&waiting_tids[4]);
    for (size_t got = 0; got < MUCH + 1;) {
        ssize_t n = read(fds[0], text, sizeof text);
        CHECK(n > 0);
        got += (size_t)n;
    }
    CHECK(pthread_join(fills, NULL) == 0 && pthread_join(waits, NULL) == 0);
}

int main(void)
{
    static void *(*const threads[])(void *) = {has_stream, has_loader, wants_stream, wants_loader,
                                               sleeps_itself};
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    pthread_t thread;
    stream = fopen("/dev/null", "w");
    CHECK(stream);
    CHECK(sem_init(&has_lock, 0, 0) == 0 && sem_init(&waiters_sleep, 0, 0) == 0 &&
          sem_init(&never, 0, 0) == 0);
    fill_pipe();
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        CHECK(pthread_create(&thread, NULL, threads[i], NULL) == 0);
        if (i < 2)
            sem_wait(&has_lock);
    }
    for (int i = 0; i < 3; i++)
        until_asleep(&waiting_tids[i]);
    sem_post(&waiters_sleep);
    sem_post(&waiters_sleep);
    /* The trace grows only while there are events. */
    while (poll(&input, 1, 20) == 0)
        continue;
    _exit(0);
}
