/*
 * Opens files whose paths come from traces, programs and other users: only regular files, because
 * opening a device may have side effects, and opening a FIFO or a file with a lease waits.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/*
 * Opens a file for reading if it is regular and `allowed` (NULL: any) accepts it; never blocks.
 * Sets *status. Returns a descriptor, or -1 with errno set; EACCES: not regular or not allowed.
 */
int regular_file_open(const char *path, bool (*allowed)(const struct stat *status),
                      struct stat *status);

/* Raises the soft limit of open files to the hard one, for a descriptor of each of many things. */
void regular_files_allow_many(void);
