/* Changes as options of trail whatif. */
#include "replay/change.h"

#include <stdio.h>

const char *change_option(const struct change *change, char *buf, size_t size)
{
    static const char *const names[CHANGE_KINDS] = {
        [CHANGE_FREE] = "free", [CHANGE_HOLD] = "hold", [CHANGE_FASTER] = "faster",
        [CHANGE_CPUS] = "cpus", [CHANGE_IO] = "io",     [CHANGE_NO_GC] = "no-gc",
        [CHANGE_POOL] = "pool",
    };
    const char *name = names[change->kind];
    double factor = change->kind == CHANGE_FASTER ? 1 / change->factor : change->factor;
    if (change->kind == CHANGE_CPUS)
        (void)snprintf(buf, size, "--%s=%u", name, change->cpus);
    else if (change->kind == CHANGE_POOL)
        (void)snprintf(buf, size, "--%s=%s=%u", name, change->name, change->threads);
    else if (change->kind == CHANGE_NO_GC)
        (void)snprintf(buf, size, "--%s", name);
    else if (change->kind == CHANGE_FREE)
        (void)snprintf(buf, size, "--%s=%s", name, change->name);
    else
        (void)snprintf(buf, size, "--%s=%s=%gx", name, change->name, factor);
    return buf;
}
