/*
 * Mapped files that other processes may truncate: the area of --attach-shm, and the programs' files
 * that libelf reads. The kernel sends SIGBUS for an access beyond the end of the file (mmap(2)).
 * The handler replaces such a page with zeros, which readers check like any other input, and counts
 * it.
 */
#pragma once

#include <stdint.h>

/* Installs the signal handler for the whole process. */
void mapped_files_guard(void);

/* Returns the number of pages replaced so far. */
uint64_t mapped_files_cut(void);
