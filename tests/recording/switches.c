/*
 * Programs whose threads are on and off their CPUs in known ways, and which print the kernel's
 * counts for them. Times are CLOCK_MONOTONIC, in ns:
 *
 *     thread TID CPU                                              the CPU time of a thread
 *     window TID BEGIN END CPU DELAY WAITS PREEMPTIONS RECORDER   from BEGIN to END: CPU time, time
 *                                                                 on the run queue, switches, and
 *                                                                 how often the recorder went to sleep
 *     part TID BEGIN END CPU                                      from BEGIN to END: CPU time
 *
 * `refuse COMMAND...` executes a command for which the kernel refuses to report context switches,
 * as in a container.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "asleep.h"
#include "recorder_steps.h"

static int64_t clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Uses this much CPU time, however long it takes; hardly any of it in the kernel. */
static void burn(int64_t ns)
{
    int64_t end = clock_of(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end)
        for (volatile int i = 0; i < 20000; i++)
            ;
}

static void tell(void)
{
    printf("thread %ld %lld\n", (long)syscall(SYS_gettid),
           (long long)clock_of(CLOCK_THREAD_CPUTIME_ID));
}

/* MARK: What the kernel counts */

/* How long the thread has waited for a CPU: the second number in schedstat. */
static int64_t delay_ns(void)
{
    long long delay = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (!file || fscanf(file, "%*d %lld", &delay) != 1)
        exit(1);
    fclose(file);
    return delay;
}

struct counts {
    long tid;
    int64_t ns, cpu_ns, delay_ns;
    long waits, preemptions, steps;
};

static long switches_of(const struct rusage *usage)
{
    return usage->ru_nvcsw + usage->ru_nivcsw;
}

/* Reads all counts at one moment: again if the thread was off its CPU meanwhile. */
static struct counts counts_now(void)
{
    struct counts now = {.tid = gettid(), .steps = recorder_steps(getppid())};
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &after);
    do {
        before = after;
        now.delay_ns = delay_ns();
        now.ns = clock_of(CLOCK_MONOTONIC);
        now.cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
        getrusage(RUSAGE_THREAD, &after);
    } while (switches_of(&after) != switches_of(&before));
    now.waits = after.ru_nvcsw;
    now.preemptions = after.ru_nivcsw;
    return now;
}

static struct counts counts_since(const struct counts *begin)
{
    struct counts end = counts_now();
    end.cpu_ns -= begin->cpu_ns;
    end.delay_ns -= begin->delay_ns;
    end.waits -= begin->waits;
    end.preemptions -= begin->preemptions;
    end.steps -= begin->steps;
    return end;
}

static void tell_window(const struct counts *begin, const struct counts *since)
{
    printf("window %ld %lld %lld %lld %lld %ld %ld %ld\n", since->tid, (long long)begin->ns,
           (long long)since->ns, (long long)since->cpu_ns, (long long)since->delay_ns, since->waits,
           since->preemptions, since->steps);
}

static void tell_since(const struct counts *begin)
{
    struct counts since = counts_since(begin);
    tell_window(begin, &since);
    tell();
}

/* Returns when the recorder has processed everything so far. */
static void until_recorded(void)
{
    long steps = recorder_steps(getppid());
    while (recorder_steps(getppid()) < steps + 2)
        usleep(1000);
}

