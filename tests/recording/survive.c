/*
 * Programs that do what a recorder might break. One scenario per run; its output and exit status
 * must be the same as without the recorder, and the trace must be good.
 */
#include <aio.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS           1000000L
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#if defined(__clang__)
#define IN_STACKS __attribute__((noinline, unused))
#else
#define IN_STACKS __attribute__((noinline, noclone, unused))
#endif
#define MUST(call)       must((call), #call)
#define WAIT_FOR(thread) MUST(pthread_join((thread), NULL) == 0)

extern char **environ;
static const char *program;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "survive: %s: %s\n", what, strerror(errno));
    _exit(99);
}

static void sleep_ns(long ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

static pthread_t start(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, routine, argument) == 0);
    return thread;
}

/* Whether the process or thread (by its TID) sleeps within ten seconds. */
static bool sleeps_soon(pid_t id)
{
    char path[32], text[256], *state;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)id);
    for (int i = 0; i < 10000; i++) {
        int fd = open(path, O_RDONLY);
        ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
        close(fd);
        text[size > 0 ? size : 0] = '\0';
        state = strrchr(text, ')');
        if (state && state[2] == 'S')
            return true;
        sleep_ns(MS);
    }
    return false;
}

/* MARK: A bit of each kind of wait, to see that it works */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int value;

static pid_t changes_for; /* 0: the program may not look at threads */
static bool may_look = true;

/* Signals once the other thread has unlocked the mutex and sleeps. */
static void *changes(void *none)
{
    sleep_ns(2 * MS);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    MUST(!changes_for || sleeps_soon(changes_for));
    pthread_mutex_lock(&lock);
    value = 1;
    pthread_cond_signal(&changed);
    sleep_ns(MS);
    pthread_mutex_unlock(&lock);
    return none;
}

static IN_STACKS void waits_for_change(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    value = 0;
    changes_for = may_look ? gettid() : 0;
    thread = start(changes, NULL);
    while (!value)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    WAIT_FOR(thread);
}

/* The last wait of a scenario: the recorder must still record it. */
static IN_STACKS void waits_at_last(void)
{
    waits_for_change();
}

static void works(const char *where)
{
    waits_for_change();
    printf("%s: works\n", where);
    fflush(stdout);
}

static int end_of(pid_t pid)
{
    int status = 0;
    MUST(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* MARK: New processes */

static atomic_bool over;

static void *contends(void *none)
{
    while (!over) {
        pthread_mutex_lock(&lock);
        sleep_ns(MS / 20);
        pthread_mutex_unlock(&lock);
    }
    return none;
}

static void hold_for_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void release_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void *forks(void *none)
{
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            waits_for_change();
            _exit(20 + i);
        }
        printf("child %d ended with %d\n", i, end_of(pid));
    }
    return none;
}

static int fork_scenario(void)
{
    pthread_t threads[3];
    pthread_atfork(hold_for_fork, release_after_fork, release_after_fork);
    for (size_t i = 0; i < COUNT(threads); i++)
        threads[i] = start(contends, NULL);
    forks(NULL);
    WAIT_FOR(start(forks, NULL));
    over = true;
    for (size_t i = 0; i < COUNT(threads); i++)
        WAIT_FOR(threads[i]);
    works("parent");
    waits_at_last();
    return 0;
}

/* _Fork() runs no handlers of pthread_atfork(). */
static int bare_fork(void)
{
    pid_t pid = _Fork();
    MUST(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < 20; i++) {
            pthread_mutex_lock(&lock);
            sleep_ns(MS / 2);
            pthread_mutex_unlock(&lock);
        }
        _exit(7);
    }
    for (int i = 0; i < 5; i++)
        waits_for_change();
    printf("child ended with %d\n", end_of(pid));
    waits_at_last();
    return 0;
}

static int vfork_scenario(void)
{
    for (volatile int i = 0; i < 20; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): vfork is tested */
        pid_t pid = vfork();
        if (pid == 0) {
            execl(program, program, "status", "3", (char *)NULL);
            _exit(98);
        }
        MUST(pid > 0 && end_of(pid) == 3);
    }
    works("parent");
    waits_at_last();
    return 0;
}

