/*
 * Modules in the memory of another process: where they are, and the addresses of their functions, from the tables that
 * the loader uses itself. So a file that was replaced or that lies in a container need not be read.
 *
 * What is read is hostile: each number is copied, checked, and used.
 */
#ifndef TRAIL_ATTACH_IMAGE_H
#define TRAIL_ATTACH_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct image {
    pid_t pid;
    uint64_t base;      /* where the file begins; 0: there is no such module */
    uint64_t code, end; /* its first executable segment */
    char path[4096];
};

/* Finds the first module whose file name begins with `name`, as "libc.so", or whose path it is. */
bool image_find(struct image *image, pid_t pid, const char *name);

/* Returns the address of a function or variable that a module defines; 0: it does not. */
uint64_t image_symbol(const struct image *image, const char *name);

/* Returns the address of bytes in the module's code; 0: they are not there. */
uint64_t image_bytes(const struct image *image, const void *bytes, size_t size);

#endif