static void pin_to(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void pin(void)
{
    int cpu = sched_getcpu();
    pin_to((size_t)(cpu < 0 ? 0 : cpu));
}

/* MARK: Three threads on one CPU */

static void *busy(void *name)
{
    struct counts begin = counts_now();
    pthread_setname_np(pthread_self(), name);
    burn(300000000);
    tell_since(&begin);
    return NULL;
}

static void crowd(void)
{
    pthread_t threads[3];
    static char names[3][8] = {"busy-0", "busy-1", "busy-2"};
    pin();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, busy, names[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Twice as many threads as CPUs */

static void crowds(void)
{
    enum { MOST = 1024 };
    static pthread_t threads[MOST];
    long count = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    count = count < MOST ? count : MOST;
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, busy, "busy");
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Waits that bypass the wrappers */

/* glibc's syscall() may be wrapped; the instruction cannot be. */
static long unseen(long number, long a, long b, long c)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, a, b, c);
#endif
}

enum { HIDDEN_MS = 30, HIDDEN_WAITS = 20 };

__attribute__((noinline)) static void naps_itself(void)
{
    const struct timespec length = {0, HIDDEN_MS * 1000000};
    unseen(SYS_nanosleep, (long)&length, 0, 0);
}

__attribute__((noinline)) static void polls_itself(void)
{
    unseen(SYS_poll, 0, 0, HIDDEN_MS);
}

static void *sleeper(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < HIDDEN_WAITS; i++) {
        struct counts begin = counts_now(), since;
        (i % 2 ? polls_itself : naps_itself)();
        since = counts_since(&begin);
        tell_window(&begin, &since);
    }
    tell();
    return NULL;
}

static void hidden(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, "sleeper");
    pthread_join(thread, NULL);
}

/* MARK: A recorder that does not run */

/* Together they overflow the kernel's buffers of both CPUs, the last CPU's long before the first's. The
 * recorder continues while the program sleeps: no further record reports the loss. */
enum { NAPS = 10000, NAPPERS = 8, ON_FIRST = 2 };

/* Keeps the thread on the first or the last CPU that it may use. */
static void pin_to_end(bool last)
{
    cpu_set_t all;
    size_t cpu = last ? CPU_SETSIZE - 1 : 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    while (!CPU_ISSET(cpu, &all))
        cpu += last ? SIZE_MAX : 1;
    pin_to(cpu);
}

static void *napper(void *is_last)
{
    const struct timespec least = {0, 1000};
    struct counts begin;
    pin_to_end(is_last);
    begin = counts_now();
    pthread_setname_np(pthread_self(), "napper");
    for (int i = 0; i < NAPS; i++)
        nanosleep(&least, NULL);
    tell_since(&begin);
    return NULL;
}

static void starved(void)
{
    const struct timespec second = {1, 0};
    pthread_t threads[NAPPERS];
    kill(getppid(), SIGSTOP);
    for (int i = 0; i < NAPPERS; i++)
        pthread_create(&threads[i], NULL, napper, i < ON_FIRST ? NULL : threads);
    for (int i = 0; i < NAPPERS; i++)
        pthread_join(threads[i], NULL);
    close(creat("napped", 0600)); /* the test continues the recorder */
    unseen(SYS_nanosleep, (long)&second, 0, 0);
    until_recorded();
    printf("process %lld\n", (long long)clock_of(CLOCK_PROCESS_CPUTIME_ID));
}

/* MARK: Woken but not running */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool go;
static pid_t late_tid;

static void *late(void *name)
{
    __atomic_store_n(&late_tid, gettid(), __ATOMIC_RELEASE);
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&mutex);
    while (!go)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    burn(1000000);
    tell();
    return NULL;
}

/* The woken thread waits for the CPU, which its waker keeps using: it may run only in between. */
static void queue(void)
{
    struct sched_param param = {0};
    pthread_t thread;
    pin();
    pthread_create(&thread, NULL, late, "late");
    pthread_setschedparam(thread, SCHED_BATCH, &param); /* does not preempt its waker */
    until_asleep(&late_tid);
    pthread_mutex_lock(&mutex);
    go = true;
    pthread_mutex_unlock(&mutex);
    /* Signal without holding the mutex: the woken thread would wait for it if this thread were
     * preempted. */
    pthread_cond_signal(&changed);
    burn(100000000);
    tell();
    pthread_join(thread, NULL);
}

/* MARK: Asleep while others have the CPU */

static atomic_int sleepers;

static void *rival_of_sleepers(void *argument)
{
    while (sleepers > 0)
        burn(1000000);
    return argument;
}

/* Each sleep ends while another thread uses the CPU, and keeps it. */
static void *sleeps(void *name)
{
    struct counts begin = counts_now();
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 60; i++)
        usleep(5000);
    tell_since(&begin);
    sleepers--;
    return NULL;
}

