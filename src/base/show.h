/* Show: sizes, shares and wall-clock times for people, in the form of all commands. */
#pragma once

#include <stdint.h>

#define SHOW_SIZE 64 /* enough for each function below */

/* Write to `buf` of SHOW_SIZE bytes and return it. */
const char *show_thousands(char *buf, uint64_t count);    /* "12,345" */
const char *show_bytes(char *buf, uint64_t bytes);        /* "1.66 MiB" */
const char *show_percent(char *buf, double percent);      /* "12.3 %", "100 %" */
const char *show_wall(char *buf, int64_t s, uint32_t ns); /* "2026-11-21 06:46:11.160535358 UTC" */
