/*
 * The command's definition of open() precedes the C library's also for shared libraries (ld.so(8),
 * symbol scope), so libdw's calls arrive here; the linker exports it because libdw refers to it.
 */
#include "symbols/named_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "inspect/elf_bounds.h"

static _Thread_local struct {
    bool on;
    uid_t owner;
} check;

static struct refused_file first;
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;

void named_files_begin(uid_t owner)
{
    check.on = true;
    check.owner = owner;
}

void named_files_end(void)
{
    check.on = false;
}

void named_files_refuse(const char *path, const char *problem)
{
    (void)pthread_mutex_lock(&first_lock);
    if (!*first.problem) {
        (void)snprintf(first.path, sizeof first.path, "%s", path);
        (void)snprintf(first.problem, sizeof first.problem, "%s", problem);
    }
    (void)pthread_mutex_unlock(&first_lock);
    errno = EACCES;
}

const struct refused_file *named_files_refused(void)
{
    return &first;
}

/* Files downloaded by debuginfod's client are readable only for the user. */
static bool uses_servers(void)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    return urls && *urls;
}

/*
 * Root must not open for a program what the program's owner may not read: files of other owners
 * must be readable by all.
 */
static bool is_allowed(const struct stat *status)
{
    bool trusted = status->st_uid == 0 || status->st_uid == geteuid();
    return status->st_uid == check.owner ||
           (trusted && ((status->st_mode & S_IROTH) || uses_servers()));
}

static int open_named(const char *path)
{
    struct stat status;
    int fd = regular_file_open(path, is_allowed, &status);
    const char *problem = NULL;
    if (fd >= 0)
        problem = elf_bounds_problem(fd);
    else if (errno == EACCES)
        problem = "not a regular file of root, the user or the program's owner that all may read";
    else if (errno == EWOULDBLOCK)
        problem = "another process has a lease on it";
    if (!problem)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    named_files_refuse(path, problem);
    return -1;
}

/* Defined under other names here, because <fcntl.h> may declare open and open64 as inline
 * functions. */
__attribute__((visibility("default"))) int opened_by_path(const char *path, int flags,
                                                          ...) __asm__("open");
__attribute__((visibility("default"), alias("open"))) int
opened_by_path_64(const char *path, int flags, ...) __asm__("open64");

int opened_by_path(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (__OPEN_NEEDS_MODE(flags)) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    if (!check.on || (flags & O_ACCMODE) != O_RDONLY || (flags & (O_DIRECTORY | O_PATH)))
        return openat(AT_FDCWD, path, flags, mode);
    return open_named(path);
}
