/* Ends quietly when the reader of stdout has gone. */
#include "ui/closed_stdout.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static bool closed;

bool closed_stdout_is(int reason)
{
    struct stat is;
    struct pollfd out = {.fd = STDOUT_FILENO};
    if (reason != EPIPE || fstat(STDOUT_FILENO, &is) != 0 ||
        !(S_ISFIFO(is.st_mode) || S_ISSOCK(is.st_mode)) || poll(&out, 1, 0) != 1)
        return false;
    closed = true;
    return true;
}

void closed_stdout_end(void)
{
    if (!closed)
        return;
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
}
