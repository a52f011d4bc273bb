/* See descriptors.h. Everything but the other ends of Unix sockets comes from /proc (proc(5)). */
#include "stuck/descriptors.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"
#include "collect/unix_peer.h"
#include "collect/uring.h"
#include "stuck/socket_limit.h"

#define LINK_SIZE ENDS_LINK_SIZE

static unsigned long inode_of(const char *link, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(link, kind, length) == 0 ? strtoul(link + length, NULL, 10) : 0;
}

/* MARK: Sockets */

struct connection {
    char local[64], remote[64];
    unsigned long inode;
};

/* Writes "127.0.0.1:80" for the kernel's "0100007F:0050", whose words have the machine's byte
 * order. */
static void address_text(const char *words, char *text, size_t size)
{
    uint32_t address[4] = {0};
    char digits[9] = "", plain[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    size_t length = strcspn(words, ":"), count = length / 8;
    for (size_t i = 0; i < count && i < 4; i++) {
        memcpy(digits, words + 8 * i, 8);
        address[i] = (uint32_t)strtoul(digits, NULL, 16);
    }
    (void)sscanf(words + length, ":%x", &port);
    (void)inet_ntop(count == 4 ? AF_INET6 : AF_INET, address, plain, sizeof plain);
    (void)snprintf(text, size, count == 4 ? "[%s]:%u" : "%s:%u", plain, port);
}

/* Calls `is_it` for each connection of a kind until it returns true. Returns whether it did. */
static bool find_connection(pid_t pid, const char *kind, struct connection *found,
                            bool (*is_it)(const struct connection *one, const void *context),
                            const void *context)
{
    char local[64], remote[64];
    SMALL_FILE_LINES(lines, "/proc/%d/net/%s", pid, kind)
    {
        if (sscanf(lines.text, " %*d: %63s %63s %*s %*s %*s %*s %*s %*s %lu", local, remote,
                   &found->inode) != 3)
            continue;
        address_text(local, found->local, sizeof found->local);
        address_text(remote, found->remote, sizeof found->remote);
        if (is_it(found, context))
            return true;
    }
    return false;
}

static bool has_inode(const struct connection *one, const void *inode)
{
    return one->inode == *(const unsigned long *)inode;
}

/* The other end has the same addresses, swapped. */
static bool is_other_end(const struct connection *one, const void *context)
{
    const struct connection *end = context;
    return strcmp(one->local, end->remote) == 0 && strcmp(one->remote, end->local) == 0;
}

static bool is_tcp(pid_t pid, unsigned long inode, struct connection *found)
{
    return find_connection(pid, "tcp", found, has_inode, &inode) ||
           find_connection(pid, "tcp6", found, has_inode, &inode);
}

/* Writes the path of a Unix socket; "" for none. */
static bool unix_path(pid_t pid, unsigned long inode, char *text, size_t size)
{
    unsigned long one = 0;
    SMALL_FILE_LINES(lines, "/proc/%d/net/unix", pid)
    {
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
    struct connection tcp;
    char path[LINK_SIZE];
    if (is_tcp(pid, inode, &tcp)) {
        bool listens = strcmp(tcp.remote, "0.0.0.0:0") == 0 || strcmp(tcp.remote, "[::]:0") == 0;
        (void)snprintf(text, size, "socket %s%s%s", tcp.local, listens ? "" : " to ",
                       listens ? "" : tcp.remote);
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
    else if (inode_of(link, "socket:["))
        socket_text(pid, inode_of(link, "socket:["), text, size);
    else if (inode_of(link, "pipe:["))
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

static bool is_fifo(pid_t pid, int fd)
{
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Writes the link of the other end of a socket; false: not known. */
static bool other_socket(pid_t pid, unsigned long inode, char *link, size_t size)
{
    struct connection tcp, far;
    unsigned long peer = unix_peer(inode);
    if (!peer && is_tcp(pid, inode, &tcp) &&
        (find_connection(pid, "tcp", &far, is_other_end, &tcp) ||
         find_connection(pid, "tcp6", &far, is_other_end, &tcp)))
        peer = far.inode;
    (void)snprintf(link, size, "socket:[%lu]", peer);
    return peer != 0;
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
    char link[LINK_SIZE], other[LINK_SIZE];
    pid_t self = ends_process(tid);
    unsigned long socket;
    *peers = (struct peers){0};
    *text = '\0';
    if (!ends_read_link(tid, fd, link, sizeof link))
        return;
    socket = inode_of(link, "socket:[");
    if (inode_of(link, "pipe:[") || (*link == '/' && is_fifo(tid, fd)))
        ends_find(ends, link, ends_access(tid, fd), peers);
    else if (socket && other_socket(tid, socket, other, sizeof other))
        ends_find(ends, other, -1, peers);
    else
        return;
    if (peers->count == 0)
        (void)snprintf(text, size, "whose other end is in no process that may be read");
    else
        peers_text(peers, self, text, size);
    if (socket && socket_limit(self, fd, is_write) != SOCKET_UNLIMITED)
        peers->is_all = false;
}

void descriptor_polled(pid_t pid, int fd, char *text, size_t size)
{
    char one[96];
    size_t used = 0;
    int polled, n;
    *text = '\0';
    SMALL_FILE_LINES(lines, "/proc/%d/fdinfo/%d", pid, fd)
    {
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
        sscanf(lines.text, "%*d: %*s %*s %*s %d %*x:%*x:%lu", &owner, &inode) == 2 && owner > 0 &&
        inode == status.st_ino)
        return owner;
    return 0;
}
