/* Connects to the recorder that `trail record` loaded into the process: see annotations.h. */
#include "host/annotations.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "tracer/tracer.h"

const struct annotations *annotations;

__attribute__((constructor)) static void join(void)
{
    const struct annotations *found;
    if (!secure_getenv("TRAIL_SHM"))
        return;
    found = dlsym(RTLD_DEFAULT, ANNOTATIONS_SYMBOL);
    if (!found || found->version != ANNOTATIONS_VERSION)
        return;
    annotations = found;
    __atomic_or_fetch(&trail_tracing_, 1, __ATOMIC_RELEASE);
}
