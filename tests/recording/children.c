/*
 * Programs with several processes, such as servers:
 *
 *   forks N      for each line on stdin, N children, one after the other; prints the highest sleep
 *                count of any child
 *   loads        a child, forked while other threads hold the loader's locks
 *   alarms N SEED  N children, one after the other, while a signal handler also forks
 *   kills N SEED   N children, each killed a little later after its start than the one before
 *   daemon       forks and exits; the child waits, and ends when done
 *   stays        forks and exits; the child prints its PID and runs until it is killed
 *   root-forks   loses sight of /proc, and then forks
 *   user-forks   changes to another user, and then forks
 *   user-executes  changes to another user, and executes "waits"
 *   executes     waits in wait_here, prints its PID, and executes cat without an environment
 *   waits        waits in wait_here
 *
 * Every child waits in wait_here, for a single pipe.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_US = 20000, STATUS = 5, NO_RIGHT = 77, NOBODY = 65534 };

static int ends[2];

/* An open /proc, for use after the root has changed. */
static int proc;

static bool sleeps(pid_t tid)
{
    char path[64], text[256] = "";
    const char *state;
    snprintf(path, sizeof path, "%d/task/%d/stat", (int)getpid(), (int)tid);
    int fd = openat(proc, path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        abort();
    close(fd);
    state = strrchr(text, ')');
    return state && state[2] == 'S';
}

/* Writes when the main thread has slept for WAIT_US. */
static void *write_later(void *unused)
{
    while (!sleeps(getpid()))
        sched_yield();
    usleep(WAIT_US);
    return write(ends[1], "x", 1) == 1 ? unused : NULL;
}

static __attribute__((noinline)) int wait_here(void)
{
    char byte;
    return read(ends[0], &byte, 1) == 1 ? STATUS : 1;
}

static int waits(void)
{
    pthread_t thread;
    int status;
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, write_later, NULL) != 0)
        return 1;
    status = wait_here();
    pthread_join(thread, NULL);
    return status;
}

/* Forks a child that waits, and returns its exit status. */
static int child_waits(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(waits());
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Forks a child that ends at once. *usage, if not NULL, receives its resource usage. */
static bool fork_once(struct rusage *usage)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 && wait4(pid, NULL, 0, usage) == pid;
}

static int forks(int count)
{
    char line[16];
    while (fgets(line, sizeof line, stdin)) {
        long most = 0;
        for (int i = 0; i < count; i++) {
            struct rusage usage;
            if (!fork_once(&usage))
                return 1;
            if (usage.ru_nvcsw > most)
                most = usage.ru_nvcsw;
        }
        printf("%ld\n", most);
        fflush(stdout);
    }
    return STATUS;
}

static bool walks, has_forked; /* atomic */
static pid_t loader;           /* atomic */

/* Called by dl_iterate_phdr(), which holds the lock of the library list. */
static int stay(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    (void)unused;
    __atomic_store_n(&walks, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&has_forked, __ATOMIC_ACQUIRE))
        sched_yield();
    return 1;
}

static void *walk(void *unused)
{
    dl_iterate_phdr(stay, NULL);
    return unused;
}

/* Holds the loader's own lock while waiting for the lock of the library list. */
static void *load(void *unused)
{
    __atomic_store_n(&loader, gettid(), __ATOMIC_RELEASE);
    if (!dlopen("libresolv.so.2", RTLD_NOW))
        abort();
    return unused;
}

/* The locks stay taken in the child, which does not need them. */
static int forks_while_loading(void)
{
    pthread_t threads[2];
    pid_t tid;
    if (pthread_create(&threads[0], NULL, walk, NULL) != 0)
        return 1;
    while (!__atomic_load_n(&walks, __ATOMIC_ACQUIRE))
        sched_yield();
    if (pthread_create(&threads[1], NULL, load, NULL) != 0)
        return 1;
    while ((tid = __atomic_load_n(&loader, __ATOMIC_ACQUIRE)) == 0 || !sleeps(tid))
        sched_yield();
    bool forked = fork_once(NULL);
    __atomic_store_n(&has_forked, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return forked ? STATUS : 1;
}

static void on_alarm(int number)
{
    (void)number;
    if (!fork_once(NULL))
        abort();
}

/* Each signal arrives a little later relative to its fork than the one before: some arrive during
 * the fork. */
static int forks_in_a_handler(int count, int seed)
{
    if (signal(SIGALRM, on_alarm) == SIG_ERR)
        return 1;
    while (count-- > 0) {
        struct itimerval once = {.it_value.tv_usec = 1 + (seed * 31 + count * 7) % 700};
        if (setitimer(ITIMER_REAL, &once, NULL) != 0 || !fork_once(NULL))
            return 1;
    }
    return STATUS;
}

static int kills(int count, int seed)
{
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        while (pid == 0)
            pause();
        usleep((useconds_t)(seed * 31 + i * 5) % 700);
        if (pid < 0 || kill(pid, SIGKILL) != 0 || waitpid(pid, NULL, 0) != pid)
            return 1;
    }
    return STATUS;
}

/* Returns in the child. */
static void become_daemon(void)
{
    pid_t pid = fork();
    if (pid != 0)
        _exit(pid > 0 ? STATUS : 1);
    setsid();
}

static int stays(void)
{
    become_daemon();
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (pause() != 0)
        ;
    return 1;
}

/* A user other than root can do this as root of a user namespace. */
static bool leave_proc(void)
{
    char here[] = "/tmp/trail-children-XXXXXX";
    bool left;
    if (!mkdtemp(here) || chdir(here) != 0)
        return false;
    left = (geteuid() == 0 || unshare(CLONE_NEWUSER) == 0) && chroot(".") == 0;
    if (!left)
        (void)rmdir(here);
    else
        puts(here);
    fflush(stdout);
    return left;
}

static bool become_nobody(void)
{
    return setgid(NOBODY) == 0 && setuid(NOBODY) == 0;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    char *no_environment[] = {NULL};
    proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (strcmp(word, "forks") == 0 && argc > 2)
        return forks(atoi(argv[2]));
    if (strcmp(word, "loads") == 0)
        return forks_while_loading();
    if (strcmp(word, "alarms") == 0 && argc > 3)
        return forks_in_a_handler(atoi(argv[2]), atoi(argv[3]));
    if (strcmp(word, "daemon") == 0)
        become_daemon();
    if (strcmp(word, "kills") == 0 && argc > 3)
        return kills(atoi(argv[2]), atoi(argv[3]));
    if (strcmp(word, "executes") == 0 && waits() == STATUS && printf("%d\n", (int)getpid()) > 0 &&
        fflush(stdout) == 0)
        execle("/bin/cat", "cat", (char *)NULL, no_environment);
    if (strcmp(word, "daemon") == 0 || strcmp(word, "waits") == 0)
        return waits();
    if (strcmp(word, "stays") == 0)
        return stays();
    if (strcmp(word, "root-forks") == 0)
        return leave_proc() ? child_waits() : NO_RIGHT;
    if (strcmp(word, "user-forks") == 0)
        return become_nobody() ? child_waits() : NO_RIGHT;
    if (strcmp(word, "user-executes") == 0 && become_nobody())
        execl(argv[0], argv[0], "waits", (char *)NULL);
    return NO_RIGHT;
}
