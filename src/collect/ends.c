/* See ends.h. */
#include "collect/ends.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/search.h"
#include "base/small_file.h"
#include "collect/process.h"
#include "collect/socket_limit.h"
#include "collect/sockets.h"

bool ends_read_link(pid_t pid, int fd, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(path, text, size - 1);
    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

int ends_access(pid_t pid, int fd)
{
    char text[512];
    const char *flags;
    if (!small_file_text(text, sizeof text, "/proc/%d/fdinfo/%d", pid, fd) ||
        !(flags = strstr(text, "flags:")))
        return -1;
    return (int)(strtoul(flags + 6, NULL, 8) & O_ACCMODE);
}

unsigned long ends_inode(const char *link, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(link, kind, length) == 0 ? strtoul(link + length, NULL, 10) : 0;
}

pid_t ends_process(pid_t tid)
{
    long process = process_status_number(tid, "\nTgid:", NULL);
    return process >= 0 ? (pid_t)process : tid;
}

/* MARK: Reading */

static void add_row(struct ends *ends, pid_t tid, int fd)
{
    char link[ENDS_LINK_SIZE];
    if (!ends_read_link(tid, fd, link, sizeof link))
        return;
    if (GROW(ends->rows, ends->capacity, ends->count + 1))
        ends->rows[ends->count++] = (struct ends_row){hash_bytes(link, strlen(link)), tid, fd};
    else
        ends->is_partial = true;
}

/* Adds a thread's descriptors to those of its process. */
static void add_thread(struct ends *ends, pid_t tid)
{
    struct small_numbers fds = small_numbers_open("/proc/%d/fd", tid);
    /* Kernel threads and zombies have none; a process that has ended has no such folder. */
    if (!fds.folder && errno != ENOENT && errno != ESRCH)
        ends->is_partial = true;
    while (small_numbers_next(&fds))
        add_row(ends, tid, fds.at);
    small_numbers_close(&fds);
}

/* If its first thread has ended, a process's descriptors are found through another thread. */
static void add_process(struct ends *ends, pid_t pid)
{
    size_t before = ends->count;
    add_thread(ends, pid);
    if (ends->count > before)
        return;
    SMALL_FILE_NUMBERS(task, "/proc/%d/task", pid) {
        if (task.at != pid)
            add_thread(ends, task.at);
        if (ends->count > before)
            return;
    }
}

static int by_link(const void *a, const void *b)
{
    const struct ends_row *x = a, *y = b;
    return ORDER(x->link, y->link) ?: ORDER(x->tid, y->tid);
}

static void read_all(struct ends *ends)
{
    struct small_numbers processes = small_numbers_open("/proc");
    ends->is_read = true;
    ends->is_partial = !processes.folder;
    while (small_numbers_next(&processes))
        if (processes.at != getpid() || ends->has_own)
            add_process(ends, processes.at);
    small_numbers_close(&processes);
    if (ends->count > 0)
        qsort(ends->rows, ends->count, sizeof *ends->rows, by_link);
}

void ends_free(struct ends *ends)
{
    free(ends->rows);
    *ends = (struct ends){0};
}

bool ends_has_any(pid_t pid)
{
    struct small_numbers fds = small_numbers_open("/proc/%d/fd", pid);
    bool any = small_numbers_next(&fds);
    small_numbers_close(&fds);
    return any;
}

/* MARK: Finding */

static void add_peer(struct peers *peers, pid_t pid)
{
    if (peers->count > 0 && peers->pids[peers->count - 1] == pid)
        return;
    if (peers->count < ENDS_PEERS)
        peers->pids[peers->count++] = pid;
    else
        peers->is_all = false;
}

void ends_find(struct ends *ends, const char *link, int not_access, struct peers *peers)
{
    uint64_t wanted = hash_bytes(link, strlen(link));
    char now[ENDS_LINK_SIZE];
    if (!ends->is_read)
        read_all(ends);
    *peers = (struct peers){.is_all = !ends->is_partial};
    for (size_t at = SEARCH(i, 0, ends->count, ends->rows[i].link < wanted);
         at < ends->count && ends->rows[at].link == wanted; at++) {
        const struct ends_row *row = &ends->rows[at];
        if (!ends_read_link(row->tid, row->fd, now, sizeof now) || strcmp(now, link) != 0)
            continue;
        if (not_access < 0 || ends_access(row->tid, row->fd) != not_access)
            add_peer(peers, ends_process(row->tid));
    }
}

static bool is_fifo(pid_t pid, int fd)
{
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

bool ends_peers(struct ends *ends, pid_t tid, int fd, struct peers *peers)
{
    char link[ENDS_LINK_SIZE], other[ENDS_LINK_SIZE];
    *peers = (struct peers){0};
    if (!ends_read_link(tid, fd, link, sizeof link))
        return false;
    if (ends_inode(link, "pipe:[") || (*link == '/' && is_fifo(tid, fd))) {
        ends_find(ends, link, ends_access(tid, fd), peers);
        return true;
    }
    unsigned long socket = ends_inode(link, "socket:[");
    unsigned long peer = socket ? sockets_other_end(tid, socket) : 0;
    (void)snprintf(other, sizeof other, "socket:[%lu]", peer);
    if (peer)
        ends_find(ends, other, -1, peers);
    return peer != 0;
}

bool ends_is_limited(pid_t tid, int fd, bool is_write)
{
    char link[ENDS_LINK_SIZE];
    return ends_read_link(tid, fd, link, sizeof link) && ends_inode(link, "socket:[") &&
           socket_limit(ends_process(tid), fd, is_write) != SOCKET_UNLIMITED;
}
