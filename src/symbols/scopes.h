/*
 * Scopes: the functions of a compilation unit and the calls inlined into them, by address. libdw
 * 0.188 does not find inlined calls in code from clang or link-time optimisation, so the DIEs of a
 * unit are walked and their ranges sorted: first its functions, then the contents of a function
 * when an address in it is looked up. Nested functions have addresses of their own, so if no known
 * function contains an address, all functions are walked.
 */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses [low, high) of the object that `index` or `name` identifies. */
struct span {
    uint64_t low, high;
    uint64_t reach; /* once sorted: the largest `high` up to and including this span */
    const char *name;
    size_t index;
};

struct spans {
    struct span *list;
    size_t count, capacity;
};

/* Adds a span unless it is empty. Returns false if out of memory. */
bool spans_add(struct spans *spans, struct span span);

/* Adds all address ranges of a DIE with that index. Returns false if out of memory. */
bool spans_add_ranges(struct spans *spans, Dwarf_Die *die, size_t index);

/* Sorts the spans and sets `reach`; needed before a look-up. */
void spans_sort(struct spans *spans);

/* Returns the last span, in sorted order, that contains an address; NULL if there is none. */
const struct span *spans_find(const struct spans *spans, uint64_t address);

#define SCOPE_NONE SIZE_MAX

struct scope {
    Dwarf_Die die;       /* a subprogram or an inlined subroutine */
    size_t caller;       /* the scope it was inlined into; SCOPE_NONE: a function */
    unsigned depth;      /* number of scopes around it, from inlining */
    bool walked;         /* of a function: `inside` is complete */
    struct spans inside; /* of a function: the calls inlined into it, by index */
};

struct scopes {
    struct scope *list;
    size_t count, capacity;
    struct spans functions;
    bool complete; /* all functions have been walked */
};

/*
 * Adds the functions of a unit to `scopes`, which must be zeroed. Returns false if out of memory.
 */
bool scopes_load(struct scopes *scopes, Dwarf_Die *unit);
/* Walks all functions, so that nested ones are known too. Returns false if out of memory. */
bool scopes_complete(struct scopes *scopes);
void scopes_free(struct scopes *scopes);

/* Returns the innermost scope around an address, or NULL. Valid until the next call. */
struct scope *scopes_find(struct scopes *scopes, uint64_t address);
