/* libunwind, which libtrail-record loads for stacks without frame pointers if it is installed. */
#pragma once

#define LIBUNWIND_FILE "libunwind.so.8"