static void timers(void)
{
    struct sched_param param = {0};
    pthread_t rivals[3], sleeper;
    pin();
    sleepers = 1;
    for (int i = 0; i < 3; i++)
        pthread_create(&rivals[i], NULL, rival_of_sleepers, NULL);
    pthread_create(&sleeper, NULL, sleeps, "sleeper");
    pthread_setschedparam(sleeper, SCHED_BATCH, &param); /* does not preempt the others */
    pthread_join(sleeper, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(rivals[i], NULL);
}

/* MARK: Woken in vain by a semaphore */

static sem_t permits;

/* Takes a permit again before the thread that was woken for it runs. */
static void *takes(void *name)
{
    const struct timespec length = {0, 1000000};
    struct counts begin = counts_now();
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 60; i++) {
        sem_wait(&permits);
        nanosleep(&length, NULL);
        sem_post(&permits);
    }
    tell_since(&begin);
    return NULL;
}

static void barging(void)
{
    pthread_t threads[6];
    sem_init(&permits, 0, 2);
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, takes, "takes");
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Woken in vain by a pipe */

static int shared_pipe[2];

/* One of several readers: another has often read the byte by the time this thread runs. */
static void *reads(void *name)
{
    struct counts begin = counts_now();
    char byte;
    pthread_setname_np(pthread_self(), name);
    while (read(shared_pipe[0], &byte, 1) == 1)
        burn(300000);
    tell_since(&begin);
    return NULL;
}

static void vain(void)
{
    pthread_t threads[5];
    pin();
    if (pipe(shared_pipe) != 0)
        exit(1);
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, reads, "reads");
    for (int i = 0; i < 300; i++) {
        (void)!write(shared_pipe[1], "ab", 2);
        if (i % 3 == 0)
            usleep(2000);
    }
    close(shared_pipe[1]);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Short work between waits */

struct work {
    const char *name;
    int times, sleep_us, work_ns;
};

enum { PARTS = 20 };

static void *works(void *argument)
{
    const struct work *work = argument;
    struct counts begin = counts_now();
    int64_t ns[PARTS + 1], cpu_ns[PARTS + 1];
    pthread_setname_np(pthread_self(), work->name);
    for (int part = 0;; part++) {
        ns[part] = clock_of(CLOCK_MONOTONIC);
        cpu_ns[part] = clock_of(CLOCK_THREAD_CPUTIME_ID);
        if (part == PARTS)
            break;
        for (int i = 0; i < work->times / PARTS; i++) {
            if (work->work_ns)
                burn(work->work_ns);
            usleep((useconds_t)work->sleep_us);
        }
    }
    tell_since(&begin);
    for (int i = 0; i < PARTS; i++)
        printf("part %ld %lld %lld %lld\n", begin.tid, (long long)ns[i], (long long)ns[i + 1],
               (long long)(cpu_ns[i + 1] - cpu_ns[i]));
    return NULL;
}

