/* See calls.h. */
#include "collect/calls.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "shm/shm.h"

static const struct call calls[] = {
#define CALL(name, kind, argument) {SYS_##name, SHM_##kind, ARGUMENT_##argument},
#include "collect/calls.def"
};

const struct call *calls_find(long number)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number)
            return &calls[i];
    return NULL;
}
