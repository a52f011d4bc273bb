/*
 * Finds modules and the addresses of their functions in the memory of another process.
 *
 * Modules are found in the program's link map, and symbols in the tables that the loader uses.
 * Names in /proc/PID/maps alone do not distinguish a library from a file that was mapped to be
 * read, or from the library of another namespace (dlmopen(3)). The link map must agree with the
 * mappings, and code to be called must be the same in memory as in the module's file.
 *
 * The memory is hostile input: each number is copied and checked before it is used.
 */
#pragma once

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
    uint64_t map, map_end;          /* the mapping of the segment's start */
    char path[4096];                /* as in /proc/PID/maps */
};

/*
 * Finds the first module whose file name begins with `name`, for example "libc.so", or whose path
 * is `name`. Returns false if the program has not loaded it: errno is 0. Otherwise errno is the
 * reason: EINVAL if the link map and the mappings contradict each other, EAGAIN while the loader is
 * changing them, ENOENT if there is no link map, or an error of reading the process.
 */
bool image_find(struct image *image, pid_t pid, const char *name);

/* Whether the program is statically linked. */
bool image_is_static(pid_t pid);

/* Returns the address of a symbol that the module defines; 0: none. */
uint64_t image_symbol(const struct image *image, const char *name);

/* Returns the address of a byte sequence in the module's code; 0: none. */
uint64_t image_bytes(const struct image *image, const void *bytes, size_t size);

/* Code to execute, with its first bytes, because the process may be running another program by
 * then. */
struct image_code {
    uint64_t address; /* 0: none */
    uint8_t bytes[16];
};

/*
 * Opens the module's file, after checking that its headers and build ID match those in memory.
 * Returns a descriptor, which the caller closes, or -1 with *err.
 */
int image_file(const struct image *image, trail_error *err);

/*
 * Reads the code at `address` (0: none) from the file. Returns false with *err if it differs from
 * the code in memory.
 */
bool image_code(const struct image *image, int file, uint64_t address, struct image_code *code,
                trail_error *err);
