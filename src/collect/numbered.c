/* Looks up the names of numbered objects: see numbered.h. */
#include "collect/numbered.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <unistd.h>

#include "base/small_file.h"
#include "collect/parts.h"

#define LOOKUPS_A_STEP 20
#define GOOD_FOR_NS    1000000000 /* looked up again after this: the number may have been reused */
#define MAX_NAMES      65536
#define PAGE           UINT64_C(4096)

struct numbered_name {
    uint64_t looked_ns;
    char *text; /* NULL: it has none */
};

void numbered_step(struct collect *c)
{
    c->numbered.lookups = LOOKUPS_A_STEP;
}

void numbered_free(struct collect *c)
{
    idmap_free(&c->numbered.names);
}

static unsigned number_of(uint64_t object)
{
    return (unsigned)object;
}

/* The words that follow those of the wait: "semaphore set 5", "read message queue 5". */
static const char *words_of(uint64_t object)
{
    switch (object >> 56) {
    case SHM_TAG_SET:
        return "set ";
    case SHM_TAG_QUEUE:
        return "message queue ";
    default:
        return "";
    }
}

void numbered_text(uint64_t object, char *text, size_t size)
{
    *text = '\0';
    if (shm_is_path(object) || shm_is_name(object))
        return;
    snprintf(text, size, "%s%u", words_of(object), number_of(object));
}

/*
 * Reads the name of a child of the program: the kernel confirms that the number is a child's. In a
 * PID namespace of its own, the program's numbers differ from ours.
 */
static bool child_name(const struct process *parent, unsigned pid, char name[64])
{
    int of = 0;
    if (parent->nested)
        return false;
    *name = '\0';
    SMALL_FILE_LINES(lines, "/proc/%u/status", pid) {
        if (!*name)
            (void)sscanf(lines.text, "Name:\t%63[^\n]", name);
        if (sscanf(lines.text, "PPid: %d", &of) == 1)
            break;
    }
    return *name && of > 0 && of == (int)parent->pid;
}

/* Whether IDs mean the same to us as to the program: see ipc_namespaces(7). */
static bool has_our_ids(const struct process *process)
{
    char path[64], ours[64] = "", theirs[64] = "";
    snprintf(path, sizeof path, "/proc/%d/ns/ipc", (int)process->pid);
    return readlink("/proc/self/ns/ipc", ours, sizeof ours - 1) > 0 &&
           readlink(path, theirs, sizeof theirs - 1) > 0 && strcmp(ours, theirs) == 0;
}

/* Reads the key of a semaphore set or message queue; false: it has none, or reading is not
 * permitted. */
static bool key_of(uint64_t object, uint32_t *key)
{
    struct semid_ds set = {0};
    struct msqid_ds queue = {0};
    union {
        int value;
        struct semid_ds *set;
    } argument = {.set = &set};
    bool found = shm_is_set(object) ? semctl((int)number_of(object), 0, IPC_STAT, argument) == 0
                                    : msgctl((int)number_of(object), IPC_STAT, &queue) == 0;
    if (found)
        *key = (uint32_t)(shm_is_set(object) ? set.sem_perm.__key : queue.msg_perm.__key);
    return found && *key != IPC_PRIVATE;
}

static bool look_up(struct collect *c, uint64_t object, char *text, size_t size)
{
    char name[64];
    uint32_t key;
    if (!shm_is_process(object)) {
        if (!has_our_ids(&c->options.process) || !key_of(object, &key))
            return false;
        snprintf(text, size, "%s%u (key 0x%" PRIx32 ")", words_of(object), number_of(object), key);
        return true;
    }
    if (!child_name(&c->options.process, number_of(object), name))
        return false;
    for (char *at = name; *at; at++)
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    snprintf(text, size, "%u (%s)", number_of(object), name);
    return true;
}

/* Returns where the object's name is kept; NULL: too many objects. */
static struct numbered_name *place_of(struct collect *c, uint64_t object)
{
    struct numbered_name *place = idmap_find(&c->numbered.names, object);
    if (place || c->numbered.names.count >= MAX_NAMES)
        return place;
    place = arena_alloc(&c->arena, sizeof *place);
    if (!place || !idmap_put(&c->numbered.names, object, place)) {
        collect_no_memory(c);
        return NULL;
    }
    *place = (struct numbered_name){0};
    return place;
}

static const char *looked_up(struct collect *c, uint64_t object)
{
    struct numbered_name *place = place_of(c, object);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    char text[128];
    if (!place || c->options.process.pid == 0)
        return NULL;
    if (c->numbered.lookups == 0 || (place->text && now - place->looked_ns < GOOD_FOR_NS))
        return place->text;
    c->numbered.lookups--;
    place->looked_ns = now;
    if (!look_up(c, object, text, sizeof text))
        place->text = NULL;
    else if (!place->text || strcmp(place->text, text) != 0)
        place->text = arena_copy(&c->arena, text, strlen(text));
    return place->text;
}

static const char *name_in_area(struct collect *c, uint32_t number)
{
    char text[SHM_TEXT_MAX + 1];
    text[area_text(c->area, number, text)] = '\0';
    return descriptors_keep(c, text);
}

/* A path may end at the end of the memory. */
static const char *read_path(struct collect *c, const struct thread *thread,
                             const struct area_open *open)
{
    char text[PAGE + 1];
    size_t size = open_copy(c, thread, open, open->object & UINT64_MAX >> 8, text, PAGE);
    text[size] = '\0';
    return descriptors_keep(c, text);
}

static const char *read_open(struct collect *c, const struct thread *thread,
                             const struct area_open *open)
{
    if (shm_is_path(open->object))
        return read_path(c, thread, open);
    return shm_is_pollfds(open->object) ? polled_read(c, thread, open) : polled_ring(c, open);
}

void numbered_read_open(struct collect *c, struct thread *thread, const struct area_open *open)
{
    if (thread->feed.name_time == open->time || c->numbered.lookups == 0 ||
        !(shm_is_path(open->object) || open_is_long(c, open)))
        return;
    c->numbered.lookups--;
    thread->feed.name = read_open(c, thread, open);
    thread->feed.name_time = open->time;
}

const char *numbered_name(struct collect *c, uint64_t object)
{
    if (shm_is_path(object))
        return NULL;
    if (shm_is_name(object))
        return name_in_area(c, (uint32_t)object);
    return looked_up(c, object);
}