static int spawn(void)
{
    char *const arguments[] = {(char *)program, (char *)"status", (char *)"4", NULL};
    pid_t pid;
    for (int i = 0; i < 10; i++) {
        MUST(posix_spawn(&pid, program, NULL, NULL, arguments, environ) == 0);
        MUST(end_of(pid) == 4);
    }
    printf("system: %d\n", WEXITSTATUS(system("exit 5")));
    works("parent");
    waits_at_last();
    return 0;
}

static int exec_scenario(void)
{
    works("first");
    (void)start(contends, NULL);
    execl(program, program, "executed", (char *)NULL);
    return 98;
}

static int executed(void)
{
    works("second");
    waits_at_last();
    return 6;
}

/* The first wait of each program may begin before the recorder notices the execve. */
static __attribute__((noinline)) void waits_first(void)
{
    struct timespec time = {0, 100000000};
    MUST(nanosleep(&time, NULL) == 0);
}

static int executes_at_once(void)
{
    const char *rounds = getenv("ROUNDS");
    char next[2] = {rounds ? (char)(*rounds + 1) : '1', '\0'};
    if (rounds)
        waits_first();
    if (*next <= '5') {
        setenv("ROUNDS", next, 1);
        execl(program, program, "executes-at-once", (char *)NULL);
    }
    waits_at_last();
    return 6;
}

static void *executes(void *none)
{
    execl(program, program, "executed", (char *)NULL);
    return none;
}

static int exec_from_thread(void)
{
    works("first");
    WAIT_FOR(start(executes, NULL));
    return 98;
}

/* Forks a child that ends once its parent sleeps. */
static pid_t ends_when_awaited(void)
{
    pid_t parent = getpid(), child = fork();
    MUST(child >= 0);
    if (child == 0)
        _exit(sleeps_soon(parent) ? 0 : 1);
    return child;
}

static IN_STACKS void waits_by_wait3(void)
{
    pid_t child = ends_when_awaited();
    int status = 1;
    MUST(wait3(&status, 0, NULL) == child && status == 0);
}

static IN_STACKS void waits_by_pclose(void)
{
    FILE *file = popen("read line && exit $line", "w");
    MUST(file && fputs("0\n", file) >= 0);
    MUST(pclose(file) == 0);
}

static IN_STACKS pid_t waits_by_spawn(void)
{
    char *arguments[] = {(char *)(uintptr_t)program, "status", "0", NULL};
    pid_t pid;
    MUST(posix_spawnp(&pid, program, NULL, NULL, arguments, environ) == 0);
    return pid;
}

static int waits_for_children(void)
{
    for (int i = 0; i < 5; i++) {
        waits_by_wait3();
        waits_by_pclose();
        MUST(end_of(waits_by_spawn()) == 0);
    }
    waits_at_last();
    return 7;
}

/* MARK: Asynchronous input */

static int inlet[2];

static void *writes_late(void *none)
{
    MUST(sleeps_soon(getpid()) && write(inlet[1], "5", 1) == 1);
    return none;
}

static IN_STACKS void waits_in_aio(struct aiocb *control)
{
    const struct aiocb *list[] = {control};
    MUST(aio_suspend(list, 1, NULL) == 0 && aio_return(control) == 1);
}

/* Nothing is submitted to the ring, so the wait lasts until its time limit. */
static IN_STACKS void waits_in_uring(int ring)
{
    struct __kernel_timespec time = {0, 100 * MS};
    struct io_uring_getevents_arg limit = {.ts = (uint64_t)(uintptr_t)&time};
    long result = syscall(SYS_io_uring_enter, ring, 0, 1,
                          IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &limit, sizeof limit);
    MUST(result == -1 && errno == ETIME);
}

static int asynchronous(void)
{
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    char byte = 0;
    struct aiocb control = {.aio_buf = &byte, .aio_nbytes = 1};
    pthread_t other;
    MUST(pipe(inlet) == 0);
    control.aio_fildes = inlet[0];
    MUST(aio_read(&control) == 0);
    other = start(writes_late, NULL);
    waits_in_aio(&control);
    WAIT_FOR(other);
    MUST(byte == '5');
    if (ring >= 0)
        waits_in_uring(ring);
    printf("%s\n", ring >= 0 ? "io_uring" : "no io_uring");
    waits_at_last();
    return 9;
}

/* MARK: Formatted input and output */

static int ends[2];

