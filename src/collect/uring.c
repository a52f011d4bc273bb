/* See uring.h; io_uring(7), io_uring_enter(2). */
#include "collect/uring.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/present_memory.h"
#include "base/small_file.h"
#include "shm/mapping.h"

/* struct io_uring_sqe: code at 0, flags at 1, descriptor at 4. */
#define ENTRY_SIZE 64
/* Flag: the descriptor is an index into a table that the program has registered. */
#define FIXED_FILE   1
#define MOST_ENTRIES 256
#define ENTRIES_AT   UINT64_C(0x10000000) /* IORING_OFF_SQES */
#define MOST_CODES   64
#define MOST_NAMED   6

struct uring_operation {
    unsigned code;
    int fd; /* -1: not known */
};

/* Returns "read"; NULL: the code has no known name. */
static const char *name_of(unsigned code)
{
    static const char *const names[] = {
        [1] = "readv",    [2] = "writev",  [6] = "poll",     [9] = "sendmsg",
        [10] = "recvmsg", [13] = "accept", [16] = "connect", [22] = "read",
        [23] = "write",   [26] = "send",   [27] = "recv",    [30] = "splice",
    };
    return code < sizeof names / sizeof names[0] ? names[code] : NULL;
}

/* MARK: The kernel's list */

struct ring {
    uint64_t inode, mask, head, tail;
    size_t waiting;          /* operations */
    unsigned of[MOST_CODES]; /* ... by code */
};

static void read_line(const char *line, struct ring *ring, struct uring_operation *operations,
                      size_t most)
{
    unsigned code;
    if (sscanf(line, " op=%u,", &code) == 1) {
        if (ring->waiting < most)
            operations[ring->waiting] = (struct uring_operation){code, -1};
        ring->waiting++;
        if (code < MOST_CODES)
            ring->of[code]++;
        return;
    }
    (void)sscanf(line, "ino: %" SCNu64, &ring->inode);
    (void)sscanf(line, "SqMask: %" SCNx64, &ring->mask);
    (void)sscanf(line, "SqHead: %" SCNu64, &ring->head);
    (void)sscanf(line, "SqTail: %" SCNu64, &ring->tail);
}

static void read_ring(pid_t pid, unsigned fd, struct ring *ring, struct uring_operation *operations,
                      size_t most)
{
    SMALL_FILE_LINES(lines, "/proc/%d/fdinfo/%u", (int)pid, fd) {
        /* The list of completions that had no room follows, whose lines have other forms. */
        if (strncmp(lines.text, "CqOverflowList:", 15) == 0)
            break;
        read_line(lines.text, ring, operations, most);
    }
}

/* MARK: The entries */

/* Returns where the program has mapped the ring's entries, and the mapped size; 0: nowhere. */
static uint64_t entries_of(pid_t pid, const struct ring *ring, uint64_t *size)
{
    SMALL_FILE_LINES(lines, "/proc/%d/maps", (int)pid) {
        struct mapping m;
        if (strstr(lines.text, "anon_inode:[io_uring]") && mapping_read(lines.text, &m) &&
            m.offset == ENTRIES_AT && m.inode == ring->inode) {
            *size = m.end - m.start;
            return m.start;
        }
    }
    return 0;
}

/* Copies the entries; returns their number, 0: they cannot be read, or have another size. */
static size_t copy_entries(pid_t pid, const struct ring *ring, uint8_t (*entries)[ENTRY_SIZE])
{
    uint64_t size = 0, at, count = ring->mask + 1;
    if (ring->inode == 0 || count == 0 || count > MOST_ENTRIES ||
        !(at = entries_of(pid, ring, &size)) || size < count * ENTRY_SIZE ||
        size >= count * ENTRY_SIZE + 4096)
        return 0;
    ssize_t wanted = (ssize_t)(count * ENTRY_SIZE);
    return memory_of_other(pid, at, entries, (size_t)wanted) == wanted ? (size_t)count : 0;
}

static bool is_empty(const uint8_t *entry)
{
    static const uint8_t nothing[ENTRY_SIZE];
    return memcmp(entry, nothing, ENTRY_SIZE) == 0;
}

/* Gives the operations with a code the descriptors of the entries with that code. */
static void find_descriptors(unsigned code, const uint8_t (*entries)[ENTRY_SIZE], size_t count,
                             struct uring_operation *operations, size_t known)
{
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t fd;
        if (entries[i][0] != code || is_empty(entries[i]))
            continue;
        while (next < known && operations[next].code != code)
            next++;
        if (next == known)
            return;
        memcpy(&fd, entries[i] + 4, sizeof fd);
        operations[next++].fd = entries[i][1] & FIXED_FILE ? -1 : fd;
    }
}

/*
 * Writes up to `most` waiting operations, and returns how many there are. Their descriptors are
 * known while all submissions ever made are still in the ring's entries, and there are as many
 * entries of a kind as waiting operations: none has completed.
 */
static size_t operations_waiting(pid_t pid, unsigned fd, struct uring_operation *operations,
                                 size_t most)
{
    uint8_t entries[MOST_ENTRIES][ENTRY_SIZE];
    struct ring ring = {0};
    size_t count, used = 0;
    unsigned with[MOST_CODES] = {0};
    read_ring(pid, fd, &ring, operations, most);
    count = ring.waiting ? copy_entries(pid, &ring, entries) : 0;
    for (size_t i = 0; i < count; i++) {
        used += !is_empty(entries[i]);
        if (!is_empty(entries[i]) && entries[i][0] < MOST_CODES)
            with[entries[i][0]]++;
    }
    if (count == 0 || ring.head != ring.tail || used != ring.head)
        return ring.waiting;
    for (unsigned code = 0; code < MOST_CODES; code++) {
        if (ring.of[code] && ring.of[code] == with[code])
            find_descriptors(code, (const uint8_t(*)[ENTRY_SIZE])entries, count, operations,
                             ring.waiting < most ? ring.waiting : most);
    }
    return ring.waiting;
}

/* MARK: Text */

/* "read pipe" */
static void operation_text(const struct uring_operation *operation, const struct uring_files *files,
                           char *text, size_t size)
{
    const char *name = name_of(operation->code);
    char code[32], of[96] = "";
    (void)snprintf(code, sizeof code, "operation %u", operation->code);
    if (operation->fd >= 0)
        files->name(files->context, operation->fd, of, sizeof of);
    (void)snprintf(text, size, "%s%s%s", name ? name : code, *of ? " " : "", of);
}

bool uring_text(pid_t pid, unsigned ring, const struct uring_files *files, char *text, size_t size)
{
    struct uring_operation operations[MOST_NAMED] = {{0}};
    size_t total = operations_waiting(pid, ring, operations, MOST_NAMED), used, i;
    char one[160];
    if (total == 0)
        return false;
    used =
        (size_t)snprintf(text, size, "%zu operation%s of io_uring: ", total, total == 1 ? "" : "s");
    for (i = 0; i < total && i < MOST_NAMED; i++) {
        operation_text(&operations[i], files, one, sizeof one);
        int n = snprintf(text + used, size - used, "%s%s", i ? ", " : "", one);
        if (n < 0 || (size_t)n >= size - used - sizeof ", ...")
            break;
        used += (size_t)n;
    }
    (void)snprintf(text + used, size - used, "%s", i < total ? ", ..." : "");
    return true;
}
