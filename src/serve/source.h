/*
 * The source around a frame: some lines of a file that a frame of the trace names, looked up below a
 * folder that the user has named.
 *
 * A trace is hostile, and so may be who asks. Read is only what some frame names, what is below the folder
 * also when all links have been followed, and is a regular file of a few megabytes at most.
 */
#ifndef TRAIL_SERVE_SOURCE_H
#define TRAIL_SERVE_SOURCE_H

#include "serve/model.h"
#include "serve/question.h"

/* /api/source. `folder` NULL: nothing is to be read. */
void source_answer(struct question *question, struct model *model, const char *folder);

#endif
