/*
 * The formats of profiles share this: what their values mean, and how frames are called.
 */
#ifndef TRAIL_EXPORT_PROFILE_H
#define TRAIL_EXPORT_PROFILE_H

#include <trail/export.h>

/* What a profile's values are called. */
struct profile_words {
    const char *count; /* "contentions" */
    const char *time;  /* "delay"; NULL: there are only counts */
};

struct profile_words profile_words(trail_profile_type type);

int profile_write_pprof(const trail_analysis *analysis, const trail_profile *profile,
                        const trail_sink *sink, trail_error *err);

#endif
