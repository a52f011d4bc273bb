/* Starts the recorded program, and waits for it: see child.h. */
#include "collect/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/process.h"

/* Signals that users send to a program through the recorder. */
static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM, SIGUSR1,
                                SIGUSR2, SIGCONT, SIGWINCH, SIGALRM, SIGTSTP};
#define PASSED_ON (sizeof passed_on / sizeof passed_on[0])

/* MARK: Starting */

static void become(char *const *argv, const struct child *child,
                   const struct child_variable *variables, int report)
{
    for (; variables->name; variables++)
        (void)setenv(variables->name, variables->value, 1);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &child->old, NULL);
    execvp(argv[0], argv);
    int reason = errno;
    (void)!write(report, &reason, sizeof reason);
    _exit(127);
}

void child_none(struct child *child)
{
    *child = (struct child){0};
    sigemptyset(&child->waited);
    sigaddset(&child->waited, SIGCHLD);
    for (size_t i = 0; i < PASSED_ON; i++)
        sigaddset(&child->waited, passed_on[i]);
    sigprocmask(SIG_BLOCK, &child->waited, &child->old);
}

/* Signals whose default action ends a program. */
static bool ends_programs(int number)
{
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/* For this long after a signal the user is assumed to be waiting for the program to end. */
#define HURRIED_NS INT64_C(3000000000)

bool child_is_hurried(void *context)
{
    const struct child *child = context;
    sigset_t pending;
    if (child->asked_ns && now_ns() - child->asked_ns < HURRIED_NS)
        return true;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1 ||
            sigismember(&pending, SIGHUP) == 1 || sigismember(&pending, SIGQUIT) == 1);
}

void child_let_go(struct child *child)
{
    child->pid = 0;
    child->ended = false;
}

bool child_start(struct child *child, char *const *argv, const struct child_variable *variables,
                 void (*before)(void *context), void *context)
{
    int ends[2], reason;
    ssize_t n;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    child_none(child);
    child->pid = fork();
    if (child->pid == 0) {
        if (before)
            before(context);
        become(argv, child, variables, ends[1]);
    }
    reason = errno;
    close(ends[1]);
    /* A successful exec closes the pipe; without a child there is no writer. */
    do
        n = read(ends[0], &reason, sizeof reason);
    while (n < 0 && errno == EINTR);
    close(ends[0]);
    if (child->pid > 0 && n == 0)
        return true;
    if (child->pid > 0)
        (void)waitpid(child->pid, &child->status, 0);
    errno = reason;
    return false;
}

/* MARK: Running */

/*
 * The recorder is a job of a shell that waits for it. The shell must see a stop when the program
 * has stopped, and not before, because the shell then reads from the terminal itself.
 */
static bool stops_with(int status)
{
    if (!isatty(STDIN_FILENO))
        return false;
    return WSTOPSIG(status) == SIGTSTP || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void look_after(struct child *child)
{
    pid_t pid = waitpid(child->pid, &child->status, WNOHANG | WUNTRACED);
    if (pid != child->pid)
        return;
    if (!WIFSTOPPED(child->status))
        child->ended = true;
    else if (stops_with(child->status))
        (void)kill(getpid(), SIGSTOP);
}

/*
 * The first signal goes to the program; if the program keeps running, the second makes the recorder
 * leave it. timeout(1) sends two at once: a program that neither handles nor ignores them is about
 * to end. The third leaves it in any case.
 */
static void pass_on(struct child *child, int number)
{
    unsigned asked = ends_programs(number) ? child->asked++ : 0;
    if (asked == 0) {
        (void)kill(child->pid, number);
        return;
    }
    look_after(child);
    if (!child->ended && (asked > 1 || process_withstands(child->pid, number)))
        child->ended = child->given_up = true;
}

int child_wait(struct child *child, int64_t ns, int ours)
{
    struct timespec most = {ns / 1000000000, ns % 1000000000};
    siginfo_t info;
    int number = sigtimedwait(&child->waited, &info, &most);
    if (number > 0 && number == ours)
        return number;
    if (ends_programs(number))
        child->asked_ns = now_ns();
    if (!child->pid) {
        child->ended = number == SIGINT || number == SIGTERM || number == SIGHUP;
        if (number == SIGTSTP)
            (void)kill(getpid(), SIGSTOP);
        return 0;
    }
    if (number == SIGCHLD)
        look_after(child);
    /* The terminal sends its signals to the program directly. */
    else if (number > 0 &&
             (info.si_code == SI_USER || info.si_code == SI_QUEUE || number == SIGCONT))
        pass_on(child, number);
    return 0;
}

int child_exit_code(const struct child *child)
{
    if (child->given_up)
        return 0;
    return WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status) : WEXITSTATUS(child->status);
}
