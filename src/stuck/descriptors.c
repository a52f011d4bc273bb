/* See descriptors.h. Everything but the other ends of Unix sockets comes from /proc (proc(5)). */
#include "stuck/descriptors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"
#include "collect/sockets.h"
#include "collect/uring.h"

#define LINK_SIZE ENDS_LINK_SIZE

/* MARK: Sockets */

/* Writes the path of a Unix socket; "" for none. */
static bool unix_path(pid_t pid, unsigned long inode, char *text, size_t size)
{
    unsigned long one = 0;
    SMALL_FILE_LINES(lines, "/proc/%d/net/unix", pid) {
        char name[LINK_SIZE] = "";
        if (sscanf(lines.text, "%*[^:]: %*s %*s %*s %*s %*s %lu %255s", &one, name) >= 1 &&
            one == inode) {
            (void)snprintf(text, size, "%s", name);
            return true;
        }
    }
    return false;
}

static void socket_text(pid_t pid, unsigned long inode, char *text, size_t size)
{
    struct inet_socket tcp;
    char path[LINK_SIZE], local[SOCKET_ADDRESS_TEXT], remote[SOCKET_ADDRESS_TEXT];
    if (sockets_tcp(pid, inode, &tcp)) {
        bool listens = tcp.remote.port == 0;
        sockets_text(&tcp.local, local);
        sockets_text(&tcp.remote, remote);
        (void)snprintf(text, size, "socket %s%s%s", local, listens ? "" : " to ",
                       listens ? "" : remote);
    } else if (unix_path(pid, inode, path, sizeof path)) {
        (void)snprintf(text, size, "Unix socket%s%s", *path ? " " : "", path);
    } else {
        (void)snprintf(text, size, "socket");
    }
}

void descriptor_text(pid_t pid, int fd, char *text, size_t size)
{
    char link[LINK_SIZE];
    if (!ends_read_link(pid, fd, link, sizeof link))
        (void)snprintf(text, size, "descriptor %d", fd);
    else if (ends_inode(link, "socket:["))
        socket_text(pid, ends_inode(link, "socket:["), text, size);
    else if (ends_inode(link, "pipe:["))
        (void)snprintf(text, size, "pipe");
    else if (strncmp(link, "anon_inode:", 11) == 0)
        (void)snprintf(text, size, "%.*s", (int)strcspn(link + 11 + (link[11] == '['), "]"),
                       link + 11 + (link[11] == '['));
    else
        (void)snprintf(text, size, "%s", link);
}

/* MARK: Other ends */

void descriptor_process(pid_t pid, char *text, size_t size)
{
    char name[64];
    if (small_file_text(name, sizeof name, "/proc/%d/comm", pid))
        (void)snprintf(text, size, "%d (%s)", pid, name);
    else
        (void)snprintf(text, size, "%d", pid);
}

/* Appends as much of a text as fits. */
static void append(char *text, size_t size, const char *piece)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s", piece);
}

/* Writes "whose other end processes 12 (a) and 13 (b) and the process itself have". */
static void peers_text(const struct peers *peers, pid_t self, char *text, size_t size)
{
    char one[112], name[96];
    size_t others = 0, count = 0;
    bool has_own = false;
    for (size_t i = 0; i < peers->count; i++) {
        has_own = has_own || peers->pids[i] == self;
        others += peers->pids[i] != self;
    }
    (void)snprintf(text, size, "whose other end %s",
                   others > 1      ? "processes "
                   : others        ? "process "
                   : peers->is_all ? "only "
                                   : "");
    for (size_t i = 0; i < peers->count; i++) {
        if (peers->pids[i] == self)
            continue;
        descriptor_process(peers->pids[i], name, sizeof name);
        (void)snprintf(one, sizeof one, "%s%s", count++ ? ", " : "", name);
        append(text, size, one);
    }
    if (has_own)
        append(text, size, others ? " and the process itself" : "the process itself");
    append(text, size, others + has_own > 1 ? " have" : " has");
}

void descriptor_peers(struct ends *ends, pid_t tid, int fd, bool is_write, struct peers *peers,
                      char *text, size_t size)
{
    pid_t self = ends_process(tid);
    *text = '\0';
    if (!ends_peers(ends, tid, fd, peers))
        return;
    if (peers->count == 0)
        (void)snprintf(text, size, "whose other end is in no process that may be read");
    else
        peers_text(peers, self, text, size);
    if (ends_is_limited(tid, fd, is_write))
        peers->is_all = false;
}

void descriptor_polled(pid_t pid, int fd, char *text, size_t size)
{
    char one[96];
    size_t used = 0;
    int polled, n;
    *text = '\0';
    SMALL_FILE_LINES(lines, "/proc/%d/fdinfo/%d", pid, fd) {
        if (sscanf(lines.text, "tfd: %d", &polled) != 1)
            continue;
        descriptor_text(pid, polled, one, sizeof one);
        n = snprintf(text + used, size - used, "%s%s", used ? ", " : "", one);
        if (n < 0 || (size_t)n >= size - used) {
            text[used] = '\0';
            break;
        }
        used += (size_t)n;
    }
}

static void file_name(void *pid, int fd, char *text, size_t size)
{
    descriptor_text(*(pid_t *)pid, fd, text, size);
}

void descriptor_operations(pid_t pid, int fd, char *text, size_t size)
{
    const struct uring_files files = {file_name, &pid};
    if (!uring_text(pid, (unsigned)fd, &files, text, size))
        descriptor_text(pid, fd, text, size);
}

/* MARK: File locks */

/* "1: FLOCK  ADVISORY  WRITE 123 08:01:456 0 EOF"; lines with "->" show waiting processes. */
pid_t descriptor_lock_holder(pid_t pid, int fd)
{
    char path[64];
    unsigned long inode;
    struct stat status;
    int owner;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    if (stat(path, &status) != 0)
        return 0;
    SMALL_FILE_LINES(lines, "/proc/locks")
        if (!strstr(lines.text, "->") &&
            sscanf(lines.text, "%*d: %*s %*s %*s %d %*x:%*x:%lu", &owner, &inode) == 2 &&
            owner > 0 && inode == status.st_ino)
            return owner;
    return 0;
}
