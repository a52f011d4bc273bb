/*
 * What trail --version prints: the version, the commit, and the libraries found at run time.
 */
#pragma once

/* Ends with '+' if the source differed from the commit; "unknown" if the build could not determine
 * it. Defined in a file that the build generates. */
extern const char version_commit[];

void version_print(void);
