/*
 * The other ends of what threads wait for: which recorded processes alone can end the open reads,
 * writes and waits for a child, so that an analysis finds processes that wait for each other.
 *
 * They are looked up in /proc once when all threads of a trace have waited for a while, and again
 * when the recording ends before its processes. Threads may act meanwhile: rows count only if the
 * trace shows that none has, from the time of the look to the end (diagnose/stuck.h).
 */
#pragma once

#include <stdbool.h>

struct other_ends;
struct recorded_trace;
struct recorder;

/* Looks once each time that all threads have waited for a while; `always`: now. */
void other_ends_look(const struct recorder *r, struct recorded_trace *to, bool always);

/* Writes the rows as TRAIL_RECORDED_ENDS. */
void other_ends_write(const struct recorded_trace *to);

void other_ends_free(struct other_ends *ends);