static IN_STACKS void waits_in_fprintf(FILE *file)
{
    MUST(fprintf(file, "%d", 5) == 1);
}

static IN_STACKS void waits_in_fputc(FILE *file)
{
    MUST(fputc('5', file) == '5');
}

static IN_STACKS void waits_in_dprintf(FILE *file)
{
    MUST(dprintf(fileno(file), "%d", 5) == 1);
}

static IN_STACKS void waits_in_fscanf(FILE *file)
{
    int number;
    MUST(fscanf(file, "%d", &number) == 1 && number == 5);
}

/* Drains the pipe, or writes to it, when the main thread sleeps. */
static void *drains(void *reads)
{
    char bytes[4096];
    MUST(sleeps_soon(getpid()));
    if (reads)
        MUST(read(ends[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    else
        MUST(write(ends[1], "5 ", 2) == 2);
    return NULL;
}

static void waits_in(void (*call)(FILE *), bool writes)
{
    static const char full[4096];
    pthread_t other;
    FILE *file;
    MUST(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, sizeof full) == (int)sizeof full);
    file = fdopen(ends[writes], writes ? "w" : "r");
    MUST(file && setvbuf(file, NULL, writes ? _IONBF : _IOFBF, writes ? 0 : 4096) == 0);
    if (writes)
        MUST(write(ends[1], full, sizeof full) == (ssize_t)sizeof full);
    other = start(drains, writes ? &other : NULL);
    call(file);
    WAIT_FOR(other);
    MUST(fclose(file) == 0 && close(ends[!writes]) == 0);
}

static int formats(void)
{
    waits_in(waits_in_fprintf, true);
    waits_in(waits_in_fputc, true);
    waits_in(waits_in_dprintf, true);
    waits_in(waits_in_fscanf, false);
    waits_at_last();
    return 8;
}

/* The parent ends; the remaining child has no parent within the program. */
static int daemonizes(void)
{
    works("parent");
    fflush(stdout);
    MUST(daemon(1, 1) == 0);
    works("daemon");
    return 0;
}

/* MARK: Threads that end */

static char cleaned[64];

static void cleans(void *name)
{
    strncpy(cleaned, name, sizeof cleaned - 1);
}

static sem_t semaphore;
static int ends[2];
static int listening;
static atomic_int waiting;

static void blocks_in_read(void)
{
    char byte;
    (void)!read(ends[0], &byte, 1);
}

static void blocks_in_sem_wait(void)
{
    sem_wait(&semaphore);
}

static struct timespec far_away(void)
{
    return (struct timespec){time(NULL) + 3600, 0};
}

static void blocks_in_sem_timedwait(void)
{
    struct timespec until = far_away();
    sem_timedwait(&semaphore, &until);
}

static void unlocks(void *mutex)
{
    printf("unlocked by its clean-up: %d\n", pthread_mutex_unlock(mutex));
}

static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void blocks_in_cond_wait(void)
{
    pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlocks, &mutex);
    pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(1);
}

static void blocks_in_cond_timedwait(void)
{
    struct timespec until = far_away();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlocks, &mutex);
    pthread_cond_timedwait(&never, &mutex, &until);
    pthread_cleanup_pop(1);
}

static void blocks_in_nanosleep(void)
{
    sleep_ns(3600 * 1000L * MS);
}

static void blocks_in_clock_nanosleep(void)
{
    struct timespec until = far_away();
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
}

static void blocks_in_sleep(void)
{
    sleep(3600);
}

static void blocks_in_usleep(void)
{
    usleep(999999999);
}

static void blocks_in_poll(void)
{
    struct pollfd poll_for = {ends[0], POLLIN, 0};
    poll(&poll_for, 1, -1);
}

static void blocks_in_select(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    select(ends[0] + 1, &set, NULL, NULL, NULL);
}

static void blocks_in_accept(void)
{
    accept(listening, NULL, NULL);
}

static void blocks_in_recv(void)
{
    int pair[2];
    char byte;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    recv(pair[0], &byte, 1, 0);
}

static void blocks_in_pause(void)
{
    pause();
}

static void blocks_in_sigwait(void)
{
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigwait(&set, &number);
}

static void *sleeps_long(void *none)
{
    sleep(3600);
    return none;
}

static void blocks_in_join(void)
{
    pthread_join(start(sleeps_long, NULL), NULL);
}

