/*
 * Programs that are already running when they are recorded. Each ends when its standard input ends
 * or has a line.
 *
 *   waits: each thread waits for something else, from before to after the recording
 *   owned: threads wait for locks of others, which run, sleep or wait for each other
 *   calls: threads wait in every way that stopping them could disturb, and count wrong results
 *   load N: N threads take jobs from a queue while threads are created; the sums must match
 *   library FILE: loads the library after its first line
 *   mapped: like waits, with the C library's file mapped once more below it, and a second C library
 *           in a namespace
 *   changed: like waits, with the first instruction of dlopen changed
 *   executes N: executes itself N times
 *   leaves: a thread that makes no recorded call ends after the first line; then sleeps until the
 *           next
 */
#include "asleep.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void ready(void)
{
    puts("ready");
    (void)fflush(stdout);
}

static void wait_for_line(void)
{
    char line[8];
    while (read(STDIN_FILENO, line, sizeof line) < 0 && errno == EINTR)
        continue;
}

/* MARK: waits */

static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never_signalled = PTHREAD_COND_INITIALIZER;
static sem_t never_posted;
static int ends[2];
static int over;

/* The first call after a wait. */
static void *rest(void)
{
    const struct timespec moment = {0, 1000000};
    nanosleep(&moment, NULL);
    return NULL;
}

static void *wait_mutex(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&held_mutex);
    pthread_mutex_unlock(&held_mutex);
    return rest();
}

static void *wait_condition(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&own_mutex);
    while (!over)
        pthread_cond_wait(&never_signalled, &own_mutex);
    pthread_mutex_unlock(&own_mutex);
    return rest();
}

static void *wait_semaphore(void *arg)
{
    (void)arg;
    sem_wait(&never_posted);
    return rest();
}

static void *wait_pipe(void *arg)
{
    char byte;
    (void)arg;
    return read(ends[0], &byte, 1) == 1 ? rest() : arg;
}

static int run_waits(void)
{
    static void *(*const functions[])(void *) = {wait_mutex, wait_condition, wait_semaphore,
                                                 wait_pipe};
    pthread_t threads[4];
    sem_init(&never_posted, 0, 0);
    if (pipe(ends) != 0)
        return 1;
    pthread_mutex_lock(&held_mutex);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, functions[i], NULL);
    ready();
    wait_for_line();
    pthread_mutex_unlock(&held_mutex);
    pthread_mutex_lock(&own_mutex);
    over = 1;
    pthread_cond_signal(&never_signalled);
    pthread_mutex_unlock(&own_mutex);
    sem_post(&never_posted);
    if (write(ends[1], "x", 1) != 1)
        return 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}

/* MARK: owned */

/* Locks taken before the recording, by threads that run, sleep, or wait for each other. */
static pthread_mutex_t spun_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t first_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t all_have_theirs;
static pid_t waiting_tids[5];

static void begin_wait(int which)
{
    __atomic_store_n(&waiting_tids[which], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static void *spins(void *arg)
{
    pthread_mutex_lock(&spun_mutex);
    pthread_barrier_wait(&all_have_theirs);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        continue;
    return arg;
}

static void *writes(void *arg)
{
    pthread_rwlock_wrlock(&written_lock);
    pthread_barrier_wait(&all_have_theirs);
    begin_wait(0);
    sem_wait(&never_posted);
    return arg;
}

static void *takes_first(void *arg)
{
    pthread_mutex_lock(&first_mutex);
    pthread_barrier_wait(&all_have_theirs);
    begin_wait(1);
    pthread_mutex_lock(&second_mutex);
    return arg;
}

static void *takes_second(void *arg)
{
    pthread_mutex_lock(&second_mutex);
    pthread_barrier_wait(&all_have_theirs);
    begin_wait(2);
    pthread_mutex_lock(&first_mutex);
    return arg;
}

static void *wants_spun(void *arg)
{
    begin_wait(3);
    pthread_mutex_lock(&spun_mutex);
    return arg;
}

static void *wants_written(void *arg)
{
    begin_wait(4);
    pthread_rwlock_rdlock(&written_lock);
    return arg;
}

static int run_owned(void)
{
    static void *(*const owners[])(void *) = {spins, writes, takes_first, takes_second};
    static void *(*const waiters[])(void *) = {wants_spun, wants_written};
    pthread_t thread;
    sem_init(&never_posted, 0, 0);
    pthread_barrier_init(&all_have_theirs, NULL, 5);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, owners[i], NULL);
    pthread_barrier_wait(&all_have_theirs);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, waiters[i], NULL);
    for (int i = 0; i < 5; i++)
        until_asleep(&waiting_tids[i]);
    ready();
    wait_for_line();
    puts("done");
    (void)fflush(stdout);
    _exit(0);
}

/* MARK: calls */

static unsigned long rounds, errors;

