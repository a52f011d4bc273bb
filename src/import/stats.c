/* Counts what an import does not understand: see stats.h. */
#include "import/stats.h"

#include <string.h>

void import_count_unknown(struct import_stats *stats, trail_string name)
{
    size_t size = name.size < IMPORT_NAME_SIZE - 1 ? name.size : IMPORT_NAME_SIZE - 1;
    for (size_t i = 0; i < stats->unknown_names; i++) {
        struct import_count *known = &stats->unknown[i];
        if (strlen(known->name) == size && memcmp(known->name, name.data, size) == 0) {
            known->count++;
            return;
        }
    }
    if (stats->unknown_names == IMPORT_NAMES || memchr(name.data, '\0', size)) {
        stats->unknown_others++;
        return;
    }
    struct import_count *fresh = &stats->unknown[stats->unknown_names++];
    memcpy(fresh->name, name.data, size);
    fresh->name[size] = '\0';
    fresh->count = 1;
}

void import_count_unreadable(struct import_stats *stats)
{
    if (stats->unreadable++ == 0)
        stats->unreadable_first = stats->lines;
}

void import_count_bad(struct import_stats *stats)
{
    if (stats->bad++ == 0)
        stats->bad_first = stats->lines;
}
