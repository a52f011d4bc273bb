/*
 * Modules in another process: where they are, and the addresses of their functions.
 *
 * Modules are found as the loader has them, through the program's link map, and their symbols through the tables that the
 * loader uses itself: names in /proc/PID/maps alone do not tell a library from a file that was mapped to be read, or from
 * the library of another namespace (dlmopen(3)). What the link map says must agree with the mappings, and a function that
 * is to be called must be in memory as it is in the module's file.
 *
 * All that is read is hostile: each number is copied, checked, then used.
 */
#ifndef TRAIL_ATTACH_IMAGE_H
#define TRAIL_ATTACH_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <trail/error.h>

struct image {
    pid_t pid;
    uint64_t bias;                  /* added to the addresses in the file */
    uint64_t dynamic, dynamic_size; /* the dynamic section */
    uint64_t code, end;             /* its first executable segment */
    uint64_t code_offset;           /* of that segment in the file */
    uint64_t map, map_end;          /* the mapping of the segment's begin */
    char path[4096];                /* as /proc/PID/maps has it */
};

/*
 * Finds the first module whose file name begins with `name`, as "libc.so", or whose path it is. False: the program has
 * not loaded it, or its link map and its mappings contradict each other; errno is EACCES or EPERM if the process may not
 * be read.
 */
bool image_find(struct image *image, pid_t pid, const char *name);

/* Whether the program is linked statically: it has no loader. */
bool image_is_static(pid_t pid);

/* Returns the address of a function or variable that a module defines; 0: it does not. */
uint64_t image_symbol(const struct image *image, const char *name);

/* Returns the address of bytes in the module's code; 0: they are not there. */
uint64_t image_bytes(const struct image *image, const void *bytes, size_t size);

/* Code that is to be executed, and how it begins: another program may be there when it is. */
struct image_code {
    uint64_t address; /* 0: none */
    uint8_t bytes[16];
};

/*
 * Opens the module's file, whose headers and build ID are those of the module: a descriptor, which the caller closes; -1
 * with *err.
 */
int image_file(const struct image *image, trail_error *err);

/* Takes the code at an address (0: none) from the file. False with *err: it differs from that in memory. */
bool image_code(const struct image *image, int file, uint64_t address, struct image_code *code,
                trail_error *err);

#endif
