/* Opens regular files and nothing else: see regular_file.h. */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * O_PATH finds the file without opening it. The file then opened through /proc is the one that was
 * examined, whatever the path names by then.
 */
int regular_file_open(const char *path, bool (*allowed)(const struct stat *status),
                      struct stat *status)
{
    char same[sizeof "/proc/self/fd/" + 10];
    int fd = -1, place = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC), reason = EACCES;
    if (place < 0)
        return -1;
    if (fstat(place, status) == 0 && S_ISREG(status->st_mode) && (!allowed || allowed(status))) {
        (void)snprintf(same, sizeof same, "/proc/self/fd/%d", place);
        fd = openat(AT_FDCWD, same, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        reason = errno;
    }
    (void)close(place);
    errno = reason;
    return fd;
}

void regular_files_allow_many(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
