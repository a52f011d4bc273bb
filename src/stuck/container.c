/*
 * Recognises the filters of a container: see container.h.
 *
 * A process inherits filters and adds its own; none are ever removed. So a process with as many as
 * the first one of the PID namespace has the same ones, if it descends from that. Processes that
 * were put into the namespace from outside get the container's filters with its control group.
 */
#include "stuck/container.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/small_file.h"
#include "collect/process.h"

/* The first process of the namespace. */
#define FIRST 1

static long count_of(pid_t tid)
{
    bool is_nested = false;
    (void)process_status_number(tid, "\nNSpid:", &is_nested);
    return is_nested ? 0 : process_status_number(tid, "\nSeccomp_filters:", NULL);
}

static bool is_beside_first(pid_t tid)
{
    char own[4096], first[4096];
    return small_file_text(own, sizeof own, "/proc/%d/cgroup", tid) &&
           small_file_text(first, sizeof first, "/proc/%d/cgroup", FIRST) &&
           strcmp(own, first) == 0;
}

/* Whether this process may call restart_syscall(2), by a child that does: it has nothing to
 * restart. */
static bool may_restart(void)
{
    int status = 0;
    pid_t ended, child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        _exit(syscall(SYS_restart_syscall) == -1 && errno == EINTR ? 0 : 1);
    }
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    /* Where SIGCHLD is ignored, the status is lost. */
    return ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The number of the container's filters, if trail has no others and they allow the call; else 0. */
static long filters;

static void look(void)
{
    long own = count_of(getpid());
    if (own > 0 && own == count_of(FIRST) && is_beside_first(getpid()) && may_restart())
        filters = own;
}

bool container_lets_restart(pid_t tid)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, look);
    return filters > 0 && count_of(tid) == filters && is_beside_first(tid);
}
