/*
 * `trail report --embed`: the viewer as one file, with the trace in it.
 */
#ifndef TRAIL_COMMANDS_REPORT_EMBED_H
#define TRAIL_COMMANDS_REPORT_EMBED_H

/* Writes the file. `word` is the trace's path; if `title` is NULL, its name is the title. Returns
 * the exit code. */
int report_embed(const char *word, const char *title, const char *path);

#endif