static void moments(void)
{
    static struct work work[] = {{"hardly", 2500, 200, 0},
                                 {"shortly", 1500, 300, 10000},
                                 {"longer", 400, 1000, 200000},
                                 {"long", 20, 2000, 10000000}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, works, &work[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Busy in system calls */

__attribute__((noreturn)) static void *rival(void *unused)
{
    (void)unused;
    for (;;)
        burn(1000000);
}

/* CPU time within a call is not a wait, even if another thread preempts it, as one does here. */
static void copying(void)
{
    size_t size = 256u << 20;
    char *memory = malloc(1u << 20);
    int file = memfd_create("copies", MFD_CLOEXEC);
    pthread_t thread;
    struct counts begin;
    if (!memory || file < 0)
        exit(1);
    pin();
    begin = counts_now();
    pthread_create(&thread, NULL, rival, NULL); /* until the process ends */
    memset(memory, 1, 1u << 20);
    for (size_t done = 0; done < size / 4; done += 1u << 20)
        (void)!write(file, memory, 1u << 20);
    for (int i = 0; i < 4; i++) {
        lseek(file, 0, SEEK_SET);
        while (read(file, memory, 1u << 20) > 0)
            ;
    }
    free(memory);
    tell_since(&begin);
}

/* MARK: Without the kernel's context switches */

static int refuse(char **command)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 77;
    execv(command[0], command);
    return 1;
}

/* MARK: Where the CPU time goes */

__attribute__((noinline)) static int costly(const void *a, const void *b)
{
    burn(1000000);
    return *(const int *)a - *(const int *)b;
}

/* Calls the C library, which has no frame pointers: three comparisons each time. */
__attribute__((noinline)) static void sorts(void)
{
    for (int i = 0; i < 100; i++) {
        int numbers[3] = {3, 1, 2};
        qsort(numbers, 3, sizeof numbers[0], costly);
    }
    __asm__ volatile("");
}

__attribute__((noinline)) static void burns(void)
{
    burn(100000000);
    __asm__ volatile("");
}

/* How often a POSIX timer has fired: in total, and in sorts(). */
static volatile sig_atomic_t ticks[2], in_sorts;

static void count_tick(int signal)
{
    (void)signal;
    ticks[0]++;
    ticks[1] += in_sorts;
}

/* Counts with a POSIX timer on the thread's CPU time. */
__attribute__((noinline)) static void work_timed(int counts[2])
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
    struct itimerspec every = {{0, 10000000}, {0, 10000000}};
    struct sigaction action = {.sa_handler = count_tick, .sa_flags = SA_RESTART};
    timer_t timer;
    event._sigev_un._tid = gettid(); /* sigev_notify_thread_id */
    if (sigaction(SIGRTMIN + 1, &action, NULL) != 0 ||
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0 ||
        timer_settime(timer, 0, &every, NULL) != 0)
        exit(1);
    in_sorts = 1;
    sorts();
    in_sorts = 0;
    burns();
    timer_delete(timer);
    counts[0] = (int)ticks[0];
    counts[1] = (int)ticks[1];
}

/*
 * The perf event that the recorder uses too: it stops while the thread is off its CPU, and misses
 * CPU time taken by a host. Returns its ring, of 8 pages.
 */
static struct perf_event_mmap_page *open_clock(void)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_type = PERF_SAMPLE_TIME,
        .sample_period = 1000000,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    void *ring;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        attr.exclude_kernel = 1;
        fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    ring = mmap(NULL, 9 * (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || ring == MAP_FAILED)
        exit(1);
    return ring;
}

/* Counts the samples up to a time. */
static int count_samples(const struct perf_event_mmap_page *ring, int64_t until_ns)
{
    const char *data = (const char *)ring + ring->data_offset;
    struct {
        struct perf_event_header header;
        uint64_t ns;
    } sample;
    int count = 0;
    for (uint64_t at = 0; at < ring->data_head; at += sample.header.size) {
        memcpy(&sample, data + at, sizeof sample);
        count += sample.header.type == PERF_RECORD_SAMPLE && (int64_t)sample.ns <= until_ns;
    }
    return count;
}

/* Counts with samples of the perf event. */
__attribute__((noinline)) static void work_sampled(int counts[2])
{
    struct perf_event_mmap_page *ring = open_clock();
    int64_t sorted_ns;
    sorts();
    sorted_ns = clock_of(CLOCK_MONOTONIC);
    burns();
    counts[0] = count_samples(ring, INT64_MAX);
    counts[1] = count_samples(ring, sorted_ns);
}

/* Prints how often a clock like the recorder's has fired: in total, and in sorts(). */
static void *profiled(void *timed)
{
    struct counts begin = counts_now();
    int fired[2];
    pthread_setname_np(pthread_self(), "profiled");
    timed ? work_timed(fired) : work_sampled(fired);
    tell_since(&begin);
    printf("ticks %d %d\n", fired[0], fired[1]);
    return NULL;
}

static void profile(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, profiled, NULL);
    pthread_join(thread, NULL);
}

static void profile_timed(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, profiled, "timed");
    pthread_join(thread, NULL);
}

