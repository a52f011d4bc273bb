/* Demangles C++ and Rust names with libiberty: see demangle.h. */
#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NAME ((size_t)16 << 10)

struct demangler {
    void *names; /* a tree of struct name, by `mangled` */
};

struct name {
    const char *mangled;
    char *text; /* NULL: not a mangled name */
};

static int name_order(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return strcmp(x->mangled, y->mangled);
}

static void name_free(void *node)
{
    struct name *name = node;
    free(name->text);
    free(name);
}

struct demangler *demangler_open(void)
{
    return calloc(1, sizeof(struct demangler));
}

void demangler_close(struct demangler *demangler)
{
    if (!demangler)
        return;
    tdestroy(demangler->names, name_free);
    free(demangler);
}

const char *demangle(struct demangler *demangler, const char *mangled)
{
    /* Without a prefix, libiberty would take a function "i" for the type int. */
    if ((strncmp(mangled, "_Z", 2) != 0 && strncmp(mangled, "_R", 2) != 0) ||
        strnlen(mangled, LONGEST_NAME) == LONGEST_NAME)
        return mangled;
    struct name *name = calloc(1, sizeof *name);
    if (!name)
        return mangled;
    name->mangled = mangled;
    struct name **known = tsearch(name, &demangler->names, name_order);
    if (!known || *known != name) {
        free(name);
        return known && (*known)->text ? (*known)->text : mangled;
    }
    name->text = cplus_demangle(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
    return name->text ? name->text : mangled;
}
