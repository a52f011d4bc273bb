/* Temporary files: what is too large for memory, for as long as the process needs it. */
#pragma once

/*
 * Opens a file without a name, which disappears with its last descriptor and mapping: in TMPDIR,
 * else in /var/tmp, since /tmp may be memory, else in /tmp. Returns the descriptor; -1 if none can
 * be made.
 */
int temporary_file(void);
