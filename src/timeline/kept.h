/*
 * Kept lanes: the lanes of a whole trace in a file, so that it need not be read again. All chunks
 * are written to it while the trace is read, and all else at the end.
 *
 *     blocks of the store | the rest, in pieces (kept.c) | struct kept_end
 *
 * Only the build that wrote a file can read it. Only its user can write to its folder, so that the
 * rest is checked, but not the bytes of chunks.
 */
#pragma once

#include <trail/lanes.h>

/*
 * As trail_lanes_open, with a file without a name in the folder. NULL if no file can be made there,
 * or out of memory.
 */
trail_lanes *kept_open(trail_reader *reader, int folder);

/*
 * Completes the file: nothing may be fed to the lanes afterwards. `own` are the caller's bytes.
 * Returns false if it cannot be written; the lanes are as good as before.
 */
bool kept_finish(trail_lanes *lanes, const void *own, size_t own_size);

/*
 * Gives a complete file a name in the folder, which replaces an older one, once all of it is on
 * disk. Other threads may read the lanes meanwhile.
 */
bool kept_name(const trail_lanes *lanes, int folder, const char *name);

/* Returns the lanes in a file, and fills `own`; NULL if it is not such a file. */
trail_lanes *kept_read(int fd, void *own, size_t own_size);
