/* Folders of the user's own in which a command keeps what it computed, for the next time. */
#pragma once

/*
 * Opens the folder `name` of trail's cache, which is created. Sets *folder. Returns EXIT_GOOD, or
 * EXIT_INOUT after a message.
 */
int cache_folder_open(const char *name, int *folder);

/*
 * Removes the files that were not used for 30 days, by their modification time, which each use
 * sets. Closes the folder.
 */
void cache_folder_close(int folder);
