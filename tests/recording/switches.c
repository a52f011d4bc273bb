/*
 * Programs whose threads are on and off their CPUs in known ways. What they used is printed as the kernel's
 * clocks of CPU time have it: "thread TID NS" a thread, "process NS" in the end.
 *
 * `refuse COMMAND...` executes a command that the kernel lets read no context switches, as in a container.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
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

static int64_t clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Uses so much CPU time, however long it takes; hardly any of it within the kernel. */
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

static void pin(void)
{
    cpu_set_t set;
    int cpu = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET((size_t)(cpu < 0 ? 0 : cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* MARK: Three that want one CPU */

static void *busy(void *name)
{
    pthread_setname_np(pthread_self(), name);
    burn(300000000);
    tell();
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

/* MARK: Waits that no wrapper sees */

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

static void *sleeper(void *name)
{
    const struct timespec length = {0, 30000000};
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 5; i++)
        unseen(SYS_nanosleep, (long)&length, 0, 0);
    tell();
    return NULL;
}

static void hidden(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, "sleeper");
    pthread_join(thread, NULL);
}

/* MARK: Woken, but not running */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool go;

static void *late(void *name)
{
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&mutex);
    while (!go)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    burn(1000000);
    tell();
    return NULL;
}

/* The woken thread waits for the CPU on which its waker goes on: it may run only in between. */
static void queue(void)
{
    struct sched_param param = {0};
    pthread_t thread;
    pin();
    pthread_create(&thread, NULL, late, "late");
    pthread_setschedparam(thread, SCHED_BATCH, &param); /* does not preempt its waker */
    burn(1000000);
    usleep(50000); /* until it waits */
    pthread_mutex_lock(&mutex);
    go = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    burn(100000000);
    tell();
    pthread_join(thread, NULL);
}

/* MARK: Busy within calls */

__attribute__((noreturn)) static void *rival(void *unused)
{
    (void)unused;
    for (;;)
        burn(1000000);
}

/* What a call needs the CPU for is no wait, also if another thread takes the CPU meanwhile, as one does here. */
static void copying(void)
{
    size_t size = 256u << 20;
    char *memory = malloc(1u << 20);
    FILE *file = tmpfile();
    pthread_t thread;
    if (!memory || !file)
        exit(1);
    pin();
    pthread_create(&thread, NULL, rival, NULL); /* until the process ends */
    memset(memory, 1, 1u << 20);
    for (size_t done = 0; done < size / 4; done += 1u << 20)
        (void)!write(fileno(file), memory, 1u << 20);
    for (int i = 0; i < 4; i++) {
        lseek(fileno(file), 0, SEEK_SET);
        while (read(fileno(file), memory, 1u << 20) > 0)
            ;
    }
    free(memory);
}

/* MARK: Without context switches of the kernel */

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

/* Through the C library, which has no frame pointers: three comparisons each. */
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

static void *profiled(void *name)
{
    pthread_setname_np(pthread_self(), name);
    sorts();
    burns();
    tell();
    return NULL;
}

static void profile(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, profiled, "profiled");
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
    pthread_create(&a, NULL, ping, fd);
    pthread_create(&b, NULL, ping, other);
    (void)!write(fd[0], &one, sizeof one);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
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
 * Touches each page of a file that is on the disk only, if it is on one, and prints how many major faults the kernel counted
 * for that, and how often it went off its CPU: a page may arrive before it does.
 */
static void *pager(void *name)
{
    char *data = calloc(PAGES, PAGE), path[] = "pages-XXXXXX";
    int fd = mkstemp(path), sum = 0;
    struct rusage before, after;
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
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < PAGES; i++)
        sum += touch(pages + (size_t)i * PAGE);
    getrusage(RUSAGE_THREAD, &after);
    printf("file %s\nfaults %ld\nsleeps %ld\n", path, after.ru_majflt - before.ru_majflt + sum,
           after.ru_nvcsw - before.ru_nvcsw);
    tell();
    /* The test removes it: its name has to be there when the recorder reads it. */
    return NULL;
}

static void faults(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, pager, "pager");
    pthread_join(thread, NULL);
}

/* MARK: Many switches, then few */

static void *old(void *name)
{
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&mutex);
    while (!go)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    burn(200000000);
    tell();
    return NULL;
}

/*
 * The recorder stops recording switches, and begins again while nothing happens; then two threads want one CPU, of which one
 * has been there all the time.
 */
static void flurry(void)
{
    pthread_t thread;
    pin();
    pthread_create(&thread, NULL, old, "old");
    pingpong();
    usleep(4500000); /* longer than the first pause */
    pthread_mutex_lock(&mutex);
    go = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    burn(200000000);
    tell();
    pthread_join(thread, NULL);
}

/* MARK: Many processes */

/* Children that come faster than they can be looked at, each of which sleeps for most of its life. */
static void family(void)
{
    enum { CHILDREN = 30 };
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            usleep(200000);
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++)
        wait(NULL);
}

/* MARK: Killed while they run and wait */

static void *forever(void *argument)
{
    (void)argument;
    for (;;)
        ;
    return NULL;
}

static void *stuck(void *argument)
{
    pthread_mutex_lock(&mutex);
    return argument;
}

/* Both live when the process ends. */
static void leave(void)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, forever, NULL);
    pthread_create(&thread, NULL, stuck, NULL);
    burn(100000000);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"crowd", crowd},     {"hidden", hidden},     {"queue", queue},
                    {"copying", copying}, {"pingpong", pingpong}, {"threads", threads},
                    {"leave", leave},     {"profile", profile},   {"family", family},
                    {"flurry", flurry},   {"faults", faults}};
    if (argc > 2 && strcmp(argv[1], "refuse") == 0)
        return refuse(argv + 2);

    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof programs[0]; i++) {
        if (strcmp(argv[1], programs[i].name) == 0) {
            programs[i].run();
            printf("process %lld\n", (long long)clock_of(CLOCK_PROCESS_CPUTIME_ID));
            return 0;
        }
    }
    return 2;
}
