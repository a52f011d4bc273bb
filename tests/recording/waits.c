/*
 * Waits of each kind, with a known object and minimum time: waits.py has the expected answers. Each
 * object is held or kept back for HOLD by a thread that sees the waiter sleep (its state in /proc),
 * so that the wait happens however late a thread runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "waiting.h"

enum { LIMIT_MS = 30, SHORT_MS = 2 };

pthread_mutex_t stats_mu = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_mutex_t queue_mu = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
sem_t tickets;

static void *keep_mutex(void *ready)
{
    pthread_mutex_lock(&stats_mu);
    sem_post(ready);
    keep_waiting();
    pthread_mutex_unlock(&stats_mu);
    return NULL;
}

static void *keep_rwlock(void *ready)
{
    pthread_rwlock_wrlock(&config_lock);
    sem_post(ready);
    keep_waiting();
    pthread_rwlock_unlock(&config_lock);
    return NULL;
}

static void *post_late(void *ready)
{
    sem_post(ready);
    keep_waiting();
    sem_post(&tickets);
    return NULL;
}

static void *end_late(void *ready)
{
    sem_post(ready);
    keep_waiting();
    return NULL;
}

static int ends[2];

static void *write_late(void *ready)
{
    sem_post(ready);
    keep_waiting();
    if (write(ends[1], "x", 1) != 1)
        abort();
    return NULL;
}

static pthread_t begin(void *(*keeper)(void *))
{
    pthread_t thread;
    sem_t ready;
    sem_init(&ready, 0, 0);
    waiter_tid = 0;
    if (pthread_create(&thread, NULL, keeper, &ready) != 0)
        abort();
    while (sem_trywait(&ready) != 0)
        sched_yield();
    waiter_tid = gettid();
    return thread;
}

static void in_a_thread(void *(*body)(void *))
{
    pthread_t thread;
    expect(pthread_create(&thread, NULL, body, NULL) == 0);
    pthread_join(thread, NULL);
}

static struct timespec limit(clockid_t clock)
{
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_nsec += LIMIT_MS * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

static void wait_for_mutex(void)
{
    pthread_t keeper = begin(keep_mutex);
    pthread_mutex_lock(&stats_mu);
    pthread_mutex_unlock(&stats_mu);
    pthread_join(keeper, NULL);
}

static void wait_for_rwlock(void)
{
    pthread_t keeper = begin(keep_rwlock);
    pthread_rwlock_rdlock(&config_lock);
    pthread_rwlock_unlock(&config_lock);
    pthread_join(keeper, NULL);
}

static void wait_for_semaphore(void)
{
    pthread_t keeper = begin(post_late);
    while (sem_wait(&tickets) != 0)
        ;
    pthread_join(keeper, NULL);
}

static void wait_for_thread(void)
{
    pthread_t keeper = begin(end_late);
    pthread_join(keeper, NULL);
}

static void wait_for_pipe(void)
{
    char byte;
    expect(pipe(ends) == 0);
    pthread_t keeper = begin(write_late);
    expect(read(ends[0], &byte, 1) == 1);
    pthread_join(keeper, NULL);
}

static int log_ends[2];

static void *empty_late(void *ready)
{
    static char bytes[4096];
    sem_post(ready);
    keep_waiting();
    expect(fcntl(log_ends[0], F_SETFL, O_NONBLOCK) == 0);
    while (read(log_ends[0], bytes, sizeof bytes) > 0)
        ;
    return NULL;
}

/* syslog also writes to stderr, which is a full pipe here. */
static void wait_in_syslog(void)
{
    static const char bytes[4096];
    int own = dup(STDERR_FILENO);
    expect(own >= 0 && pipe2(log_ends, O_NONBLOCK) == 0);
    while (write(log_ends[1], bytes, sizeof bytes) > 0)
        ;
    expect(fcntl(log_ends[1], F_SETFL, 0) == 0 &&
           dup2(log_ends[1], STDERR_FILENO) == STDERR_FILENO);
    openlog("waits", LOG_PERROR, LOG_USER);
    pthread_t keeper = begin(empty_late);
    errno = ENOENT;
    syslog(LOG_DEBUG, "%m");
    pthread_join(keeper, NULL);
    expect(dup2(own, STDERR_FILENO) == STDERR_FILENO);
}

