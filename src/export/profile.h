/*
 * Shared by the profile formats: the names of the values.
 */
#pragma once

#include <trail/analyze.h>
#include <trail/export.h>

/* The names of a profile's values. */
struct profile_words {
    const char *count; /* "contentions" */
    const char *time;  /* "delay"; NULL: only counts */
};

/* Returns the names for a type of profile. */
struct profile_words profile_words(trail_profile_type type);

/* Writes a profile in pprof's format. Returns 0, or -1 with *err set. */
int profile_write_pprof(const trail_analysis *analysis, const trail_profile *profile,
                        const trail_sink *sink, trail_error *err);