#define SHORT_NS 20000000

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void count(const char *what, int good)
{
    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    if (good)
        return;
    if (__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED) < 10)
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
}

static void do_poll(void)
{
    count("poll", poll(NULL, 0, SHORT_NS / 1000000) == 0);
}

static void do_ppoll(void)
{
    const struct timespec limit = {0, SHORT_NS};
    sigset_t mask, before, after;
    sigfillset(&mask);
    sigprocmask(SIG_SETMASK, NULL, &before);
    count("ppoll", ppoll(NULL, 0, &limit, &mask) == 0);
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int i = 1; i < 65; i++)
        count("signal mask", sigismember(&before, i) == sigismember(&after, i));
}

static void do_nanosleep(void)
{
    const struct timespec limit = {0, SHORT_NS};
    count("nanosleep", nanosleep(&limit, NULL) == 0);
}

static void do_epoll(void)
{
    struct epoll_event event;
    int set = epoll_create1(0);
    count("epoll_wait", epoll_wait(set, &event, 1, SHORT_NS / 1000000) == 0);
    close(set);
}

static void do_semaphore(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (until.tv_nsec + SHORT_NS) / 1000000000;
    until.tv_nsec = (until.tv_nsec + SHORT_NS) % 1000000000;
    count("sem_timedwait", sem_timedwait(&never_posted, &until) == -1 && errno == ETIMEDOUT);
}

static void do_pipe(void)
{
    char byte;
    count("read", read(ends[0], &byte, 1) == 1);
}

#if defined(__x86_64__)
/* Keeps a pattern in vector registers during a system call. */
static void do_registers(void)
{
    uint64_t pattern[2] = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)}, after[2];
    struct timespec limit = {0, SHORT_NS};
    register struct timespec *timeout __asm__("rdx") = &limit;
    register uint64_t mask __asm__("r10") = 0;
    long result = SYS_ppoll;
    __asm__ volatile("movdqu (%[from]), %%xmm9\n"
                     "syscall\n"
                     "movdqu %%xmm9, (%[to])\n"
                     : "+a"(result)
                     : [from] "r"(pattern), [to] "r"(after), "D"(0L), "S"(0L), "r"(timeout),
                       "r"(mask), "r"((long){8})
                     : "rcx", "r11", "r8", "xmm9", "memory");
    count("vector registers", memcmp(pattern, after, sizeof after) == 0);
}
#else
static void do_registers(void)
{
}
#endif

static void do_stack(void)
{
    stack_t before, after;
    sigaltstack(NULL, &before);
    do_poll();
    sigaltstack(NULL, &after);
    count("alternate stack", before.ss_sp == after.ss_sp && before.ss_flags == after.ss_flags);
}

static void *repeat(void *arg)
{
    void (*function)(void);
    static char room[256][16384];
    static unsigned used;
    stack_t stack = {.ss_sp = room[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % 256],
                     .ss_size = sizeof room[0]};
    memcpy(&function, arg, sizeof function);
    sigaltstack(&stack, NULL);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        int64_t begin = now_ns();
        function();
        if (function != do_pipe && function != do_registers)
            count("time", now_ns() - begin >= SHORT_NS - 1000000);
    }
    return NULL;
}

static void *write_pipe(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        const struct timespec limit = {0, SHORT_NS};
        nanosleep(&limit, NULL);
        count("write", write(ends[1], "x", 1) == 1);
    }
    return NULL;
}

static int run_calls(void)
{
    static void (*const functions[])(void) = {do_poll,      do_ppoll, do_nanosleep, do_epoll,
                                              do_semaphore, do_pipe,  do_registers, do_stack};
    enum { COUNT = sizeof functions / sizeof *functions };
    pthread_t threads[COUNT + 1];
    sem_init(&never_posted, 0, 0);
    if (pipe(ends) != 0)
        return 1;
    for (int i = 0; i < COUNT; i++)
        pthread_create(&threads[i], NULL, repeat, (void *)&functions[i]);
    pthread_create(&threads[COUNT], NULL, write_pipe, NULL);
    ready();
    wait_for_line();
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    /* Wakes the reader if the writer has ended first. */
    count("write", write(ends[1], "x", 1) == 1);
    for (int i = 0; i <= COUNT; i++)
        pthread_join(threads[i], NULL);
    printf("%s, %lu errors\n", rounds > 0 ? "done" : "nothing done", errors);
    return errors > 0;
}

/* MARK: load */

static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static unsigned long queued, sent, done;

static void *take_jobs(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&own_mutex);
    while (!over || queued) {
        while (!queued && !over)
            pthread_cond_wait(&more, &own_mutex);
        if (queued) {
            queued--;
            done++;
        }
    }
    pthread_mutex_unlock(&own_mutex);
    return NULL;
}

static void *brief(void *arg)
{
    return arg;
}

