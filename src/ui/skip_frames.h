/*
 * --skip-frames=FILE: further frames that do not name a place, one pattern per line
 * (words/wrappers.h); empty lines and lines beginning with # are ignored.
 */
#pragma once

#define SKIP_FRAMES_HELP                                                                           \
    "do not name places after functions that match a line of FILE, such as pool::*, nor after "    \
    "files: "                                                                                      \
    "file:*/pool/*"

/*
 * Appends the patterns in a file to *patterns, NULL-terminated, which skip_frames_free frees.
 * Returns EXIT_GOOD, or EXIT_USAGE or EXIT_INOUT after a message with file and line.
 */
int skip_frames_read(const char *path, const char ***patterns);

/* The option; its member is a list of patterns as above. */
#define TO_SKIP_FRAMES(request, member) TO_PARSED(request, member, const char **, skip_frames_take)
struct command;
int skip_frames_take(const struct command *command, void *patterns, const char *path);
void skip_frames_free(const char **patterns);
