/*
 * Files that are mapped while others may cut them: the area of --attach-shm, and the programs' files that libelf reads. The
 * kernel sends SIGBUS where a mapping goes on behind the end of its file (mmap(2)). Here such a page becomes one of
 * zeros, which those that read it check as anything else, and is counted.
 */
#ifndef TRAIL_COLLECT_MAPPED_FILES_H
#define TRAIL_COLLECT_MAPPED_FILES_H

#include <stdint.h>

/* For all of the process, from now on: it installs a signal handler. */
void mapped_files_guard(void);

/* The pages so far. */
uint64_t mapped_files_cut(void);

#endif
