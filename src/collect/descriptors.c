/*
 * Looks up the names of descriptors: see descriptors.h.
 *
 * The program counts how often each descriptor was closed. A name is valid for the count with which
 * it was looked up, if the count is still the same after the look-up. Sockets are found by their
 * inode in the kernel's tables, which are read as a whole: the longer that takes, the less often.
 */
#include "collect/descriptors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/intern.h"
#include "base/small_file.h"
#include "collect/parts.h"
#include "collect/sockets.h"

#define LOOKUPS_A_STEP 40         /* a step takes 10 ms under heavy recording, else 40 */
#define GOOD_FOR_NS    1000000000 /* looked up again after this: closed by an unwrapped call? */
#define TABLES_PAUSE   20         /* reading the tables takes at most a twentieth of the time */
#define MIN_PAUSE_NS   50000000
#define MAX_SOCKETS    65536
#define MAX_NAMES      65536
#define MAX_LISTS      16384
#define MAX_NAME       POLLED_ROOM
#define MAX_UNIX_PATH  108

struct descriptor {
    uint32_t generation;
    uint32_t name; /* the name's number; 0: never looked up */
    uint64_t looked_ns;
};

struct descriptors {
    struct descriptor of[SHM_DESCRIPTORS];
    struct intern intern;
    const char **names; /* name numbers start at 1: index + 1 */
    size_t name_count, name_room;
    size_t lists;     /* names of several descriptors */
    unsigned lookups; /* look-ups that this step may still make */
    uint64_t now_ns;  /* when this step began */
    /* The kernel's tables of sockets: inode to 1 + the start of its text. */
    struct idmap sockets;
    char *text;
    size_t text_count, text_room;
    uint64_t tables_ns; /* when the tables may be read again */
    uint64_t sets_ns;   /* the same for the lists of epoll sets */
};

static void begin_step(struct descriptors *d)
{
    d->lookups = LOOKUPS_A_STEP;
    d->now_ns = clock_ns(CLOCK_MONOTONIC);
}

void descriptors_step(struct collect *c)
{
    if (c->descriptors)
        begin_step(c->descriptors);
}

/* The first request for a name creates it, with look-ups left for the same step. */
static struct descriptors *descriptors_of(struct collect *c)
{
    if (c->descriptors)
        return c->descriptors;
    c->descriptors = calloc(1, sizeof *c->descriptors);
    if (c->descriptors)
        begin_step(c->descriptors);
    return c->descriptors;
}

void descriptors_free(struct descriptors *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->name_count; i++)
        free((char *)d->names[i]);
    free(d->names);
    free(d->text);
    intern_free(&d->intern);
    idmap_free(&d->sockets);
    free(d);
}

/* Returns the number of a name; 0: too many names, or out of memory. */
static uint32_t number_of(struct descriptors *d, const char *text, size_t size)
{
    bool fresh;
    if (d->name_count >= MAX_NAMES)
        return 0;
    if (!GROW(d->names, d->name_room, d->name_count + 1))
        return 0;
    uint64_t number = intern_put(&d->intern, text, size, &fresh);
    if (number && fresh) {
        d->names[d->name_count] = strndup(text, size);
        if (!d->names[d->name_count])
            return 0;
        d->name_count++;
    }
    return number <= d->name_count ? (uint32_t)number : 0;
}

/* MARK: Sockets */

static void add_socket(struct descriptors *d, uint64_t inode, const char *text)
{
    size_t size = strlen(text) + 1;
    if (inode == 0 || d->sockets.count >= MAX_SOCKETS ||
        !GROW(d->text, d->text_room, d->text_count + size))
        return;
    if (idmap_put(&d->sockets, inode, (void *)(uintptr_t)(d->text_count + 1))) {
        memcpy(d->text + d->text_count, text, size);
        d->text_count += size;
    }
}

/*
 * Reads a line of tcp, tcp6, udp or udp6: the peer's address, or the socket's own if it has no
 * peer. A TCP peer is marked as a server; the mark counts only if the program made the connection.
 */
static void read_inet(struct descriptors *d, const char *line, bool tcp)
{
    char address[SOCKET_ADDRESS_TEXT], text[SOCKET_ADDRESS_TEXT + sizeof WIRE_WAIT_SERVER];
    struct inet_socket one;
    if (!sockets_read(line, &one))
        return;
    sockets_text(one.remote.port != 0 ? &one.remote : &one.local, address);
    snprintf(text, sizeof text, "%s%s", tcp && one.remote.port != 0 ? WIRE_WAIT_SERVER : "",
             address);
    add_socket(d, one.inode, text);
}

/* Reads a line of `unix` if the socket has a name. */
static void read_unix(struct descriptors *d, const char *line)
{
    char path[MAX_UNIX_PATH + 1], text[MAX_UNIX_PATH + 8];
    uint64_t inode;
    if (sscanf(line, "%*[^:]: %*x %*x %*x %*x %*x %" SCNu64 " %108[^\n]", &inode, path) != 2)
        return;
    snprintf(text, sizeof text, "unix:%s", path);
    add_socket(d, inode, text);
}

static void read_table(struct descriptors *d, int pid, const char *name)
{
    unsigned count = 0;
    SMALL_FILE_LINES(lines, "/proc/%d/net/%s", pid, name) {
        /* The first line has the column titles. */
        if (count++ == 0)
            continue;
        if (strcmp(name, "unix") == 0)
            read_unix(d, lines.text);
        else
            read_inet(d, lines.text, strncmp(name, "tcp", 3) == 0);
        if (count > MAX_SOCKETS)
            break;
    }
}

/* Returns when work that took from `begin` until now may be repeated. */
static uint64_t pause_after(uint64_t begin)
{
    uint64_t end = clock_ns(CLOCK_MONOTONIC), pause = (end - begin) * TABLES_PAUSE;
    return end + (pause > MIN_PAUSE_NS ? pause : MIN_PAUSE_NS);
}

