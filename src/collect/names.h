/*
 * Names for what the records have numbers for: stacks and PCs, by the program's module map and the options' resolver;
 * threads, by their start routine; locks, by their variable or where they were first locked. A PC is resolved once; a
 * stack is written once a generation.
 */
#ifndef TRAIL_COLLECT_NAMES_H
#define TRAIL_COLLECT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/export.h>

#include "base/idmap.h"
#include "collect/samples.h"
#include "collect/stack_copy.h"
#include "shm/shm.h"

struct collect;
struct module;
struct thread;
struct trace;

/* A text that is in the trace, of one generation. */
struct known_text {
    uint64_t generation, id;
    const char *name;
    unsigned wait;
};

#define KNOWN_WAITS 256

/* Owned by names.c. Zero-initialised is empty. Texts and frames lie in the collector's arena. */
struct names {
    struct idmap stacks;  /* a number of the area to its frames */
    struct idmap frames;  /* PC to its frames */
    struct idmap objects; /* address to its name */
    struct module *modules;
    size_t module_count, module_room;
    uint32_t modules_version;     /* of the area's lines */
    uint64_t maps_ns;             /* when the kernel's list of mappings was read last */
    bool gcc_openmp, llvm_openmp; /* the program has loaded this library */
    uint64_t next_frame;
    struct known_text waits[KNOWN_WAITS], reasons[SHM_WAITS], wait_category, held_category;
    struct unwind_files unwind_files;
};

/* MARK: Stacks: the trace's ID of each; 0: none */

/* Of a stack of the area, by its key; of a single PC if the key is 0. */
uint64_t names_stack(struct collect *c, uint64_t key, uint64_t pc);

/* Of PCs that are no stack of the area. */
uint64_t names_pcs(struct collect *c, const uint64_t *pcs, size_t count);

/* The stack that names a goroutine: its thread's name, or its start routine; the latter alone. */
uint64_t names_thread(struct collect *c, const struct thread *thread);
uint64_t names_routine(struct collect *c, const struct thread *thread);

/* Writes the same as text; empty: not known. */
void names_thread_text(struct collect *c, const struct thread *thread, char *text, size_t size);

/* Of a lock's acquisition: its PC, within what the release's stack has in common with it. */
uint64_t names_hold(struct collect *c, uint64_t pc, uint64_t release);

/* Walks a stack of which there is a copy. Writes up to SHM_STACK_FRAMES PCs and returns how many. */
size_t names_walk(struct collect *c, const struct cpu_sample *sample, uint64_t *pcs);

/* MARK: Texts */

/* The trace's ID of a text. */
uint64_t names_string(struct collect *c, const char *text);

/* The text of a wait's log, "read /var/lib/x", and its category. The text is kept for the next wait for what has this name. */
uint64_t names_wait(struct collect *c, unsigned wait, const char *name, const char *object);
uint64_t names_wait_category(struct collect *c);

/* The category of a hold's log, and the reason of a wait. */
uint64_t names_held_category(struct collect *c);
uint64_t names_reason(struct collect *c, uint8_t wait);

/* Returns the kept text; 0: there is none. `name` lives as long as the collector, and its address stands for it. */
uint64_t names_known_wait(const struct collect *c, unsigned wait, const char *name);

/* "FUNCTION (FILE:LINE)" of a stack's first frame that is the program's own; empty: there is none. */
void names_place(struct collect *c, uint64_t key, char *text, size_t size);

/* An object's name, "stats_mu" or "0x7f...", in a trace of several processes with its own. Lives as long as the collector; of what processes share, as the trace. */
const char *names_object(struct collect *c, uint64_t address);

/*
 * The same of a lock. One without a symbol is named after where it was first seen locked: "0x7f... (first seen locked in
 * Queue::push queue.cc:41)", by a hold that began at `pc` or, if that is not known, by a wait with the stack `key`.
 */
const char *names_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key);

/*
 * Names a lock that processes share after a hold that began at `time`. Processes are not read in the order of time: an
 * earlier hold renames what a later one has named.
 */
void names_shared_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key,
                       uint64_t time);

/* Whether the object has a name already. */
bool names_is_known(struct collect *c, uint64_t address);

/* A locked file's name, as the last wait for it has it; NULL: nothing has waited for it. */
const char *names_file(const struct collect *c, uint64_t file);

/* A wait has this name for a locked file. */
void names_file_is(struct collect *c, uint64_t file, const char *name);

/* The object has ended: what comes to lie at its address is another one. */
void names_forget_object(struct collect *c, uint64_t address);

/* MARK: Notes for a generation */

void names_modules(struct collect *c);

/* Both clocks at a time of the trace, where the format has no event for them. */
void names_clock(struct trace *t, int64_t ns, int64_t wall_ns);

/* MARK: The program */

/* Whether it uses gcc's OpenMP library, which reports nothing, and not LLVM's. */
bool names_has_silent_openmp(const struct collect *c);

void names_dispose(struct collect *c);

#endif