static void blocks_in_fgets(void)
{
    char line[10];
    FILE *file = fdopen(dup(ends[0]), "r");
    MUST(fgets(line, sizeof line, file) != NULL);
}

static const struct {
    const char *name;
    void (*block)(void);
} blocking[] = {
    {"read", blocks_in_read},
    {"sem_wait", blocks_in_sem_wait},
    {"sem_timedwait", blocks_in_sem_timedwait},
    {"cond_wait", blocks_in_cond_wait},
    {"cond_timedwait", blocks_in_cond_timedwait},
    {"nanosleep", blocks_in_nanosleep},
    {"clock_nanosleep", blocks_in_clock_nanosleep},
    {"sleep", blocks_in_sleep},
    {"usleep", blocks_in_usleep},
    {"poll", blocks_in_poll},
    {"select", blocks_in_select},
    {"accept", blocks_in_accept},
    {"recv", blocks_in_recv},
    {"pause", blocks_in_pause},
    {"sigwait", blocks_in_sigwait},
    {"join", blocks_in_join},
    {"fgets", blocks_in_fgets},
};

static void *blocks(void *index)
{
    size_t i = (size_t)index;
    pthread_cleanup_push(cleans, (void *)blocking[i].name);
    waiting = (int)syscall(SYS_gettid);
    blocking[i].block();
    pthread_cleanup_pop(0);
    return NULL;
}

/* Returns when the thread sleeps. */
static void until_it_waits(void)
{
    char path[64], text[512] = "";
    const char *end = NULL;
    for (;;) {
        FILE *file;
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiting);
        file = waiting ? fopen(path, "re") : NULL;
        end = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
        if (file)
            fclose(file);
        if (end && end[2] == 'S')
            break;
        sleep_ns(MS / 5);
    }
    waiting = 0;
}

static int cancel(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    void *result;
    sem_init(&semaphore, 0, 0);
    listening = socket(AF_UNIX, SOCK_STREAM, 0);
    MUST(pipe(ends) == 0);
    MUST(bind(listening, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0);
    MUST(listen(listening, 1) == 0);
    for (size_t i = 0; i < COUNT(blocking); i++) {
        pthread_t thread = start(blocks, (void *)i);
        until_it_waits();
        sleep_ns(MS);
        cleaned[0] = 0;
        MUST(pthread_cancel(thread) == 0);
        MUST(pthread_join(thread, &result) == 0);
        printf("%s: cancelled %d, cleaned %s\n", blocking[i].name, result == PTHREAD_CANCELED,
               cleaned);
    }
    waits_at_last();
    return 0;
}

/* These calls act on a pending cancellation even if they would not block. */
static void *cancels_itself(void *index)
{
    char byte = 1;
    pthread_cancel(pthread_self());
    switch ((int)(intptr_t)index) {
    case 0:
        sem_wait(&semaphore);
        break;
    case 1:
        (void)!write(ends[1], &byte, 1);
        break;
    case 2:
        sleep_ns(0);
        break;
    case 3: {
        struct pollfd none = {-1, 0, 0};
        poll(&none, 1, 0);
        break;
    }
    case 4:
        /* Not cancellation points. */
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        sem_post(&semaphore);
        break;
    default:
        break;
    }
    return NULL;
}

static int pending_cancel(void)
{
    void *result;
    sem_init(&semaphore, 0, 5);
    MUST(pipe(ends) == 0);
    for (int i = 0; i < 5; i++) {
        MUST(pthread_join(start(cancels_itself, (void *)(intptr_t)i), &result) == 0);
        printf("%d: cancelled %d\n", i, result == PTHREAD_CANCELED);
    }
    waits_at_last();
    return 0;
}

static void *ends_by_exit(void *result)
{
    pthread_exit(result);
}

static void *ends_by_return(void *result)
{
    return result;
}

static atomic_int detached_ended;

static void *ends_detached(void *none)
{
    pthread_detach(pthread_self());
    waits_for_change();
    detached_ended++;
    return none;
}

static pthread_key_t key;

/* Destructors of thread-specific data lock and wait, and set the data again. */
static void destroys(void *left)
{
    pthread_mutex_lock(&lock);
    sleep_ns(MS / 10);
    pthread_mutex_unlock(&lock);
    if ((intptr_t)left > 1)
        pthread_setspecific(key, (void *)((intptr_t)left - 1));
    else
        detached_ended++;
}

static void *ends_with_destructors(void *none)
{
    pthread_setspecific(key, (void *)4);
    return none;
}

static int thread_ends(void)
{
    void *result;
    MUST(pthread_join(start(ends_by_exit, &key), &result) == 0 && result == &key);
    MUST(pthread_join(start(ends_by_return, &lock), &result) == 0 && result == &lock);
    (void)start(ends_detached, NULL);
    while (!detached_ended)
        sleep_ns(MS);
    pthread_key_create(&key, destroys);
    for (int i = 0; i < 10; i++)
        WAIT_FOR(start(ends_with_destructors, NULL));
    printf("destructors: %d\n", detached_ended);
    waits_at_last();
    return 0;
}

static void *outlives_main(void *none)
{
    waits_at_last();
    printf("outlived\n");
    fflush(stdout);
    return none;
}

/* The process ends when its last thread does. */
static int main_ends_first(void)
{
    (void)start(outlives_main, NULL);
    pthread_exit(NULL);
}

static void *runs_for_ever(void *none)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        sleep_ns(MS / 20);
        pthread_mutex_unlock(&lock);
    }
    return none;
}

