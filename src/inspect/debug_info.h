/*
 * What the file of a program or library offers to those who want names and stacks: symbols, debug
 * information here or in a file of its own, frame pointers, and the Debian package that has what
 * is missing.
 */
#ifndef TRAIL_INSPECT_DEBUG_INFO_H
#define TRAIL_INSPECT_DEBUG_INFO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum frame_pointers {
    FRAMES_UNKNOWN, /* no unwinding table, too few functions, or not x86-64 */
    FRAMES_NO,
    FRAMES_MIXED,
    FRAMES_YES
};

struct debug_info {
    bool looked;             /* it is an ELF file that could be read */
    bool symbols;            /* .symtab: names of all functions */
    bool dwarf;              /* .debug_info or .debug_line: lines and inlined calls */
    char build_id[129];      /* hexadecimal; "": none */
    char link[NAME_MAX + 1]; /* .gnu_debuglink: the name of the file with debug information */
    char file[PATH_MAX];     /* such a file that is here; "": none */

    enum frame_pointers frames;
    unsigned functions, framed; /* functions of some size that were looked at; with a frame */
};

/* The separate file of the program at `path`, named `link`, in the places where debuggers look. False: it is in none. */
bool debug_info_linked(const char *path, const char *link, char file[PATH_MAX]);

void debug_info_look(struct debug_info *info, const char *path);

/* Whether functions that are not exported have names, here or in the separate file. */
bool debug_info_has_names(const struct debug_info *info);
bool debug_info_has_lines(const struct debug_info *info);

/*
 * The Debian package that the file at `path` came with, asked of dpkg, which takes a moment. False:
 * none, or there is no dpkg.
 */
bool debug_info_package(const char *path, char *package, size_t size);

#endif
