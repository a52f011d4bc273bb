/* See polled.h. */
#include "collect/polled.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/small_file.h"
#include "collect/parts.h"
#include "collect/uring.h"

#define ROOM POLLED_ROOM

/* Returns the newest generation of the descriptor with these lower bits; the difference is how
 * often it was closed since. */
static uint32_t generation_of(const struct collect *c, uint32_t polled)
{
    uint32_t now = area_generation(c->area, polled % SHM_DESCRIPTORS);
    return now - ((now - (polled >> 14)) & SHM_POLLED_GENERATIONS);
}

/* Adds a descriptor to the text; false: there was no room, and "..." was added. */
static bool add(struct collect *c, char *text, uint32_t polled, bool is_first)
{
    uint32_t detail = polled % SHM_DESCRIPTORS + 1;
    const char *name = descriptors_name(c, detail, generation_of(c, polled));
    size_t used = strlen(text), room = ROOM - sizeof ", ..." - used;
    const char *before = is_first ? " " : ", ";
    const char *after = polled & SHM_POLLED_READY ? " (ready)" : "";
    int n = name ? snprintf(text + used, room, "%s%s%s", before, name, after)
                 : snprintf(text + used, room, "%sfd %" PRIu32 "%s", before, detail - 1, after);
    if (n >= 0 && (size_t)n < room)
        return true;
    (void)snprintf(text + used, ROOM - used, is_first ? " ..." : ", ...");
    return false;
}

/* Writes "3 descriptors: a, b, ..." after `before`; `count` of them are known. */
static void list(struct collect *c, const char *before, const uint32_t *polled, size_t count,
                 size_t total, char text[ROOM])
{
    bool good = true;
    (void)snprintf(text, ROOM, "%s%zu %s:", before, total,
                   total == 1 ? "descriptor" : "descriptors");
    for (size_t i = 0; i < count && good; i++)
        good = add(c, text, polled[i], i == 0);
    if (good && count < total)
        (void)strncat(text, count ? ", ..." : " ...", ROOM - 1 - strlen(text));
}

static const char *text_of(struct collect *c, const uint32_t *polled, size_t count, size_t total)
{
    char text[ROOM];
    list(c, "", polled, count, total, text);
    return descriptors_keep_list(c, text);
}

const char *polled_name(struct collect *c, const struct shm_record *record)
{
    uint32_t polled[SHM_POLLED_MAX];
    memcpy(polled, &record->end, record->flags * sizeof *polled);
    return record->flags ? text_of(c, polled, record->flags, record->detail & ~SHM_SEVERAL) : NULL;
}

const char *polled_read(struct collect *c, const struct thread *thread,
                        const struct area_open *open)
{
    struct pollfd fds[SHM_POLLED_MAX];
    uint32_t polled[SHM_POLLED_MAX];
    size_t total = open->detail & ~SHM_SEVERAL, wanted = total, got, count = 0;
    if (wanted > SHM_POLLED_MAX)
        wanted = SHM_POLLED_MAX;
    got = open_copy(c, thread, open, open->object & UINT64_MAX >> 9, fds, wanted * sizeof *fds);
    for (size_t i = 0; i < got / sizeof *fds; i++) {
        unsigned fd = (unsigned)fds[i].fd;
        if (fd < SHM_DESCRIPTORS)
            polled[count++] = shm_polled(fd, area_generation(c->area, fd), false);
    }
    return count ? text_of(c, polled, count, total) : NULL;
}

/* "tfd:        5 events:       19 data: ...": proc(5). */
bool polled_members(struct collect *c, unsigned set, char text[POLLED_ROOM])
{
    uint32_t polled[SHM_POLLED_MAX];
    size_t total = 0, count = 0;
    unsigned fd;
    SMALL_FILE_LINES(lines, "/proc/%d/fdinfo/%u", (int)c->options.process.pid, set) {
        if (sscanf(lines.text, "tfd: %u", &fd) != 1)
            continue;
        total++;
        if (count < SHM_POLLED_MAX && fd < SHM_DESCRIPTORS)
            polled[count++] = shm_polled(fd, area_generation(c->area, fd), false);
    }
    if (total)
        list(c, "[eventpoll] of ", polled, count, total, text);
    return total != 0;
}

/* MARK: Rings of io_uring */

static void file_name(void *context, int fd, char *text, size_t size)
{
    struct collect *c = context;
    const char *name = NULL;
    if (fd >= 0 && fd < SHM_DESCRIPTORS)
        name = descriptors_name(c, (uint32_t)fd + 1, area_generation(c->area, (unsigned)fd));
    if (name)
        (void)snprintf(text, size, "%s", name);
    else
        (void)snprintf(text, size, "fd %d", fd);
}

const char *polled_ring(struct collect *c, const struct area_open *open)
{
    char text[ROOM];
    const struct uring_files files = {file_name, c};
    if (!uring_text(c->options.process.pid, open->detail - 1, &files, text, sizeof text))
        return NULL;
    return descriptors_keep_list(c, text);
}
