/* Finds the function and inlined calls at an address: see scopes.h. */
#include "symbols/scopes.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

#define MOST_NESTED 512 /* nesting of DIEs; compilers produce a few dozen levels */

/* MARK: Spans */

bool spans_add(struct spans *spans, struct span span)
{
    if (span.high <= span.low)
        return true;
    return APPEND(spans->list, spans->capacity, spans->count, span);
}

bool spans_add_ranges(struct spans *spans, Dwarf_Die *die, size_t index)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0)
        if (!spans_add(spans, (struct span){.low = low, .high = high, .index = index}))
            return false;
    return true;
}

/* Of spans with the same start, the smaller comes later and so is found first. */
static int span_order(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return ORDER(x->low, y->low) ?: ORDER(y->high, x->high) ?: ORDER(x->index, y->index);
}

void spans_sort(struct spans *spans)
{
    uint64_t reach = 0;
    if (spans->count > 0)
        qsort(spans->list, spans->count, sizeof *spans->list, span_order);
    for (size_t i = 0; i < spans->count; i++) {
        if (spans->list[i].high > reach)
            reach = spans->list[i].high;
        spans->list[i].reach = reach;
    }
}

/* Returns the last span before `span` that contains an address; NULL if there is none. */
static const struct span *spans_find_before(const struct spans *spans, const struct span *span,
                                            uint64_t address)
{
    while (span > spans->list && span[-1].reach > address)
        if ((--span)->high > address)
            return span;
    return NULL;
}

const struct span *spans_find(const struct spans *spans, uint64_t address)
{
    size_t behind = SEARCH(i, 0, spans->count, spans->list[i].low <= address);
    return behind > 0 ? spans_find_before(spans, spans->list + behind, address) : NULL;
}

/* MARK: Scopes */

/* `caller` SCOPE_NONE: a function; otherwise a call inlined, directly or not, into function
 * `owner`. */
static bool scope_add(struct scopes *scopes, Dwarf_Die *die, size_t caller, size_t owner)
{
    bool is_function = caller == SCOPE_NONE;
    if (!GROW(scopes->list, scopes->capacity, scopes->count + 1))
        return false;
    scopes->list[scopes->count] = (struct scope){
        .die = *die, .caller = caller, .depth = is_function ? 0 : scopes->list[caller].depth + 1};
    return spans_add_ranges(is_function ? &scopes->functions : &scopes->list[owner].inside, die,
                            scopes->count++);
}

/* Whether a DIE's children may contain functions. */
static bool has_functions(int tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type: /* Rust's have methods */
        return true;
    default:
        return false;
    }
}

/* Adds the scopes in `parent`, which is part of scope `caller` of function `owner`; does not enter
 * functions. */
static bool walk(struct scopes *scopes, Dwarf_Die *parent, size_t caller, size_t owner,
                 unsigned nested)
{
    Dwarf_Die die;
    if (nested == MOST_NESTED || dwarf_child(parent, &die) != 0)
        return true;
    do {
        int tag = dwarf_tag(&die);
        size_t inner = caller;
        if (!has_functions(tag))
            continue;
        if (tag == DW_TAG_subprogram || (tag == DW_TAG_inlined_subroutine && owner != SCOPE_NONE)) {
            inner = scopes->count;
            if (!scope_add(scopes, &die, tag == DW_TAG_subprogram ? SCOPE_NONE : caller, owner))
                return false;
        }
        if (tag != DW_TAG_subprogram && !walk(scopes, &die, inner, owner, nested + 1))
            return false;
    } while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

bool scopes_load(struct scopes *scopes, Dwarf_Die *unit)
{
    bool loaded = walk(scopes, unit, SCOPE_NONE, SCOPE_NONE, 0);
    spans_sort(&scopes->functions);
    return loaded;
}

static bool enter(struct scopes *scopes, size_t function)
{
    size_t known = scopes->functions.count;
    /* A copy: walk() may move the list. */
    Dwarf_Die die = scopes->list[function].die;
    if (scopes->list[function].walked)
        return true;
    scopes->list[function].walked = true;
    bool entered = walk(scopes, &die, function, function, 0);
    spans_sort(&scopes->list[function].inside);
    if (scopes->functions.count > known)
        spans_sort(&scopes->functions);
    return entered;
}

bool scopes_complete(struct scopes *scopes)
{
    bool complete = true;
    for (size_t i = 0; scopes->list && i < scopes->count; i++)
        if (scopes->list[i].caller == SCOPE_NONE)
            complete &= enter(scopes, i);
    scopes->complete = true;
    return complete;
}

void scopes_free(struct scopes *scopes)
{
    for (size_t i = 0; i < scopes->count; i++)
        free(scopes->list[i].inside.list);
    free(scopes->list);
    free(scopes->functions.list);
}

/* Returns the deepest scope around an address. */
static struct scope *find_in(const struct scopes *scopes, const struct spans *spans,
                             uint64_t address)
{
    struct scope *found = NULL;
    const struct span *span = spans_find(spans, address);
    for (; span; span = spans_find_before(spans, span, address)) {
        struct scope *scope = &scopes->list[span->index];
        if (!found || scope->depth > found->depth)
            found = scope;
    }
    return found;
}

struct scope *scopes_find(struct scopes *scopes, uint64_t address)
{
    struct scope *function = find_in(scopes, &scopes->functions, address), *inlined;
    if (!function && !scopes->complete) {
        (void)scopes_complete(scopes); /* if out of memory, use what was found */
        function = find_in(scopes, &scopes->functions, address);
    }
    if (!function)
        return NULL;
    size_t index = (size_t)(function - scopes->list);
    (void)enter(scopes, index);
    inlined = find_in(scopes, &scopes->list[index].inside, address);
    return inlined ? inlined : &scopes->list[index];
}
