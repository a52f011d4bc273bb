/*
 * Names: text of a trace as numbers that outlive a generation, equal for equal text. Each handle of
 * the reader is looked up once per epoch.
 */
#pragma once

#include <string.h>
#include <trail/analyze.h>

#include "base/idmap.h"
#include "base/intern.h"

/* Set `reader`; zero-initialise the rest. Not thread-safe. */
struct names {
    const trail_reader *reader;
    struct intern intern;
    struct arena arena;
    trail_string *texts; /* by name; entry 0 is empty */
    size_t count, capacity;
    uint32_t *by_handle; /* 0: not looked up in this epoch */
    size_t handles, handle_capacity;
    uint64_t epoch;
    struct idmap waits; /* names of announced waits -> struct wait_facts (wait_names.h) */
    struct idmap kinds; /* a thread's name that ends in a number -> its kind, as a pointer */
    bool failed;        /* out of memory: some non-empty names are 0 */
};

/* Called when a batch of events arrives. */
void names_begin_batch(struct names *names);
void names_free(struct names *names);

/* The slow path of names_of. */
trail_name names_look_up(struct names *names, trail_string_handle handle);

/* Returns the name of a text. */
trail_name names_put(struct names *names, const char *data, size_t size);

static inline trail_name names_of_text(struct names *names, const char *text)
{
    return names_put(names, text, strlen(text));
}

static inline trail_name names_of(struct names *names, trail_string_handle handle)
{
    if (__builtin_expect(handle < names->handles && names->by_handle[handle] != 0, 1))
        return names->by_handle[handle];
    return handle == 0 ? 0 : names_look_up(names, handle);
}

/*
 * Returns the name shown for a goroutine with this start function (0: unknown), which no other
 * place decides: the name that its program has given it, else the start function; then the kind, as
 * in `accept loop (listener)`.
 */
trail_name names_goroutine(struct names *names, int64_t id, trail_name start);

/* Learns the name of a goroutine, whose start function has this PC and file (0: none). Threads to
 * which a program has given the names "worker-1" and "worker-2" are of one kind, "worker-*". */
void names_learn(struct names *names, trail_name name, uint64_t pc, uint64_t file);

/* The slow path of names_kind. */
trail_name names_find_kind(const struct names *names, trail_name name);

/* Returns the kind of goroutines with this name: the name itself, or for named threads the kind of
 * all that differ only in the number. While there is only one such thread, the kind's text is its
 * name. */
static inline trail_name names_kind(const struct names *names, trail_name name)
{
    return __builtin_expect(names->kinds.count == 0, 1) ? name : names_find_kind(names, name);
}

static inline trail_string names_text(const struct names *names, trail_name name)
{
    return name < names->count ? names->texts[name] : (trail_string){"", 0};
}
