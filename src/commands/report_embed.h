/*
 * `trail report --embed`: the viewer as one file, with the trace in it.
 */
#pragma once

/* Writes the file. `word` is the trace's path; if `title` is NULL, its name is the title. Returns
 * the exit code. */
int report_embed(const char *word, const char *title, const char *path);
