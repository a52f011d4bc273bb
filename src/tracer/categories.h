/* Which categories of annotations are recorded: see "Categories" in record.h. */
#pragma once

#include "tracer/section.h"

extern bool categories_listed; /* atomic: not all are on */

/* Whether the list has the category on. */
bool categories_have(const char *name);

/* The same for an annotation with a category. Costs a load and a branch without a list. */
static inline bool category_is_on(const char *name)
{
    return likely(!__atomic_load_n(&categories_listed, __ATOMIC_RELAXED)) || categories_have(name);
}
