/*
 * Names of functions as places show them: without result, parameters, and what is inside the arguments of templates.
 *
 *     void std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >(std::chrono::...)
 *     std::this_thread::sleep_for<long, ratio<...>>
 *
 * Names of C and Go stay as they are.
 */
#ifndef TRAIL_WORDS_FUNCTION_NAME_H
#define TRAIL_WORDS_FUNCTION_NAME_H

#include <trail/read.h>

enum { FUNCTION_NAME_SIZE = 320 };

/* The short form: `name` itself, or text in `buf` of FUNCTION_NAME_SIZE, cut where it is longer. */
trail_string function_name_short(trail_string name, char *buf);

#endif
