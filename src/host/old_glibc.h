/*
 * Included before every file of the libraries that are loaded into programs if they are to be
 * loaded on old systems (the option `portable`). Functions that glibc has renamed since
 * version 2.17 are used as that version has them; tools/old-libraries does this for those that
 * moved to libc. Newer ones are found at run time by old_glibc.c, because a reference, even a weak
 * one, would make the loader require their version.
 */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <sys/rseq.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>

/* The same under another name, since 2.28 and 2.38. */
#ifdef TRAIL_HAS_NO_FCNTL
__asm__(".symver fcntl64,fcntl@GLIBC_2.2.5");
#endif
__asm__(".symver __isoc23_sscanf,__isoc99_sscanf@GLIBC_2.7");
__asm__(".symver __isoc23_strtol,strtol@GLIBC_2.2.5");
__asm__(".symver __isoc23_strtoul,strtoul@GLIBC_2.2.5");

/* Since 2.33; before, they were inline functions that called these. */
__asm__(".symver __fxstat,__fxstat@GLIBC_2.2.5");
__asm__(".symver __xstat,__xstat@GLIBC_2.2.5");
int __fxstat(int version, int fd, struct stat *status);
int __xstat(int version, const char *path, struct stat *status);
#define fstat(fd, status)  __fxstat(1, fd, status)
#define stat(path, status) __xstat(1, path, status)

/* Since 2.32 and 2.35. Until they are found, and where they do not exist: false, 0 and NULL. */
struct newer_glibc {
    const char *single_threaded;
    const ptrdiff_t *rseq_offset;
    const unsigned *rseq_size;
    int (*find_object)(void *address, struct dl_find_object *found);
};
extern struct newer_glibc newer_glibc __attribute__((visibility("hidden")));
#define __libc_single_threaded (*newer_glibc.single_threaded)
#define __rseq_offset          (*newer_glibc.rseq_offset)
#define __rseq_size            (*newer_glibc.rseq_size)
#define _dl_find_object        (newer_glibc.find_object)