/* Starts a process that ends HOLD_MS after this thread was seen waiting. */
static pid_t begin_child(const char *what)
{
    char path[64];
    pid_t child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)getpid(), (int)gettid());
    child = fork();
    expect(child != -1);
    if (child == 0) {
        while (!sleeps_by(path))
            sched_yield();
        pass(HOLD_MS);
        _exit(0);
    }
    printf("%s %d\n", what, (int)child);
    fflush(stdout);
    return child;
}

static void wait_by_waitpid(void)
{
    pid_t child = begin_child("waitpid");
    expect(waitpid(child, NULL, 0) == child);
}

static void wait_by_wait4(void)
{
    pid_t child = begin_child("wait4");
    expect(wait4(child, NULL, 0, NULL) == child);
}

static void wait_by_waitid(void)
{
    siginfo_t info;
    pid_t child = begin_child("waitid");
    expect(waitid(P_PID, (id_t)child, &info, WEXITED) == 0);
}

/* The process remains a zombie, so that its descriptor has a name until the test has ended. */
static void wait_by_pidfd(void)
{
    siginfo_t info;
    pid_t child = begin_child("pidfd");
    long fd = syscall(SYS_pidfd_open, child, 0);
    expect(fd != -1);
    /* 3: P_PIDFD, which older C libraries do not declare. */
    expect(waitid((idtype_t)3, (id_t)fd, &info, WEXITED | WNOWAIT) == 0);
}

static void *poll_pidfd(void *unused)
{
    (void)unused;
    pid_t child = begin_child("poll");
    struct pollfd fd = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
    expect(fd.fd != -1);
    expect(poll(&fd, 1, -1) == 1);
    return NULL;
}

/* A message is sent, or a semaphore raised, HOLD_MS after the waiter was seen waiting. */
static mqd_t posix_queue;
static int set, messages;
static char queue_name[64];

static void *send_late(void *ready)
{
    sem_post(ready);
    keep_waiting();
    expect(mq_send(posix_queue, "x", 1, 0) == 0);
    return NULL;
}

static void wait_by_mq_receive(void)
{
    struct mq_attr shape = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char text[8];
    snprintf(queue_name, sizeof queue_name, "/trail-waits-%d-named", (int)getpid());
    printf("posix %s\n", queue_name);
    posix_queue = mq_open(queue_name, O_CREAT | O_EXCL | O_RDWR, 0600, &shape);
    expect(posix_queue != (mqd_t)-1);
    pthread_t keeper = begin(send_late);
    expect(mq_receive(posix_queue, text, sizeof text, NULL) == 1);
    pthread_join(keeper, NULL);
}

static void *receive_late(void *ready)
{
    char text[8];
    sem_post(ready);
    keep_waiting();
    expect(mq_receive(posix_queue, text, sizeof text, NULL) == 1);
    return NULL;
}

/* The queue has room for one message. */
static void wait_by_mq_send(void)
{
    expect(mq_send(posix_queue, "x", 1, 0) == 0);
    pthread_t keeper = begin(receive_late);
    expect(mq_send(posix_queue, "x", 1, 0) == 0);
    pthread_join(keeper, NULL);
}

static void *is_named(void *begun)
{
    sem_post(begun);
    pass(SHORT_MS);
    return NULL;
}

/* Of two threads that have the same handle in turn, the second one is named; it may not run yet. */
static void name_another(void)
{
    pthread_t first, second;
    sem_t begun;
    sem_init(&begun, 0, 0);
    expect(pthread_create(&first, NULL, is_named, &begun) == 0);
    pthread_join(first, NULL);
    expect(pthread_create(&second, NULL, is_named, &begun) == 0);
    expect(pthread_equal(first, second) && pthread_setname_np(second, "named by other") == 0);
    pthread_join(second, NULL);
}

static void *name_itself(void *unused)
{
    (void)unused;
    expect(prctl(PR_SET_NAME, "named by prctl") == 0);
    pass(SHORT_MS);
    return NULL;
}

static int source[2], sink[2];

static void *feed_late(void *ready)
{
    sem_post(ready);
    keep_waiting();
    expect(write(source[1], "x", 1) == 1);
    return NULL;
}

