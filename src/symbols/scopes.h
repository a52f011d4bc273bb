/*
 * Scopes: the functions of a compilation unit and the calls that were inlined into them, by address.
 * The look-up of libdw 0.188 does not find inlined calls in code of clang and of link-time optimisation, so a unit's DIEs
 * are walked and their ranges sorted: its functions first; what is in one of them when an address falls into it. A
 * function within a function has addresses of its own: all are walked when an address is in none that is known.
 */
#ifndef TRAIL_SYMBOLS_SCOPES_H
#define TRAIL_SYMBOLS_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses [low, high), of what `index` or `name` say. */
struct span {
    uint64_t low, high;
    uint64_t reach; /* the largest `high` of this and those before it, once sorted */
    const char *name;
    size_t index;
};

struct spans {
    struct span *list;
    size_t count, capacity;
};

/* An empty span is left out. False when memory is out. */
bool spans_add(struct spans *spans, struct span span);

/* Adds the ranges that a DIE has, with that index. */
bool spans_add_ranges(struct spans *spans, Dwarf_Die *die, size_t index);
void spans_sort(struct spans *spans);

/* The span around an address that begins last, NULL if there is none. */
const struct span *spans_find(const struct spans *spans, uint64_t address);

#define SCOPE_NONE SIZE_MAX

struct scope {
    Dwarf_Die die;       /* a subprogram or an inlined subroutine */
    size_t caller;       /* what it was inlined into; SCOPE_NONE: nothing */
    unsigned depth;      /* number of scopes that it was inlined into */
    bool walked;         /* of a function: what is in it is known */
    struct spans inside; /* ... then: what was inlined into it, by index */
};

struct scopes {
    struct scope *list;
    size_t count, capacity;
    struct spans functions;
    bool complete; /* all functions were walked */
};

/* Fills `scopes` (zeroed) with those of a unit. False when memory is out. */
bool scopes_load(struct scopes *scopes, Dwarf_Die *unit);
/* All of their functions, also those within others. */
bool scopes_complete(struct scopes *scopes);
void scopes_free(struct scopes *scopes);

/* The innermost scope around an address, NULL if there is none; good until the next call. */
struct scope *scopes_find(struct scopes *scopes, uint64_t address);

#endif
