/* Starts, asks and ends the process that reads programs: see symbol_process.h. */
#include "symbols/symbol_process.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbols/confine.h"
#include "symbols/message.h"
#include "symbols/symbol_server.h"

enum { END_TRIES = 1000 }; /* of about a millisecond */

struct symbol_process {
    pid_t pid; /* 0: it does not run */
    int fd;
    uint64_t starts;
    char problem[128];
};

struct symbol_process *symbol_process_open(void)
{
    return calloc(1, sizeof(struct symbol_process));
}

void symbol_process_close(struct symbol_process *process)
{
    if (process)
        symbol_process_stop(process);
    free(process);
}

_Noreturn static void serve(int fd)
{
    if (confine(fd))
        symbol_server_run(CONFINE_FD);
    _exit(0);
}

uint64_t symbol_process_start(struct symbol_process *process)
{
    int ends[2];
    if (process->pid)
        return process->starts;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return 0;
    pid_t pid = fork();
    if (pid == 0)
        serve(ends[1]);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return 0;
    }
    process->pid = pid;
    process->fd = ends[0];
    return ++process->starts;
}

/* Does not wait for the process: the kernel cannot kill it while it reads a file that never
 * answers. */
static void forget(struct symbol_process *process)
{
    (void)close(process->fd);
    process->pid = 0;
}

void symbol_process_stop(struct symbol_process *process)
{
    if (!process->pid)
        return;
    (void)kill(process->pid, SIGKILL);
    forget(process);
}

/*
 * The process has closed its end: it has ended, or is made to. The reason is known shortly after.
 */
static void note_end(struct symbol_process *process)
{
    siginfo_t end = {0};
    (void)kill(process->pid, SIGKILL);
    for (int i = 0; i < END_TRIES && end.si_pid == 0; i++) {
        (void)waitid(P_PID, (id_t)process->pid, &end, WEXITED | WNOHANG);
        if (end.si_pid == 0)
            (void)usleep(1000);
    }
    bool killed = end.si_pid != 0 && end.si_code != CLD_EXITED;
    (void)snprintf(process->problem, sizeof process->problem, "the process that read it ended%s%s",
                   killed ? ": " : "", killed ? strsignal(end.si_status) : "");
    forget(process);
}

const char *symbol_process_ask(struct symbol_process *process, struct message *question,
                               struct message *answer, int64_t *left_ns)
{
    int64_t begin = now_ns();
    int result = *left_ns <= 0 ? 1
                 : message_send(question, process->fd)
                     ? message_receive(answer, process->fd, begin + *left_ns)
                     : -1;
    *left_ns -= now_ns() - begin;
    if (result == 0)
        return NULL;
    if (result < 0) {
        note_end(process);
    } else {
        symbol_process_stop(process);
        (void)snprintf(process->problem, sizeof process->problem, "reading it takes too long");
    }
    return process->problem;
}
