/*
 * Executes programs with every exec call of the C library:
 *
 *   waits              prints its PID, and waits in wait_here for a line on stdin
 *   in-place HOW LIST  replaces itself with "waits" by the call HOW, with LIST as LD_PRELOAD
 *   child HOW LIST     the same in a child; without LIST the child has no environment
 *   fails              a child fails to execute a missing program
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { STATUS = 5 };

static __attribute__((noinline)) int wait_here(void)
{
    char byte;
    return read(STDIN_FILENO, &byte, 1) == 1 ? STATUS : 1;
}

/* Returns only on failure. */
static void execute(const char *how, char *file)
{
    char *arguments[] = {file, "waits", NULL};
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (strcmp(how, "execv") == 0)
        execv(file, arguments);
    if (strcmp(how, "execve") == 0)
        execve(file, arguments, environ);
    if (strcmp(how, "execvp") == 0)
        execvp(file, arguments);
    if (strcmp(how, "execvpe") == 0)
        execvpe(file, arguments, environ);
    if (strcmp(how, "execl") == 0)
        execl(file, file, "waits", (char *)NULL);
    if (strcmp(how, "execlp") == 0)
        execlp(file, file, "waits", (char *)NULL);
    if (strcmp(how, "execle") == 0)
        execle(file, file, "waits", (char *)NULL, environ);
    if (strcmp(how, "fexecve") == 0)
        fexecve(fd, arguments, environ);
    if (strcmp(how, "execveat") == 0)
        execveat(AT_FDCWD, file, arguments, environ, 0);
}

static int status_of(pid_t pid)
{
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int child(const char *how, char *file, char **environment)
{
    char *arguments[] = {file, "waits", NULL};
    pid_t pid;
    if (strcmp(how, "posix_spawn") == 0)
        CHECK(posix_spawn(&pid, file, NULL, NULL, arguments, environment) == 0);
    else if (strcmp(how, "posix_spawnp") == 0)
        CHECK(posix_spawnp(&pid, file, NULL, NULL, arguments, environment) == 0);
    else if ((pid = vfork()) == 0) {
        execve(file, arguments, environment);
        _exit(127);
    }
    return status_of(pid);
}

static int fails(void)
{
    char *arguments[] = {"nothing", NULL};
    pid_t pid;
    CHECK(posix_spawn(&pid, "/does/not/exist", NULL, NULL, arguments, environ) == ENOENT);
    if ((pid = vfork()) == 0) {
        execv("/does/not/exist", arguments);
        _exit(STATUS);
    }
    return status_of(pid);
}

int main(int argc, char **argv)
{
    char *nothing[] = {NULL};
    if (argc > 3)
        CHECK(setenv("LD_PRELOAD", argv[3], 1) == 0);
    if (argc > 1 && strcmp(argv[1], "waits") == 0 && printf("%d\n", (int)getpid()) > 0 &&
        fflush(stdout) == 0)
        return wait_here();
    if (argc > 1 && strcmp(argv[1], "fails") == 0)
        return fails();
    if (argc > 2 && strcmp(argv[1], "child") == 0)
        return child(argv[2], argv[0], argc > 3 ? environ : nothing);
    if (argc > 3)
        execute(argv[2], argv[0]);
    return 1;
}
