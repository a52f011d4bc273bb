/* Maps a source's strings and stacks to their IDs: see origin.h. */
#include "write/origin.h"

#include <stdlib.h>

void origin_fini(struct origin *origin)
{
    free(origin->strings.ids);
    free(origin->stacks.ids);
    free(origin->reasons.ids);
}