static int threads_at_exit(void)
{
    for (int i = 0; i < 4; i++)
        (void)start(runs_for_ever, NULL);
    sleep_ns(10 * MS);
    printf("ends\n");
    return 8;
}

static int exit_at_once(void)
{
    (void)start(runs_for_ever, NULL);
    waits_at_last();
    printf("ends\n");
    fflush(stdout);
    _exit(9);
}

/* MARK: Jumps out of waits, signals in them */

static sigjmp_buf back;

static void jumps(int number)
{
    siglongjmp(back, number);
}

static pthread_t main_thread;

static void *signals_main(void *none)
{
    until_it_waits();
    pthread_kill(main_thread, SIGUSR1);
    return none;
}

static int long_jump(void)
{
    struct sigaction action = {.sa_handler = jumps};
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&semaphore, 0, 0);
    MUST(pipe(ends) == 0);
    main_thread = pthread_self();
    for (volatile int i = 0; i < 9; i++) {
        pthread_t thread = start(signals_main, NULL);
        if (sigsetjmp(back, 1) == 0) {
            waiting = (int)syscall(SYS_gettid);
            if (i % 3 == 0)
                blocks_in_read();
            else if (i % 3 == 1)
                blocks_in_sem_wait();
            else
                blocks_in_nanosleep();
            printf("returned\n");
        } else {
            printf("jumped out of %d\n", i % 3);
        }
        WAIT_FOR(thread);
        waits_for_change();
    }
    waits_at_last();
    return 0;
}

/* A handler on its own stack, above or below the thread's, uses wrapped calls. */
static void writes_elsewhere(int number)
{
    int old_errno = errno;
    char byte = (char)number;
    int pair[2];
    MUST(pipe(pair) == 0);
    (void)!write(pair[1], &byte, 1);
    (void)!read(pair[0], &byte, 1);
    MUST(sleeps_soon(getpid())); /* in sem_wait */
    sem_post(&semaphore);
    close(pair[0]);
    close(pair[1]);
    errno = old_errno;
}

static IN_STACKS void reads_through_signals(void)
{
    char byte;
    MUST(read(ends[0], &byte, 1) == 1);
}

static void *reads_on_top(void *stack)
{
    stack_t other = {.ss_sp = stack, .ss_size = 1 << 16};
    MUST(sigaltstack(&other, NULL) == 0);
    waiting = (int)syscall(SYS_gettid);
    reads_through_signals();
    return NULL;
}

static int alternate_stacks(void)
{
    struct sigaction action = {.sa_handler = writes_elsewhere, .sa_flags = SA_ONSTACK | SA_RESTART};
    char *low = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char here[1 << 16];
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&semaphore, 0, 0);
    MUST(pipe(ends) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_t thread = start(reads_on_top, i ? low : here);
        until_it_waits();
        for (int j = 0; j < 3; j++) {
            sleep_ns(5 * MS);
            pthread_kill(thread, SIGUSR1);
            sem_wait(&semaphore);
        }
        sleep_ns(5 * MS);
        MUST(write(ends[1], here, 1) == 1);
        WAIT_FOR(thread);
        printf("read\n");
    }
    waits_at_last();
    return 0;
}

