/*
 * libunwind, which libtrail-record loads for stacks without frame pointers, and does without where it is not installed.
 */
#ifndef TRAIL_HOST_LIBUNWIND_H
#define TRAIL_HOST_LIBUNWIND_H

#define LIBUNWIND_FILE "libunwind.so.8"

#endif
