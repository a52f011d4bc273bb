/*
 * Programs of several processes, as servers are:
 *
 *   forks N      for a line on stdin N children, one after the other
 *   loads N      N children, one after the other, while other threads load and unload a library
 *   alarms N     N children, one after the other, while a signal handler forks as well
 *   kills N      N children, each a little later after its beginning than the one before
 *   daemon       its child goes on, waits, and ends when it is done
 *   stays        its child goes on until it is killed; its PID is printed
 *   root-forks   sees no /proc any more, and then has a child
 *   user-forks   is another user, and then has a child
 *   user-executes  is another user, and executes "waits"
 *   executes     waits in wait_here, and executes cat without an environment
 *   waits        waits in wait_here
 *
 * Every child waits in wait_here, in which nothing but one pipe is waited for.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_US = 20000, STATUS = 5, NO_RIGHT = 77, NOBODY = 65534 };

static int ends[2];

static void *write_later(void *unused)
{
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

/* The status of a child that waits. */
static int child_waits(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(waits());
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Has a child that ends at once. */
static bool fork_once(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static int forks(int count)
{
    char line[16];
    if (!fgets(line, sizeof line, stdin))
        return 1;
    while (count-- > 0) {
        if (!fork_once())
            return 1;
    }
    return STATUS;
}

static bool loaded_enough; /* atomic */

static void *loads(void *unused)
{
    while (!__atomic_load_n(&loaded_enough, __ATOMIC_ACQUIRE)) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        if (!library || dlclose(library) != 0)
            abort();
    }
    return unused;
}

/* Other threads may have the loader's lock while the process forks: it stays taken in the child, which does not need it. */
static int forks_while_loading(int count)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, loads, NULL) != 0)
            return 1;
    }
    while (count-- > 0) {
        if (!fork_once())
            return 1;
    }
    __atomic_store_n(&loaded_enough, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return STATUS;
}

static void on_alarm(int number)
{
    (void)number;
    if (!fork_once())
        abort();
}

/* The signal comes a little later after the beginning of each fork than of the one before: in some while it goes on. */
static int forks_in_a_handler(int count)
{
    if (signal(SIGALRM, on_alarm) == SIG_ERR)
        return 1;
    while (count-- > 0) {
        struct itimerval once = {.it_value.tv_usec = 1 + count * 7 % 700};
        if (setitimer(ITIMER_REAL, &once, NULL) != 0 || !fork_once())
            return 1;
    }
    return STATUS;
}

static int kills(int count)
{
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        while (pid == 0)
            pause();
        usleep((useconds_t)i * 5);
        if (pid < 0 || kill(pid, SIGKILL) != 0 || waitpid(pid, NULL, 0) != pid)
            return 1;
    }
    return STATUS;
}

/* In the child it goes on. */
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

/* A user that is not root may do it as root of a user namespace. */
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
    if (strcmp(word, "forks") == 0 && argc > 2)
        return forks(atoi(argv[2]));
    if (strcmp(word, "loads") == 0 && argc > 2)
        return forks_while_loading(atoi(argv[2]));
    if (strcmp(word, "alarms") == 0 && argc > 2)
        return forks_in_a_handler(atoi(argv[2]));
    if (strcmp(word, "daemon") == 0)
        become_daemon();
    if (strcmp(word, "kills") == 0 && argc > 2)
        return kills(atoi(argv[2]));
    if (strcmp(word, "executes") == 0 && waits() == STATUS && puts(word) >= 0 &&
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