/* MARK: Many switches */

static void *ping(void *fds)
{
    const int *fd = fds;
    uint64_t one = 1;
    for (int i = 0; i < 20000; i++) {
        (void)!read(fd[0], &one, sizeof one);
        (void)!write(fd[1], &one, sizeof one);
    }
    return NULL;
}

static void pingpong(void)
{
    int fd[3] = {eventfd(0, 0), eventfd(0, 0), 0};
    int other[2] = {fd[1], fd[0]};
    uint64_t one = 1;
    pthread_t a, b;
    struct counts begin = counts_now(), since;
    pthread_create(&a, NULL, ping, fd);
    pthread_create(&b, NULL, ping, other);
    (void)!write(fd[0], &one, sizeof one);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    since = counts_since(&begin);
    tell_window(&begin, &since);
    close(fd[0]);
    close(fd[1]);
}

static void *nothing(void *argument)
{
    return argument;
}

static void threads(void)
{
    for (int i = 0; i < 3000; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
    }
}

/* MARK: Pages of a file */

enum { PAGES = 64, PAGE = 4096 };

__attribute__((noinline)) static int touch(const volatile char *at)
{
    return at[0];
}

/*
 * Touches each page of a file that is not in memory, if the file system is on a disk, and prints
 * how many major faults the kernel counted for it. A page may arrive before the thread leaves its
 * CPU.
 */
static void *pager(void *name)
{
    char *data = calloc(PAGES, PAGE), path[] = "pages-XXXXXX";
    int fd = mkstemp(path), sum = 0;
    struct rusage before, after;
    struct counts begin;
    const char *pages;
    pthread_setname_np(pthread_self(), name);
    if (!data || fd < 0 || write(fd, data, PAGES * PAGE) != PAGES * PAGE || fsync(fd) != 0)
        exit(1);
    free(data);
    pages = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (pages == MAP_FAILED)
        exit(1);
    madvise((void *)pages, PAGES * PAGE, MADV_RANDOM);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    begin = counts_now();
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < PAGES; i++)
        sum += touch(pages + (size_t)i * PAGE);
    getrusage(RUSAGE_THREAD, &after);
    tell_since(&begin);
    printf("file %s\nfaults %ld\n", path, after.ru_majflt - before.ru_majflt + sum);
    /* The file must still be there and mapped when the recorder looks up its name. */
    until_recorded();
    return NULL;
}

static void faults(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, pager, "pager");
    pthread_join(thread, NULL);
}

/* MARK: Many switches, then few */

static atomic_bool enough;

static void *old(void *name)
{
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&mutex);
    while (!go)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    while (!enough)
        burn(1000000);
    tell();
    return NULL;
}

/* Whether the recorder has perf events open: it closes them while there are too many switches. */
static bool has_events(void)
{
    char path[64], target[64];
    const struct dirent *entry;
    bool found = false;
    DIR *folder;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)getppid());
    folder = opendir(path);
    if (!folder)
        exit(1);
    while (!found && (entry = readdir(folder)) != NULL) {
        ssize_t n = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        found = strstr(target, "perf_event") != NULL;
    }
    closedir(folder);
    return found;
}

/*
 * The recorder stops recording switches, and resumes while nothing happens. Then two threads, one
 * of which has existed all along, compete for one CPU until the recorder has seen it for a while.
 * If the recorder itself gets too little CPU, it loses records and stops again.
 */
static void flurry(void)
{
    pthread_t thread;
    long long begin;
    pin();
    pthread_create(&thread, NULL, old, "old");
    do
        pingpong();
    while (has_events());
    do {
        while (!has_events())
            usleep(10000);
        until_recorded();
        pthread_mutex_lock(&mutex);
        go = true;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
        begin = clock_of(CLOCK_MONOTONIC);
        burn(200000000);
    } while (!has_events());
    printf("seen %lld %lld\n", begin, (long long)clock_of(CLOCK_MONOTONIC));
    enough = true;
    tell();
    pthread_join(thread, NULL);
}

/* MARK: Many processes */