static void *drain_late(void *ready)
{
    char text[8];
    sem_post(ready);
    keep_waiting();
    expect(read(sink[0], text, sizeof text) > 0);
    return NULL;
}

static void make_pipes(void)
{
    struct stat from, to;
    expect(pipe2(source, O_NONBLOCK) == 0 && pipe2(sink, O_NONBLOCK) == 0);
    expect(fcntl(source[0], F_SETFL, 0) == 0 && fcntl(sink[1], F_SETFL, 0) == 0);
    expect(fstat(source[0], &from) == 0 && fstat(sink[1], &to) == 0);
    printf("source pipe:[%lu]\nsink pipe:[%lu]\n", (unsigned long)from.st_ino,
           (unsigned long)to.st_ino);
}

static void wait_in_splice(void)
{
    pthread_t keeper = begin(feed_late);
    expect(splice(source[0], NULL, sink[1], NULL, 1, 0) == 1);
    pthread_join(keeper, NULL);
}

static void wait_in_tee(void)
{
    char text[8];
    pthread_t keeper = begin(feed_late);
    expect(tee(source[0], sink[1], 1, 0) == 1);
    pthread_join(keeper, NULL);
    expect(read(source[0], text, sizeof text) == 1);
}

static void splice_into_file(void)
{
    int fd = memfd_create("trail-waits", 0);
    off64_t at = 0;
    pthread_t keeper = begin(feed_late);
    expect(splice(source[0], NULL, fd, &at, 1, 0) == 1);
    pthread_join(keeper, NULL);
    close(fd);
}

/* Each page of the file takes one of the pipe's buffers; one is in use. */
static void splice_from_file(void)
{
    int fd = memfd_create("trail-waits", 0), size = fcntl(sink[1], F_GETPIPE_SZ);
    off64_t at = 0;
    expect(ftruncate(fd, 2 * (off_t)size) == 0);
    while (splice(fd, &at, sink[1], NULL, (size_t)size, SPLICE_F_NONBLOCK) > 0)
        ;
    pthread_t keeper = begin(drain_late);
    expect(splice(fd, &at, sink[1], NULL, 1, 0) == 1);
    pthread_join(keeper, NULL);
    close(fd);
}

static void *raise_late(void *ready)
{
    struct sembuf give = {0, 1, 0};
    sem_post(ready);
    keep_waiting();
    expect(semop(set, &give, 1) == 0);
    return NULL;
}

static void wait_by_semop(void)
{
    struct sembuf take = {0, -1, 0};
    int key = (int)getpid() | 0x40000000;
    set = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600);
    expect(set != -1);
    printf("set %d-0x%x\n", set, (unsigned)key);
    pthread_t keeper = begin(raise_late);
    expect(semop(set, &take, 1) == 0);
    pthread_join(keeper, NULL);
}

static void *put_late(void *ready)
{
    struct msgbuf message = {1, {0}};
    sem_post(ready);
    keep_waiting();
    expect(msgsnd(messages, &message, 1, 0) == 0);
    return NULL;
}

static void wait_by_msgrcv(void)
{
    struct msgbuf message;
    messages = msgget(IPC_PRIVATE, 0600);
    expect(messages != -1);
    printf("queue %d\n", messages);
    pthread_t keeper = begin(put_late);
    expect(msgrcv(messages, &message, 1, 0, 0) == 1);
    pthread_join(keeper, NULL);
}

static void *take_late(void *ready)
{
    struct msgbuf message;
    sem_post(ready);
    keep_waiting();
    expect(msgrcv(messages, &message, 1, 0, 0) == 1);
    return NULL;
}

/* The queue has room for one byte. */
static void wait_by_msgsnd(void)
{
    struct msgbuf message = {1, {0}};
    struct msqid_ds state;
    expect(msgctl(messages, IPC_STAT, &state) == 0);
    state.msg_qbytes = 1;
    expect(msgctl(messages, IPC_SET, &state) == 0);
    expect(msgsnd(messages, &message, 1, 0) == 0);
    pthread_t keeper = begin(take_late);
    expect(msgsnd(messages, &message, 1, 0) == 0);
    pthread_join(keeper, NULL);
}

static char fifo[64], idle_fifo[64];
static int open_after_ms;

