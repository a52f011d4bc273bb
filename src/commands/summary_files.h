/* trail summary of several files: one line each. Also prints the findings of one file for other
 * screens. */
#pragma once

#include "ui/analysis.h"

/* Requests the analyses for findings, waits, pauses and tasks. */
void summary_files_want(trail_analysis_options *options);

/* Whether the arguments are several files, or a folder. */
bool summary_files_are(const struct options *options);

/* Prints a line for each file among the arguments, or in a folder. Returns the exit code. */
int summary_files_show(const struct analysis *analysis, const struct options *options);

/* Prints at most `most` findings of the file on stderr, as in 'trail summary'; nothing if it cannot
 * be read. */
void summary_files_findings(const char *path, size_t most);
