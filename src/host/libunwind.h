/* libunwind, which libtrail-record loads for stacks without frame pointers if it is installed. */
#ifndef TRAIL_HOST_LIBUNWIND_H
#define TRAIL_HOST_LIBUNWIND_H

#define LIBUNWIND_FILE "libunwind.so.8"

#endif
