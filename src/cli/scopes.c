#include "cli/scopes.h"

#include <dwarf.h>
#include <stdlib.h>

#define MOST_NESTED 512 /* DIEs in one another; a compiler's are some tens */

/* MARK: Spans */

static void *grow(void *list, size_t *capacity, size_t count, size_t element_size)
{
    if (count < *capacity)
        return list;
    size_t wanted = *capacity ? *capacity * 2 : 256;
    void *grown = reallocarray(list, wanted, element_size);
    if (grown)
        *capacity = wanted;
    return grown;
}

bool spans_add(struct spans *spans, struct span span)
{
    if (span.high <= span.low)
        return true;
    void *grown = grow(spans->list, &spans->capacity, spans->count, sizeof *spans->list);
    if (!grown)
        return false;
    spans->list = grown;
    spans->list[spans->count++] = span;
    return true;
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

/* Of spans that begin together, the smaller comes later and is thus found first. */
static int span_order(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->low != y->low)
        return x->low > y->low ? 1 : -1;
    if (x->high != y->high)
        return x->high < y->high ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
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

const struct span *spans_find_before(const struct spans *spans, const struct span *span,
                                     uint64_t address)
{
    while (span > spans->list && span[-1].reach > address)
        if ((--span)->high > address)
            return span;
    return NULL;
}

const struct span *spans_find(const struct spans *spans, uint64_t address)
{
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->list[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? spans_find_before(spans, spans->list + low, address) : NULL;
}

/* MARK: Scopes */

static bool scope_add(struct scopes *scopes, Dwarf_Die *die, size_t caller)
{
    void *grown = grow(scopes->list, &scopes->capacity, scopes->count, sizeof *scopes->list);
    if (!grown)
        return false;
    scopes->list = grown;
    unsigned depth = caller == SCOPE_NONE ? 0 : scopes->list[caller].depth + 1;
    scopes->list[scopes->count] = (struct scope){.die = *die, .caller = caller, .depth = depth};
    return spans_add_ranges(&scopes->spans, die, scopes->count++);
}

/* Whether functions may be among the children of a DIE. */
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

static bool walk(struct scopes *scopes, Dwarf_Die *parent, size_t caller, unsigned nested)
{
    Dwarf_Die die;
    if (nested == MOST_NESTED || dwarf_child(parent, &die) != 0)
        return true;
    do {
        int tag = dwarf_tag(&die);
        size_t inner = caller;
        if (!has_functions(tag))
            continue;
        if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
            if (!scope_add(scopes, &die, tag == DW_TAG_subprogram ? SCOPE_NONE : caller))
                return false;
            inner = scopes->count - 1;
        }
        if (!walk(scopes, &die, inner, nested + 1))
            return false;
    } while (dwarf_siblingof(&die, &die) == 0);
    return true;
}

bool scopes_load(struct scopes *scopes, Dwarf_Die *unit)
{
    bool loaded = walk(scopes, unit, SCOPE_NONE, 0);
    spans_sort(&scopes->spans);
    return loaded;
}

void scopes_free(struct scopes *scopes)
{
    free(scopes->list);
    free(scopes->spans.list);
}

struct scope *scopes_find(const struct scopes *scopes, uint64_t address)
{
    struct scope *found = NULL;
    const struct span *span = spans_find(&scopes->spans, address);
    for (; span; span = spans_find_before(&scopes->spans, span, address)) {
        struct scope *scope = &scopes->list[span->index];
        if (!found || scope->depth > found->depth)
            found = scope;
    }
    return found;
}