static void *send_jobs(void *arg)
{
    const struct timespec moment = {0, 200000};
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        pthread_t thread;
        void *result = NULL, *argument = &sent;
        pthread_mutex_lock(&own_mutex);
        queued++;
        sent++;
        pthread_cond_signal(&more);
        pthread_mutex_unlock(&own_mutex);
        if (pthread_create(&thread, NULL, brief, argument) == 0)
            pthread_join(thread, &result);
        count("join", result == argument);
        nanosleep(&moment, NULL);
    }
    return arg;
}

static int run_load(int count)
{
    pthread_t *threads = calloc((size_t)count + 1, sizeof *threads);
    if (!threads)
        return 1;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, take_jobs, NULL);
    pthread_create(&threads[count], NULL, send_jobs, NULL);
    ready();
    wait_for_line();
    pthread_mutex_lock(&own_mutex);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&own_mutex);
    for (int i = 0; i <= count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    printf("%s, %lu errors\n", sent > 0 && sent == done ? "done" : "jobs lost", errors);
    return sent != done || errors > 0;
}

/* MARK: library */

#ifndef STATIC

/* The address and file of the C library. RTLD_NEXT, because a sanitizer defines dlopen in the
 * program. */
static Dl_info libc_info(void)
{
    Dl_info info = {0};
    if (!dladdr(dlsym(RTLD_NEXT, "dlopen"), &info) || !info.dli_fname)
        exit(1);
    return info;
}

/* Maps the file as programs do that read their own symbols. */
static int run_mapped(void)
{
    const Dl_info info = libc_info();
    const size_t size = 1 << 21;
    int fd = open(info.dli_fname, O_RDONLY);
    /* The kernel chooses an address below existing mappings. */
    char *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED || at > (char *)info.dli_fbase)
        return 1;
    if (!dlmopen(LM_ID_NEWLM, info.dli_fname, RTLD_NOW))
        return 1;
    return run_waits();
}

/* Changes the function as tools do that trace calls. */
static int run_changed(void)
{
    const Dl_info info = libc_info();
    uintptr_t page = (uintptr_t)info.dli_saddr & ~(uintptr_t)4095;
    uint8_t *first = info.dli_saddr;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return 1;
    *first = (uint8_t) ~*first;
    return run_waits();
}

static int run_executes(char **argv)
{
    const struct timespec moment = {0, 2000000};
    char left[16];
    int count = atoi(argv[2]);
    if (count > 0) {
        nanosleep(&moment, NULL);
        snprintf(left, sizeof left, "%d", count - 1);
        argv[2] = left;
        execv("/proc/self/exe", argv);
        return 1;
    }
    puts("done");
    return 0;
}

/* Loads a library at the first line, and calls it until the next one. Prints the number of calls on
 * stderr. */
static int run_library(const char *path)
{
    int (*waits)(void) = NULL;
    void *library, *symbol;
    ready();
    wait_for_line();
    library = dlopen(path, RTLD_NOW);
    symbol = library ? dlsym(library, "library_waits") : NULL;
    memcpy(&waits, &symbol, sizeof waits);
    if (!waits)
        return 1;
    for (struct pollfd in = {STDIN_FILENO, POLLIN, 0}; poll(&in, 1, 10) == 0;) {
        count("library", waits() >= 2);
        fprintf(stderr, "%lu\n", rounds);
    }
    printf("done, %lu errors\n", errors);
    return errors > 0;
}

#endif

/* MARK: leaves */

static int leave_pipe[2];

static void *leaves(void *unused)
{
    char byte;
    while (syscall(SYS_read, leave_pipe[0], &byte, 1) < 0 && errno == EINTR)
        continue;
    return unused;
}

static int run_leaves(void)
{
    struct pollfd line = {STDIN_FILENO, POLLIN, 0};
    pthread_t thread;
    if (pipe(leave_pipe) != 0 || pthread_create(&thread, NULL, leaves, NULL) != 0)
        return 1;
    ready();
    wait_for_line();
    if (write(leave_pipe[1], "x", 1) != 1 || pthread_join(thread, NULL) != 0)
        return 1;
    while (poll(&line, 1, 100) == 0)
        continue;
    wait_for_line();
    puts("done");
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "waits") == 0)
        return run_waits();
    if (strcmp(mode, "owned") == 0)
        return run_owned();
    if (strcmp(mode, "leaves") == 0)
        return run_leaves();
    if (strcmp(mode, "calls") == 0)
        return run_calls();
#ifndef STATIC
    if (strcmp(mode, "library") == 0 && argc > 2)
        return run_library(argv[2]);
    if (strcmp(mode, "mapped") == 0)
        return run_mapped();
    if (strcmp(mode, "changed") == 0)
        return run_changed();
    if (strcmp(mode, "executes") == 0 && argc > 2)
        return run_executes(argv);
#endif
    return run_load(argc > 2 ? atoi(argv[2]) : 8);
}
