/*
 * --skip-frames=FILE: further frames that name no place, a pattern a line (words/wrappers.h); empty lines and those
 * that begin with # are left out.
 */
#ifndef TRAIL_UI_SKIP_FRAMES_H
#define TRAIL_UI_SKIP_FRAMES_H

#define SKIP_FRAMES_HELP                                                                           \
    "name no place by functions that match a line of FILE, such as\npool::*, nor by files: "       \
    "file:*/pool/*"

/*
 * Reads a file into *patterns, NULL behind the last, which skip_frames_free frees; what was there before stays in
 * front. Returns EXIT_GOOD, or EXIT_USAGE or EXIT_INOUT after an error on stderr that names file and line.
 */
int skip_frames_read(const char *path, const char ***patterns);
void skip_frames_free(const char **patterns);

#endif
