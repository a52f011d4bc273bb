/*
 * The source around a frame: lines of a file that a frame of the trace names, looked up below a
 * folder that the user has chosen.
 *
 * Neither the trace nor the client is trusted. A file is read only if a frame names it, if it is
 * below the folder after all links are resolved, and if it is a regular file of at most 4 MiB.
 */
#pragma once

#include "serve/exchange.h"
#include "serve/model.h"

/* Answers /api/source. `folder` NULL: no source is shown. */
void source_answer(struct exchange *exchange, struct model *model, const char *folder);
