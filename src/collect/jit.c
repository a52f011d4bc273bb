/* Reads the list of a process: see jit.h. */
#include "collect/jit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"

/* More of the file is not read. */
#define MOST_BYTES (64u << 20)
/* The file is not looked at more often: most addresses without a name will have none later either. */
#define LOOKS_APART_NS 100000000
/* MARK: Reading */

/* Opens a regular file of a user, or root's; -1: it is none. Anyone may write to /tmp. */
static int open_of(const char *path, uid_t user, struct stat *info)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, info) == 0 && S_ISREG(info->st_mode) &&
        (info->st_uid == user || info->st_uid == 0))
        return fd;
    close(fd);
    return -1;
}

/* The last names are looked up when the process has ended: then its list is found only if its /tmp is ours. */
static int open_list(const struct process *process, struct stat *info)
{
    char path[64];
    struct stat owner;
    int fd = -1;
    (void)snprintf(path, sizeof path, "/proc/%d", (int)process->pid);
    if (stat(path, &owner) == 0) {
        (void)snprintf(path, sizeof path, "/proc/%d/root/tmp/perf-%u.map", (int)process->pid,
                       process_own_pid(process));
        fd = open_of(path, owner.st_uid, info);
    }
    if (fd < 0 && !process->nested) {
        (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)process->pid);
        fd = open_of(path, geteuid(), info);
    }
    return fd;
}

/* Reads what the file has more. A line that is longer than the buffer is skipped in parts, which have no numbers. */
static void read_more(struct jit *jit, struct arena *arena, int fd)
{
    char buffer[65536];
    ssize_t got = 1;
    while (jit->read < MOST_BYTES && got > 0) {
        size_t done;
        got = pread(fd, buffer, sizeof buffer, (off_t)jit->read);
        if (got <= 0)
            break;
        if (!jit_list_add(&jit->list, arena, buffer, (size_t)got, &done)) {
            jit->no_memory = true;
            break;
        }
        if (done == 0 && (size_t)got < sizeof buffer)
            break;
        jit->read += done ? done : (size_t)got;
    }
    jit_list_sort(&jit->list);
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* False: there is nothing new. */
static bool look(struct jit *jit, struct arena *arena, const struct process *process)
{
    int64_t now = now_ns();
    size_t before = jit->list.count;
    struct stat info;
    int fd;
    if (process->pid == 0 || (jit->looked_ns && now - jit->looked_ns < LOOKS_APART_NS))
        return false;
    jit->looked_ns = now;
    fd = open_list(process, &info);
    if (fd < 0)
        return false;
    if (info.st_ino != jit->inode) {
        jit->list.count = 0;
        jit->read = 0;
        jit->inode = info.st_ino;
    }
    read_more(jit, arena, fd);
    close(fd);
    return jit->list.count != before;
}

bool jit_find(struct jit *jit, struct arena *arena, const struct process *process, uint64_t address,
              trail_symbol *symbol)
{
    return jit_list_find(&jit->list, address, symbol) ||
           (look(jit, arena, process) && jit_list_find(&jit->list, address, symbol));
}

void jit_dispose(struct jit *jit)
{
    jit_list_free(&jit->list);
}