static void posts_and_writes(int number)
{
    char byte = (char)number;
    int old_errno = errno;
    sem_post(&semaphore);
    (void)!write(ends[1], &byte, 1);
    errno = old_errno;
}

#define TURNS 50

static atomic_int taker, reader, pauser;

/* Waits until the thread that has announced its wait sleeps. */
static void until_asleep(atomic_int *who)
{
    while (!*who)
        sleep_ns(MS / 5);
    MUST(sleeps_soon(atomic_exchange(who, 0)));
}

static IN_STACKS void takes_in_turn(void)
{
    taker = (int)syscall(SYS_gettid);
    while (sem_wait(&semaphore) != 0)
        ;
}

static IN_STACKS void reads_in_turn(void)
{
    char byte;
    reader = (int)syscall(SYS_gettid);
    MUST(read(ends[0], &byte, 1) == 1);
}

static void *takes_posts(void *none)
{
    for (int i = 0; i < TURNS; i++)
        takes_in_turn();
    for (int i = 0; i < 200; i++)
        while (sem_wait(&semaphore) != 0)
            ;
    return none;
}

static void *reads_bytes(void *none)
{
    char bytes[256];
    for (int i = 0; i < TURNS; i++)
        reads_in_turn();
    for (size_t n = 0; n < 200;) {
        ssize_t got = read(ends[0], bytes, sizeof bytes);
        if (got > 0)
            n += (size_t)got;
    }
    return none;
}

static void *pauses(void *none)
{
    for (int i = 0; i < TURNS; i++) {
        pauser = (int)syscall(SYS_gettid);
        pause();
    }
    return none;
}

static int signals(void)
{
    struct sigaction action = {.sa_handler = posts_and_writes, .sa_flags = SA_RESTART};
    pthread_t threads[4], interrupted;
    sem_init(&semaphore, 0, 0);
    MUST(pipe(ends) == 0);
    sigaction(SIGUSR1, &action, NULL);
    threads[0] = start(takes_posts, NULL);
    threads[1] = start(reads_bytes, NULL);
    interrupted = start(pauses, NULL);
    for (int i = 0; i < TURNS; i++) {
        until_asleep(&taker);
        until_asleep(&reader);
        until_asleep(&pauser);
        pthread_kill(interrupted, SIGUSR1);
    }
    WAIT_FOR(interrupted);
    threads[2] = start(contends, NULL);
    threads[3] = start(contends, NULL);
    for (int i = 0; i < 200; i++) {
        pthread_kill(threads[i % 4 < 2 ? 2 : 3], SIGUSR1);
        /* One at a time: a signal is lost if it is already pending. */
        sleep_ns(MS / 5);
        if (i % 50 == 0)
            waits_for_change();
    }
    /* Makes up for lost signals. */
    for (int i = 0; i < 200; i++)
        posts_and_writes(0);
    WAIT_FOR(threads[0]);
    WAIT_FOR(threads[1]);
    over = true;
    WAIT_FOR(threads[2]);
    WAIT_FOR(threads[3]);
    printf("posts and bytes came\n");
    waits_at_last();
    return 0;
}

/* MARK: Libraries, descriptors, privileges, process exit */

static int libraries(void)
{
    /* Found through the program's RUNPATH, which is searched only for its own calls. */
    for (int i = 0; i < 10; i++) {
        void *library = dlopen("librecording-library.so", RTLD_NOW | RTLD_LOCAL);
        int (*waits)(void) = library ? (int (*)(void))dlsym(library, "library_waits") : NULL;
        if (!waits) {
            printf("%s\n", dlerror());
            return 1;
        }
        printf("library: %d\n", waits());
        dlclose(library);
    }
    waits_at_last();
    return 0;
}

static int closes_all(void)
{
    int out = fcntl(1, F_DUPFD, 200);
    MUST(out >= 200);
    closefrom(201);
    for (int fd = 0; fd < 200; fd++)
        close(fd);
    waits_for_change();
    MUST(dup2(out, 1) == 1);
    close(out);
    works("no descriptors");
    waits_at_last();
    return 0;
}

static int drops_privileges(void)
{
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
    works("nobody");
    MUST(setuid(0) != 0);
    waits_at_last();
    return 0;
}

