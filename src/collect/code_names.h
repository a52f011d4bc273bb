/*
 * Names of code: PCs and stacks, by the program's module map and the options' resolver. Each PC is
 * resolved once; each stack is written once per generation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "collect/samples.h"
#include "collect/stack_copy.h"
#include "wire/goroutine.h"
#include "words/wrappers.h"
#include "write/v2_writer.h"

struct collect;
struct guarded_lock;
struct module;
struct runtime_wait;

/* Owned by code_names.c. Zero-initialised: empty. Texts and frames lie in the collector's arena. */
struct code_names {
    struct idmap stacks; /* stack number in the area to its frames */
    struct idmap frames; /* PC to its frames */
    struct module *modules;
    size_t module_count, module_room;
    uint32_t modules_version;     /* of the area's lines */
    uint64_t maps_ns;             /* when the kernel's list of mappings was read last */
    bool gcc_openmp, llvm_openmp; /* the program has loaded this library */
    struct unwind_files unwind_files;
};

/* Frames into which others are inlined get numbers where no code can be (see trail_symbolize). */
#define CODE_FIRST_NUMBER GOROUTINE_NAMED_PC

/* The stack of a hold: its place, and the outer frames of its release. */
struct named_hold {
    uint64_t generation, id;
    uint64_t pc;
};

/* Holds that end at one place began at only a few. */
#define KNOWN_HOLDS 4

/* A stack of the area, as written to the trace. */
struct named_stack {
    uint64_t generation, id;
    struct v2_frame *frames; /* in the arena; texts too */
    size_t count;
    bool unlisted;              /* a frame of it is */
    const struct v2_frame *own; /* see code_own_frame */
    bool own_known, runtime_known;
    const struct runtime_wait *runtime;   /* the kind of wait that the stack shows; NULL: as
                                           * recorded */
    const char *runtime_object;           /* in the arena; NULL: not determined yet */
    struct named_hold holds[KNOWN_HOLDS]; /* holds that ended with this stack */
    unsigned next_hold;
};

/* The frames that a PC stands for, innermost first. */
struct named_pc {
    size_t count;
    bool preload, openmp;
    bool unlisted; /* in no module, and not in the list of generated code yet */
    struct v2_frame frames[];
};

/* MARK: Stacks: the trace's ID of each; 0: none */

/* Returns the ID of a stack of the area, by its key; of a single PC if the key is 0. */
uint64_t code_stack(struct collect *c, uint64_t key, uint64_t pc);

/* Returns the ID of a stack from PCs that are not in the area. */
uint64_t code_pcs(struct collect *c, const uint64_t *pcs, size_t count);

/* MARK: Frames */

/* Returns the frames of a PC, or of a stack of the area; NULL if out of memory. */
const struct named_pc *code_named_pc(struct collect *c, uint64_t pc);
struct named_stack *code_named_stack(struct collect *c, uint64_t key);

/* Appends the visible frames of a PC to the `count` frames present, at most V2_MAX_FRAMES. Returns
 * the new count. */
size_t code_add_frames(struct collect *c, uint64_t pc, struct v2_frame *frames, size_t count);

/* How well a frame names a place, and whether it names none at all. */
enum frame_rank code_rank(const struct collect *c, const struct v2_frame *frame);
bool code_is_wrapper(const struct collect *c, const struct v2_frame *frame);

enum code_end { CODE_INNERMOST, CODE_OUTERMOST };

/*
 * The first frame of the best rank, searched from one end, among the program's frames; NULL: none.
 * code_own_frame: the same from the innermost frame of a stack, cached.
 */
const struct v2_frame *code_own(const struct collect *c, const struct v2_frame *frames,
                                size_t count, enum code_end end);
const struct v2_frame *code_own_frame(const struct collect *c, struct named_stack *stack);

/* The frame of the function at an address; NULL: not one of the program's functions. */
const struct v2_frame *code_own_function(struct collect *c, uint64_t address);

/*
 * Writes "FUNCTION (FILE:LINE)" for the first frame of a stack that belongs to the program; empty:
 * none.
 */
void code_place(struct collect *c, uint64_t key, char *text, size_t size);
/* The same for a single PC. */
void code_place_pc(struct collect *c, uint64_t pc, char *text, size_t size);

/* Writes the name of the variable or vtable at an address; false: it has none. */
bool code_object(struct collect *c, uint64_t address, char *text, size_t size);

/* Walks the copy of a stack. Writes up to SHM_STACK_FRAMES PCs and returns their number. */
size_t code_walk(struct collect *c, const struct cpu_sample *sample, uint64_t *pcs);

/* Writes the locks for which a stack has guards; returns their number (stack_guards.h). */
size_t code_guards(struct collect *c, const struct cpu_sample *sample, struct guarded_lock *locks,
                   size_t max);

/* MARK: The program */

/* Writes the module map for a generation. */
void code_write_modules(struct collect *c);

/* Whether the program uses gcc's OpenMP library, which reports nothing, and not LLVM's. */
bool code_has_silent_openmp(const struct collect *c);

void code_names_dispose(struct code_names *code);