static void *open_other_end(void *ready)
{
    sem_post(ready);
    await_waiter();
    pass(open_after_ms);
    int fd = open(fifo, O_WRONLY);
    expect(fd != -1);
    close(fd);
    return NULL;
}

static void open_fifo(int after_ms)
{
    open_after_ms = after_ms;
    pthread_t keeper = begin(open_other_end);
    int fd = open(fifo, O_RDONLY);
    expect(fd != -1);
    close(fd);
    pthread_join(keeper, NULL);
}

static void wait_for_fifo(void)
{
    open_fifo(HOLD_MS);
}

/* Too short for the recorder to examine the call. */
static void wait_shortly_for_fifo(void)
{
    open_fifo(SHORT_MS);
}

/* Nothing ever opens the other end. */
static void *open_idle_fifo(void *unused)
{
    (void)open(idle_fifo, O_RDONLY);
    return unused;
}

static void make_fifos(void)
{
    pthread_t thread;
    snprintf(fifo, sizeof fifo, "/tmp/trail-waits-%d", (int)getpid());
    snprintf(idle_fifo, sizeof idle_fifo, "/tmp/trail-waits-idle-%d", (int)getpid());
    printf("fifo %s\nidle %s\n", fifo, idle_fifo);
    expect(mkfifo(fifo, 0600) == 0 && mkfifo(idle_fifo, 0600) == 0);
    expect(pthread_create(&thread, NULL, open_idle_fifo, NULL) == 0);
}

/* Futex words, far enough apart for the recorder to count their waiters separately. */
_Alignas(64) uint32_t first_word;
_Alignas(64) uint32_t second_word;