/* Forks children as fast as the recorder provides areas for them; each sleeps for most of its
 * life. */
static void family(void)
{
    enum { CHILDREN = 30 };
    int has_area[2];
    char byte;
    if (pipe(has_area) != 0)
        exit(1);
    for (int i = 0; i < CHILDREN; i++) {
        int pid = fork();
        if (pid < 0)
            exit(1);
        if (pid == 0) {
            (void)!write(has_area[1], "x", 1);
            usleep(200000);
            dprintf(STDOUT_FILENO, "exits %d %lld\n", (int)getpid(),
                    (long long)clock_of(CLOCK_MONOTONIC));
            _exit(0);
        }
        (void)!read(has_area[0], &byte, 1);
    }
    for (int i = 0; i < CHILDREN; i++) {
        int pid = wait(NULL);
        printf("reaped %d %lld\n", pid, (long long)clock_of(CLOCK_MONOTONIC));
    }
}

/* A child on the parent's CPU. The kernel counts for it from the fork. */
static void forked(void)
{
    const struct counts none = {.ns = clock_of(CLOCK_MONOTONIC)};
    pid_t pid;
    pin();
    pid = fork();
    if (pid < 0)
        exit(1);
    if (pid == 0) {
        /* Touch these pages first, so that their page faults lie within the window. */
        (void)counts_now();
        burn(1000000);
        tell_since(&none);
        fflush(stdout);
        _exit(0);
    }
    printf("forked %lld\n", (long long)clock_of(CLOCK_MONOTONIC));
    waitpid(pid, NULL, 0);
}

/* MARK: Killed while running and waiting */

static pid_t stuck_tid;
static struct counts forever_begin, forever_since;
static pthread_spinlock_t forever_lock;

/* Stores the kernel's counts for this thread. */
#define FOREVER_NS 50000000

__attribute__((noreturn)) static void *forever(void *argument)
{
    (void)argument;
    struct counts since = {0};
    forever_begin = counts_now();
    while (since.cpu_ns < FOREVER_NS) {
        burn(1000000);
        since = counts_since(&forever_begin);
        pthread_spin_lock(&forever_lock);
        forever_since = since;
        pthread_spin_unlock(&forever_lock);
    }
    /* Without any system call, so that the thread runs when the process ends. */
    for (;;)
        burn(1000000);
}

static void *stuck(void *argument)
{
    __atomic_store_n(&stuck_tid, gettid(), __ATOMIC_RELEASE);
    pthread_mutex_lock(&mutex);
    return argument;
}

/* Both threads are alive when the process ends. */
static void leave(void)
{
    pthread_t thread;
    struct counts begin, since = {0};
    pthread_mutex_lock(&mutex);
    pthread_spin_init(&forever_lock, 0);
    pthread_create(&thread, NULL, forever, NULL);
    pthread_create(&thread, NULL, stuck, NULL);
    until_asleep(&stuck_tid);
    begin = counts_now();
    burn(100000000);
    tell_since(&begin);
    while (since.cpu_ns < FOREVER_NS) {
        sched_yield();
        pthread_spin_lock(&forever_lock);
        since = forever_since;
        pthread_spin_unlock(&forever_lock);
    }
    tell_window(&forever_begin, &since);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"crowd", crowd},
                    {"hidden", hidden},
                    {"queue", queue},
                    {"copying", copying},
                    {"pingpong", pingpong},
                    {"threads", threads},
                    {"leave", leave},
                    {"profile", profile},
                    {"family", family},
                    {"flurry", flurry},
                    {"starved", starved},
                    {"faults", faults},
                    {"profile-timed", profile_timed},
                    {"timers", timers},
                    {"barging", barging},
                    {"moments", moments},
                    {"crowds", crowds},
                    {"vain", vain},
                    {"forked", forked}};
    if (argc > 2 && strcmp(argv[1], "refuse") == 0)
        return refuse(argv + 2);

    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof programs[0]; i++) {
        if (strcmp(argv[1], programs[i].name) == 0) {
            programs[i].run();
            return 0;
        }
    }
    return 2;
}