/* The kernel removes access to the clock, and all calls except read, write and exit. */
static int strict(void)
{
    const char text[] = "strict\n";
    waits_at_last();
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0);
    pthread_mutex_lock(&lock);
    MUST(write(STDOUT_FILENO, text, strlen(text)) > 0);
    pthread_mutex_unlock(&lock);
    syscall(SYS_exit, 5);
    return 0;
}

#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/*
 * A seccomp filter, as in servers: the kernel ends the process for any other system call. The test
 * first checks without the recorder that these calls suffice.
 */
static int listed(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* Used by the program itself, */
        ALLOW(futex), ALLOW(clock_nanosleep), ALLOW(read), ALLOW(write),
        /* and by the C library, for threads and memory. */
        ALLOW(clone3), ALLOW(clone), ALLOW(set_robust_list), ALLOW(rseq), ALLOW(rt_sigprocmask),
        ALLOW(rt_sigaction), ALLOW(mmap), ALLOW(munmap), ALLOW(mprotect), ALLOW(madvise),
        ALLOW(brk), ALLOW(getrandom), ALLOW(exit), ALLOW(exit_group), ALLOW(newfstatat),
        ALLOW(fstat), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    const struct sock_fprog filter = {COUNT(rules), rules};
    pthread_t threads[3];
    char byte;
    may_look = false;
    MUST(pipe(ends) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    for (size_t i = 0; i < COUNT(threads); i++)
        threads[i] = start(contends, NULL);
    works("listed");
    MUST(write(ends[1], "x", 1) == 1 && read(ends[0], &byte, 1) == 1);
    sleep_ns(MS);
    over = true;
    for (size_t i = 0; i < COUNT(threads); i++)
        WAIT_FOR(threads[i]);
    waits_at_last();
    return 0;
}

/* Pipes that no wrapper has seen being made. */
static int unseen[2][2];

static int child_of_confined(void)
{
    char byte;
    return read(unseen[0][0], &byte, 1) == 1 && write(unseen[1][1], &byte, 1) == 1 ? 0 : 1;
}

/* Uses descriptors for the first time and forks, with only the calls that this needs. */
static int confine(bool by_call)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), ALLOW(read),
        ALLOW(write), ALLOW(exit), ALLOW(exit_group), ALLOW(wait4),
        /* Used by the C library's fork. */
        ALLOW(clone), ALLOW(set_robust_list), ALLOW(rt_sigprocmask), ALLOW(gettid),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    const struct sock_fprog filter = {COUNT(rules), rules};
    char byte = 'x';
    waits_at_last();
    /* With several processes, the recorder wants to know what a descriptor is. */
    if (fork() == 0)
        _exit(0);
    MUST(wait(NULL) > 0 && syscall(SYS_pipe2, unseen[0], 0) == 0 &&
         syscall(SYS_pipe2, unseen[1], 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST((by_call ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)
                  : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_of_confined());
    MUST(write(unseen[0][1], &byte, 1) == 1 && end_of(pid) == 0);
    MUST(read(unseen[1][0], &byte, 1) == 1 && write(STDOUT_FILENO, &byte, 1) == 1);
    _exit(3);
}

static int confined(void)
{
    return confine(false);
}

static int confines_by_call(void)
{
    return confine(true);
}

#define FORBID(call)                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* The filter applies to the next program, too, which itself makes none of these calls. */
static int executes_confined(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), FORBID(getpid),
        FORBID(ppoll), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {COUNT(rules), rules};
    waits_at_last();
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
    pid_t pid = vfork();
    if (pid == 0) {
        execl(program, program, "status", "4", (char *)NULL);
        _exit(1);
    }
    MUST(end_of(pid) == 4);
    execl(program, program, "status", "4", (char *)NULL);
    return 1;
}

static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

static void at_exit(void)
{
    works("atexit");
}

__attribute__((destructor)) static void at_destruction(void)
{
    pthread_mutex_lock(&late_lock);
    pthread_mutex_unlock(&late_lock);
    if (getenv("TRAIL_TEST_DESTRUCTOR"))
        works("destructor");
}

static int ends_late(void)
{
    atexit(at_exit);
    setenv("TRAIL_TEST_DESTRUCTOR", "1", 1);
    waits_at_last();
    return 0;
}

/* Set before any constructor runs, the recorder's included. */
static int worked_early;

