/* Finds what old versions of glibc lack. */
#include "host/old_glibc.h"

#include <stddef.h>
#include <string.h>

static const char not_single_threaded;
static const ptrdiff_t no_offset;
static const unsigned no_rseq;

struct newer_glibc newer_glibc = {&not_single_threaded, &no_offset, &no_rseq, NULL};

static void find(const char *name, void *pointer)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found)
        memcpy(pointer, &found, sizeof found);
}

__attribute__((constructor(101))) static void find_all(void)
{
    find("__libc_single_threaded", &newer_glibc.single_threaded);
    find("__rseq_offset", &newer_glibc.rseq_offset);
    find("__rseq_size", &newer_glibc.rseq_size);
    find("_dl_find_object", &newer_glibc.find_object);
    /* The program must not see an error that is ours. */
    (void)dlerror();
}
