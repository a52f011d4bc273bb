/*
 * The facts of the formats, once, as tables: headers and versions (§0.1), event types of v1 and v2
 * (v1.def, v2.def), and the limits that writers observe and readers enforce. Decoders, printers,
 * the assembler and the encoders all use these tables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* MARK: Header: the text `go 1.N trace`, padded with NULs to 16 bytes (§0.1) */

#define WIRE_HEADER_SIZE 16

struct wire_version {
    int minor; /* N of the header */
    uint8_t header[WIRE_HEADER_SIZE];
    const char *writers; /* the Go releases that write it */
};

/* The known versions, oldest first; the last has minor 0. */
extern const struct wire_version wire_versions[];

/*
 * Returns the minor number of a header; 0 if it is not the header of a trace, -minor for an unknown
 * version. The padding must be NUL.
 */
int wire_header_parse(const uint8_t header[WIRE_HEADER_SIZE]);

/*
 * Returns the header of a known version, WIRE_HEADER_SIZE bytes of static lifetime; NULL for an
 * unknown one.
 */
const uint8_t *wire_header(int minor);

/*
 * How many open regions of a goroutine are searched for one that ends out of order. A bound for
 * hostile traces.
 */
#define WIRE_REGION_DEPTH 1000

/* MARK: v1 (§1) */

enum v1_type {
#define V1_EVENT(number, name, since, args, stack, arg_names, text_names) V1_##name = number,
#include "wire/v1.def"
    V1_TYPES
};

#define V1_TYPE_MASK    0x3f
#define V1_COUNT_SHIFT  6
#define V1_COUNT_LENGTH 3 /* value of the argument count: a length follows */

#define V1_MAX_STRING 1000000
#define V1_MAX_FRAMES 1000
#define V1_NO_PROC    UINT64_MAX
#define V1_MAX_PROC   INT32_MAX
#define V1_MAX_LENGTH 2048 /* of a length-prefixed record, in Go >= 1.23 */
/* The largest possible length: a Stack of V1_MAX_FRAMES with numbers of maximum size. */
#define V1_MAX_OLD_LENGTH (10 * (2 + 4 * V1_MAX_FRAMES))

struct v1_type_info {
    const char *name;
    const char *arg[5];  /* names, NULL-terminated, without the stack ID */
    const char *text[3]; /* names of its texts, NULL-terminated */
    uint8_t since;
    uint8_t args;
    uint8_t stack;
};

/* Indexed by type; entry 0 has no name. */
extern const struct v1_type_info v1_types[V1_TYPES];

/*
 * Returns the number of arguments of `type` in a file of version `minor`, with the stack ID,
 * without leading time fields (§1.3). Not for Stack and String.
 */
unsigned v1_arg_count(unsigned type, int minor);

/*
 * Returns the number of leading time fields: 2 in 1.5 (dseq, dticks), else 1 (dticks); 0 for
 * untimed records.
 */
unsigned v1_time_fields(unsigned type, int minor);

/*
 * Returns the name of number `i` of a record, from the leading time fields on: "dseq" and "dt", the
 * arguments, and "stk" for the stack ID. NULL past the last one. Frames of a Stack are not counted.
 */
#define V1_NAMED_NUMBERS 7
const char *v1_number_name(unsigned type, int minor, unsigned i);

/* Returns the text of a stop-the-world kind in a file of version `minor`; NULL if unknown. */
const char *v1_stw_kind(uint64_t kind, int minor);

/* MARK: v2 (§5) */

enum v2_type {
#define V2_EVENT(number, name, ...) V2_##name = number,
#include "wire/v2.def"
    V2_TYPES
};

enum v2_class {
    V2_CLASS_NONE,
    V2_CLASS_STRUCTURAL,
    V2_CLASS_TIMED,
    V2_CLASS_CLOCK,
    V2_CLASS_ALLOC_FREE
};

#define V2_MAX_ARGS              5
#define V2_MAX_BATCH_DATA        65536
#define V2_MAX_FRAMES            128
#define V2_MAX_STRING            1024
#define V2_NO_THREAD             UINT64_MAX
#define V2_NO_PROC               UINT64_MAX
#define V2_EXPERIMENT_ALLOC_FREE 1

/* Values of gstatus and pstatus (§5.3). */
enum { V2_GO_BAD, V2_GO_RUNNABLE, V2_GO_RUNNING, V2_GO_SYSCALL, V2_GO_WAITING, V2_GO_STATUSES };
enum {
    V2_PROC_BAD,
    V2_PROC_RUNNING,
    V2_PROC_IDLE,
    V2_PROC_SYSCALL,
    V2_PROC_ABANDONED,
    V2_PROC_STATUSES
};

/* What an event requires of its context (§6.5): a thread, a P and a goroutine, or their absence. */
enum {
    V2_NEED_M = 1,
    V2_NEED_P = 2,
    V2_NEED_G = 4,
    V2_NEED_NO_P = 8,
    V2_NEED_NO_G = 16,
    V2_NEED_USER_GO = V2_NEED_M | V2_NEED_P | V2_NEED_G
};

struct v2_type_info {
    const char *name; /* NULL: no such type */
    const char *arg[V2_MAX_ARGS];
    uint8_t since;
    uint8_t class;
    uint8_t args;
};

extern const struct v2_type_info v2_types[V2_TYPES];

/* Whether the type exists in files of version `minor` (AllocFree's from 1.23 on). */
static inline bool v2_type_known(unsigned type, int minor)
{
    return type < V2_TYPES && v2_types[type].name && v2_types[type].since <= minor;
}