static void wake_second(void)
{
    second_word = 1;
    expect(syscall(SYS_futex, &second_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
}

static void *wake_late(void *ready)
{
    sem_post(ready);
    keep_waiting();
    wake_second();
    return NULL;
}

/* Uses SYS_futex_waitv, which has this number everywhere; kernels before 5.16 lack it. */
static void wait_for_futexes(void)
{
    /* struct futex_waitv: 2 is FUTEX_32, 128 FUTEX_PRIVATE_FLAG. */
    struct {
        uint64_t value, word;
        uint32_t flags, unused;
    } both[] = {{0, (uintptr_t)&first_word, 2 | 128, 0}, {0, (uintptr_t)&second_word, 2 | 128, 0}};
    int is_there = syscall(449, NULL, 0, 0, NULL, 0) == -1 && errno != ENOSYS;
    printf("futexes %d\n", is_there);
    if (!is_there)
        return;
    pthread_t keeper = begin(wake_late);
    expect(syscall(449, both, 2, 0, NULL, 0) == 1);
    pthread_join(keeper, NULL);
}

/* The child sleeps in its parent's memory while the parent waits. */
static void wait_in_vfork(void)
{
    /* NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork): vfork is
     * tested */
    pid_t child = vfork();
    expect(child != -1);
    if (child == 0) {
        pass(HOLD_MS);
        _exit(3);
    }
    /* NOLINTEND(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork) */
    int status = 0;
    printf("vfork %d\n", (int)child);
    expect(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
}

static long sleeps_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* On a busy machine the limit may pass before the call waits, so the call is repeated until it
 * does. */
static void time_out(void (*call)(const struct timespec *until))
{
    long before = sleeps_so_far();
    while (sleeps_so_far() == before) {
        struct timespec until = limit(CLOCK_REALTIME);
        call(&until);
    }
}

static void time_out_of_condition(const struct timespec *until)
{
    pthread_mutex_lock(&queue_mu);
    while (pthread_cond_timedwait(&queue_filled, &queue_mu, until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&queue_mu);
}

static void time_out_of_semaphore(const struct timespec *until)
{
    while (sem_timedwait(&tickets, until) != -1 || errno != ETIMEDOUT)
        ;
}

static void time_out_of_poll(void)
{
    struct pollfd fd = {.fd = ends[0], .events = POLLIN};
    expect(poll(&fd, 1, LIMIT_MS) == 0);
}

/* These calls have their time limits enforced by the kernel. */
static void time_out_of_signal(void)
{
    struct timespec length = {0, LIMIT_MS * 1000000L};
    sigset_t none;
    sigemptyset(&none);
    sigaddset(&none, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &none, NULL);
    expect(sigtimedwait(&none, NULL, &length) == -1 && errno == EAGAIN);
}

static void time_out_of_operation(void)
{
    struct timespec length = {0, LIMIT_MS * 1000000L};
    struct sembuf take = {0, -1, 0};
    int unnamed = semget(IPC_PRIVATE, 1, 0600);
    expect(unnamed != -1);
    printf("unnamed %d\n", unnamed);
    expect(semtimedop(unnamed, &take, 1, &length) == -1 && errno == EAGAIN);
    semctl(unnamed, 0, IPC_RMID);
}

static void time_out_of_messages(const struct timespec *until)
{
    struct mq_attr shape = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[64], text[8];
    snprintf(name, sizeof name, "/trail-waits-%d", (int)getpid());
    mqd_t queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &shape);
    expect(queue != (mqd_t)-1);
    mq_unlink(name);
    expect(mq_timedreceive(queue, text, sizeof text, NULL, until) == -1 && errno == ETIMEDOUT);
    mq_close(queue);
}

enum { JOBS = 6 };
static int jobs, closed;

/* A pool worker: it returns to the same wait after each job, and does hardly anything else. */
static void *work(void *unused)
{
    (void)unused;
    waiter_tid = gettid();
    pthread_mutex_lock(&queue_mu);
    while (!closed) {
        while (jobs == 0 && !closed)
            pthread_cond_wait(&queue_filled, &queue_mu);
        jobs = 0;
    }
    pthread_mutex_unlock(&queue_mu);
    return NULL;
}

/* How long a thread has been running or ready to run. */
static int busy_ms(pid_t tid)
{
    char path[64];
    unsigned long long ran = 0, delayed = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    FILE *file = fopen(path, "r");
    expect(file && fscanf(file, "%llu %llu", &ran, &delayed) == 2);
    fclose(file);
    return (int)((ran + delayed) / 1000000);
}

/* Each wait is longer than the worker's busy time so far, even on a busy machine. */
static void give_jobs(void)
{
    pthread_t worker;
    waiter_tid = 0;
    expect(pthread_create(&worker, NULL, work, NULL) == 0);
    for (int i = 0; i < JOBS; i++) {
        keep_waiting();
        pass(busy_ms(waiter_tid));
        pthread_mutex_lock(&queue_mu);
        jobs = 1;
        closed = i == JOBS - 1;
        pthread_cond_signal(&queue_filled);
        pthread_mutex_unlock(&queue_mu);
    }
    pthread_join(worker, NULL);
}

/* Yields repeatedly for 200 ms; prints how often. */
__attribute__((noinline)) static void spin_with_yields(void)
{
    struct timespec end, now;
    long yields = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += 200 * 1000000L;
    do {
        for (int i = 0; i < 10; i++, yields++)
            sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec < end.tv_nsec);
    printf("yields %ld\n", yields);
}

int main(void)
{
    sem_init(&tickets, 0, 0);
    make_fifos();
    wait_for_mutex();
    wait_for_rwlock();
    wait_for_semaphore();
    wait_for_thread();
    wait_for_pipe();
    wait_in_syslog();
    wait_for_fifo();
    for (int i = 0; i < 5; i++)
        wait_shortly_for_fifo();
    make_pipes();
    wait_in_splice();
    wait_in_tee();
    splice_into_file();
    splice_from_file();
    wait_by_mq_receive();
    wait_by_mq_send();
    wait_by_semop();
    wait_by_msgrcv();
    wait_by_msgsnd();
    wait_by_waitpid();
    wait_by_wait4();
    wait_by_waitid();
    wait_in_vfork();
    wait_for_futexes();
    wait_by_pidfd();
    in_a_thread(poll_pidfd);
    in_a_thread(name_itself);
    name_another();
    time_out(time_out_of_condition);
    time_out(time_out_of_semaphore);
    time_out_of_poll();
    time_out_of_signal();
    time_out_of_operation();
    time_out(time_out_of_messages);
    give_jobs();
    spin_with_yields();
    semctl(set, 0, IPC_RMID);
    msgctl(messages, IPC_RMID, NULL);
    mq_unlink(queue_name);
    unlink(fifo);
    unlink(idle_fifo);
    return 0;
}
