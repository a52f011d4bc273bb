/*
 * Show: sizes and times for people, as all commands write them.
 */
#ifndef TRAIL_BASE_SHOW_H
#define TRAIL_BASE_SHOW_H

#include <stdint.h>

#define SHOW_SIZE 64 /* enough for each of these */

/* Into `buf` of SHOW_SIZE, which is returned. */
const char *show_bytes(char *buf, uint64_t bytes);   /* "1.66 MiB" */
const char *show_duration(char *buf, int64_t ns);    /* as in columns, base/duration.h: "1.020 s" */
const char *show_percent(char *buf, double percent); /* "12.3 %" */
const char *show_wall(char *buf, int64_t s, uint32_t ns); /* "2026-11-21 06:46:11.160535358 UTC" */

#endif
