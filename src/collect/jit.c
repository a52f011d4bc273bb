/* Reads the list of a process: see jit.h. */
#include "collect/jit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

/* The limit for one file, and for all files that replaced each other. */
#define MOST_BYTES      (64u << 20)
#define MOST_BYTES_EVER (256u << 20)
/*
 * The shortest interval between looks at the file: most addresses without a name will never get
 * one.
 */
#define LOOKS_APART_NS 100000000
/* MARK: Reading */

/* Opens a regular file owned by a user or by root; -1: it is not one. Anyone may write to /tmp. */
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

/*
 * By the time the last names are looked up the process has ended, and its list is found only if its
 * /tmp is ours.
 */
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

/* Reads what was added to the file. A line longer than the buffer is skipped in parts, which have
 * no numbers. */
static void read_more(struct jit *jit, struct arena *arena, int fd)
{
    char buffer[65536];
    ssize_t got = 1;
    while (jit->read < MOST_BYTES && jit->read_ever < MOST_BYTES_EVER && got > 0) {
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
        jit->read_ever += done ? done : (size_t)got;
    }
    jit_list_sort(&jit->list);
}

/* Reads the last bytes of the part read so far. */
static size_t read_tail(const struct jit *jit, int fd, char tail[static sizeof jit->tail])
{
    size_t size = jit->read < sizeof jit->tail ? (size_t)jit->read : sizeof jit->tail;
    ssize_t got = pread(fd, tail, size, (off_t)(jit->read - size));
    return got > 0 ? (size_t)got : 0;
}

/* Whether the file has been replaced or rewritten: the Java virtual machine writes the whole list
 * anew. */
static bool is_another(const struct jit *jit, int fd, const struct stat *info)
{
    char tail[sizeof jit->tail];
    return info->st_ino != jit->inode || read_tail(jit, fd, tail) != jit->tail_size ||
           memcmp(tail, jit->tail, jit->tail_size) != 0;
}

/* False: nothing new. */
static bool look(struct jit *jit, struct arena *arena, const struct process *process)
{
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);
    size_t before = jit->list.count;
    struct stat info;
    if (process->pid == 0 || (jit->looked_ns && now - jit->looked_ns < LOOKS_APART_NS))
        return false;
    jit->looked_ns = now;
    int fd = open_list(process, &info);
    if (fd < 0)
        return false;
    if (is_another(jit, fd, &info)) {
        jit->list.count = 0;
        jit->read = 0;
        jit->inode = info.st_ino;
    }
    read_more(jit, arena, fd);
    jit->tail_size = read_tail(jit, fd, jit->tail);
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
