/*
 * Names of functions as shown in places: without the result, parameters, and nested template
 * arguments.
 *
 *     void std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >(std::chrono::...)
 *     std::this_thread::sleep_for<long, ratio<...>>
 *
 * C and Go names are unchanged, and so is the process before a thread's name: "writer (4711):
 * flush".
 */
#pragma once

#include <stdbool.h>

#include <trail/read.h>

enum { FUNCTION_NAME_SIZE = 320 };

/* Returns the short form: `name` itself, or text in `buf` of FUNCTION_NAME_SIZE bytes, truncated if
 * longer. */
trail_string function_name_short(trail_string name, char *buf);

/* Whether the name says that the function takes or releases a lock: "fx_lock", "Mutex::unlock",
 * "RwLock::write"; not "block", "clock" or "is_locked". */
bool function_name_is_of_lock(trail_string function);
