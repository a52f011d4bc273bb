/*
 * What trail --version prints: the version, the commit, and what trail finds of that which it loads at run time.
 */
#ifndef TRAIL_COMMANDS_VERSION_H
#define TRAIL_COMMANDS_VERSION_H

/* With '+' where the source differed from it; "unknown" where the build could not know. The build makes its file. */
extern const char version_commit[];

void version_print(void);

#endif