static void read_tables(struct descriptors *d, int pid)
{
    static const char *const names[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    if (begin < d->tables_ns)
        return;
    idmap_clear(&d->sockets);
    d->text_count = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        read_table(d, pid, names[i]);
    d->tables_ns = pause_after(begin);
}

static const char *socket_text(struct descriptors *d, int pid, uint64_t inode)
{
    uintptr_t at = (uintptr_t)idmap_find(&d->sockets, inode);
    if (!at) {
        read_tables(d, pid);
        at = (uintptr_t)idmap_find(&d->sockets, inode);
    }
    return at ? d->text + at - 1 : NULL;
}

/* MARK: Looking up */

/* Returns the number of a name, kept as one line of limited length because paths come from the
 * program. Of a long name the end is kept. */
static uint32_t keep_name(struct descriptors *d, const char *text)
{
    char name[MAX_NAME + 1];
    size_t size = strlen(text), skipped = size > MAX_NAME ? size - MAX_NAME : 0;
    snprintf(name, sizeof name, "%s", text + skipped);
    if (skipped)
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): over its beginning. */
        memcpy(name, "...", 3);
    for (char *at = name; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    }
    return number_of(d, name, strlen(name));
}

/*
 * Reads the PID of a pidfd's process in the program's namespace. 0: it has ended and was waited
 * for.
 */
static unsigned pid_of_pidfd(int pid, unsigned fd)
{
    SMALL_FILE_LINES(lines, "/proc/%d/fdinfo/%u", pid, fd) {
        /* The last number belongs to the innermost namespace. */
        const char *last = strncmp(lines.text, "NSpid:", 6) == 0 ? strrchr(lines.text, '\t') : NULL;
        if (last)
            return (unsigned)strtoul(last, NULL, 10);
    }
    return 0;
}

static bool is_pidfd(const char *target)
{
    return strcmp(target, "anon_inode:[pidfd]") == 0 || strncmp(target, "pidfd:", 6) == 0;
}

/* The kernel lists all members under the set's lock, which epoll_wait also takes: rarely if there
 * are many. */
static bool read_members(struct collect *c, struct descriptors *d, unsigned fd, char *text)
{
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    if (begin < d->sets_ns)
        return false;
    bool found = polled_members(c, fd, text);
    d->sets_ns = pause_after(begin);
    return found;
}

/* Returns the number of the descriptor's name; *settled: a repeated look-up would not find a better
 * one. */
static uint32_t look_up(struct collect *c, struct descriptors *d, unsigned fd, bool *settled)
{
    const int pid = (int)c->options.process.pid;
    char path[64], target[4096];
    uint64_t inode;
    const char *text = target;
    *settled = true;
    snprintf(path, sizeof path, "/proc/%d/fd/%u", pid, fd);
    ssize_t size = readlink(path, target, sizeof target - 1);
    if (size <= 0)
        return 0;
    target[size] = '\0';
    if (sscanf(target, "socket:[%" SCNu64 "]", &inode) == 1) {
        const char *found = socket_text(d, pid, inode);
        *settled = found != NULL;
        text = found ? found : target;
        if (strncmp(text, WIRE_WAIT_SERVER, strlen(WIRE_WAIT_SERVER)) == 0 &&
            !area_has_connected(c->area, fd))
            text += strlen(WIRE_WAIT_SERVER);
    } else if (is_pidfd(target)) {
        unsigned process = pid_of_pidfd(pid, fd);
        *settled = process != 0;
        if (process)
            snprintf(target, sizeof target, "process %u", process);
        else
            text = "pidfd";
    } else if (strcmp(target, "anon_inode:[eventpoll]") == 0) {
        *settled = read_members(c, d, fd, target);
        text = *settled ? target : "[eventpoll]";
    } else if (strncmp(target, "anon_inode:", 11) == 0) {
        text = target + 11;
    }
    return keep_name(d, text);
}

const char *descriptors_keep(struct collect *c, const char *text)
{
    struct descriptors *d = descriptors_of(c);
    uint32_t number = d && *text ? keep_name(d, text) : 0;
    return number ? d->names[number - 1] : NULL;
}

const char *descriptors_keep_list(struct collect *c, const char *text)
{
    struct descriptors *d = descriptors_of(c);
    size_t before = d ? d->name_count : 0;
    const char *name = d && d->lists < MAX_LISTS ? descriptors_keep(c, text) : NULL;
    if (name)
        d->lists += d->name_count - before;
    return name;
}

static bool is_same(const struct collect *c, unsigned fd, uint32_t generation)
{
    return area_generation(c->area, fd) == generation;
}

const char *descriptors_name(struct collect *c, uint32_t detail, uint32_t generation)
{
    struct descriptors *d = descriptors_of(c);
    struct descriptor *of;
    unsigned fd = detail - 1;
    bool settled;
    if (!d || detail == 0 || detail > SHM_DESCRIPTORS || c->options.process.pid == 0)
        return NULL;
    of = &d->of[fd];
    bool known = of->name != 0 && of->generation == generation;
    if (is_same(c, fd, generation) && d->lookups > 0 &&
        (!known || d->now_ns - of->looked_ns >= GOOD_FOR_NS)) {
        d->lookups--;
        uint32_t name = look_up(c, d, fd, &settled);
        /* A pidfd whose process has ended keeps its name. */
        if (!is_same(c, fd, generation) || (known && name && !settled))
            return known ? d->names[of->name - 1] : NULL;
        *of = (struct descriptor){generation, name, settled ? d->now_ns : 0};
        known = name != 0;
    }
    return known ? d->names[of->name - 1] : NULL;
}
