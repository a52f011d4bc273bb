/*
 * What the file of a program or library offers for names and stacks: symbols, debug information in
 * it or in a separate file, frame pointers, and the Debian package that contains what is missing.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum frame_pointers {
    FRAMES_UNKNOWN, /* no CFI, too few functions, or not x86-64 */
    FRAMES_NO,
    FRAMES_MIXED,
    FRAMES_YES
};

struct debug_info {
    bool looked;             /* the file is ELF and was read */
    bool no_memory;          /* it could not be read for lack of memory */
    bool symbols;            /* .symtab: names of all functions */
    bool dwarf;              /* .debug_info of the program itself: lines and inlined calls */
    char build_id[129];      /* hexadecimal; "": none */
    char link[NAME_MAX + 1]; /* .gnu_debuglink: name of the file with debug information */
    char file[PATH_MAX];     /* path of such a file that exists here; "": none */

    enum frame_pointers frames;
    unsigned functions, framed; /* functions examined; of these with a frame pointer */
};

/*
 * Finds the separate file of debug information of the program at `path`, named `link`, in the
 * places where debuggers look. Returns false if there is none.
 */
bool debug_info_linked(const char *path, const char *link, char file[PATH_MAX]);

/* Fills *info. If the file cannot be read or is not ELF, `looked` is false. */
void debug_info_look(struct debug_info *info, const char *path);

/* Whether functions that are not exported have names, here or in the separate file. */
bool debug_info_has_names(const struct debug_info *info);

/* Whether there are source lines, here or in the separate file. */
bool debug_info_has_lines(const struct debug_info *info);

/*
 * Gets the Debian package that the file at `path` belongs to, by running dpkg-query, which takes a
 * moment. Returns false if there is none, or no dpkg; with ENOMEM in errno: out of memory.
 */
bool debug_info_package(const char *path, char *package, size_t size);
