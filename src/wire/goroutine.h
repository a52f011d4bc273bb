/*
 * The line that describes a goroutine where the format has no event for that: a string that no
 * event refers to, so that other readers ignore it. Read only in traces of hosts (maker.h).
 *
 *     trail.goroutine TAB id=7 [TAB change=2] [TAB stack=12] [TAB kind=timer] [TAB name=accept
 * loop]
 *
 * Numbers are decimal. `change` counts the goroutine's names and kinds; of several lines in a
 * generation, the one with the highest applies. `stack` is the ID of the stack of its start
 * function (format 22, whose GoStatus has none). Texts have no control characters.
 */
#pragma once

#include <stdint.h>

/*
 * trail record gives the frame of a thread that has a name of its own no file, and a PC from this
 * number on, where no code can be.
 */
#define GOROUTINE_NAMED_PC (UINT64_C(1) << 48)

#define GOROUTINE_PREFIX "trail.goroutine\t"
#define GOROUTINE_ID     "id="
#define GOROUTINE_CHANGE "change="
#define GOROUTINE_STACK  "stack="
#define GOROUTINE_KIND   "kind="
#define GOROUTINE_NAME   "name="