static void begins_early(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv, (void)environment;
    waits_for_change();
    sem_init(&semaphore, 0, 1);
    sem_wait(&semaphore);
    worked_early = value;
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(int, char **,
                                                                            char **) = begins_early;

static int works_early(void)
{
    printf("before constructors: %d\n", worked_early);
    waits_at_last();
    return 0;
}

static int crashes(void)
{
    waits_at_last();
    printf("crashes\n");
    fflush(stdout);
    raise(SIGSEGV);
    return 0;
}

static int aborts(void)
{
    waits_at_last();
    abort();
}

static int no_threads(void)
{
    char line[100] = "";
    while (fgets(line, sizeof line, stdin))
        fputs(line, stdout);
    return 0;
}

/* Allocates from many threads, to exercise other allocators. */
static void *allocates(void *none)
{
    for (int i = 0; i < 20000; i++) {
        char *block = malloc((size_t)(i % 3000) + 1);
        MUST(block != NULL);
        block[0] = 1;
        free(block);
    }
    waits_for_change();
    return none;
}

static int allocations(void)
{
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT(threads); i++) {
        threads[i] = start(allocates, NULL);
        WAIT_FOR(threads[i]);
    }
    printf("allocated\n");
    waits_at_last();
    return 0;
}

static int asked_to_end(void)
{
    char line[10];
    waits_for_change();
    printf("ready\n");
    fflush(stdout);
    while (!fgets(line, sizeof line, stdin) && !feof(stdin))
        clearerr(stdin);
    waits_at_last();
    printf("ends: %s", line);
    return 3;
}

/* Threads that contend until the input has a line. */
static int busy(void)
{
    pthread_t threads[3];
    char line[10] = "";
    for (size_t i = 0; i < COUNT(threads); i++)
        threads[i] = start(contends, NULL);
    printf("ready\n");
    fflush(stdout);
    MUST(fgets(line, sizeof line, stdin) != NULL);
    over = true;
    for (size_t i = 0; i < COUNT(threads); i++)
        WAIT_FOR(threads[i]);
    printf("ends: %s", line);
    return 0;
}

static void says(int number)
{
    static const char text[] = "caught\n";
    (void)number;
    (void)!write(1, text, sizeof text - 1);
    _exit(33);
}

static int catches(void)
{
    struct sigaction action = {.sa_handler = says};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    printf("ready\n");
    fflush(stdout);
    for (;;)
        pause();
    return 0;
}

/* MARK: Scenarios */

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    {"fork", fork_scenario},
    {"bare-fork", bare_fork},
    {"vfork", vfork_scenario},
    {"spawn", spawn},
    {"exec", exec_scenario},
    {"exec-from-thread", exec_from_thread},
    {"executed", executed},
    {"executes-at-once", executes_at_once},
    {"waits-for-children", waits_for_children},
    {"formats", formats},
    {"asynchronous", asynchronous},
    {"daemon", daemonizes},
    {"cancel", cancel},
    {"pending-cancel", pending_cancel},
    {"thread-ends", thread_ends},
    {"main-ends-first", main_ends_first},
    {"threads-at-exit", threads_at_exit},
    {"exit-at-once", exit_at_once},
    {"long-jump", long_jump},
    {"signals", signals},
    {"alternate-stacks", alternate_stacks},
    {"libraries", libraries},
    {"closes-all", closes_all},
    {"drops-privileges", drops_privileges},
    {"strict", strict},
    {"listed", listed},
    {"confined", confined},
    {"confines-by-call", confines_by_call},
    {"executes-confined", executes_confined},
    {"ends-late", ends_late},
    {"early", works_early},
    {"crashes", crashes},
    {"aborts", aborts},
    {"no-threads", no_threads},
    {"allocations", allocations},
    {"asked-to-end", asked_to_end},
    {"busy", busy},
    {"catches", catches},
};

int main(int argc, char **argv)
{
    program = "/proc/self/exe";
    if (argc == 3 && strcmp(argv[1], "status") == 0)
        return atoi(argv[2]);
    for (size_t i = 0; argc == 2 && i < COUNT(scenarios); i++) {
        if (strcmp(scenarios[i].name, argv[1]) == 0)
            return scenarios[i].run();
    }
    fprintf(stderr, "usage: survive SCENARIO\n");
    return 2;
}
