/* The state of a thread, from /proc: see runnable.h. */
#include "tracer/runnable.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool thread_is_runnable(pid_t thread)
{
    char path[64], stat[512];
    const char *state;
    ssize_t size;
    int fd;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size = read(fd, stat, sizeof stat - 1);
    close(fd);
    if (size < 0)
        return false;
    stat[size] = '\0';
    /* The name may contain anything; the state follows its closing parenthesis. */
    state = strrchr(stat, ')');
    return state && state[1] == ' ' && state[2] == 'R';
}
