/* The readers of the input formats. Each reads a source to its end into the model. */
#pragma once

#include "import/model.h"

/*
 * Return 0, or -1 with *err for an error of the source or if out of memory. What they do not
 * understand is counted in the model's stats.
 */
typedef int import_reader(trail_source *source, struct import_model *model, trail_error *err);

import_reader import_sched_text; /* perf script, ftrace, trace-cmd report */
import_reader import_ctf_text;   /* babeltrace2, of LTTng's kernel events */
import_reader import_perfetto; /* protocol buffers; events are unordered, so the window holds all */

/* Whether the first bytes of a source are those of Perfetto's protocol buffers. */
bool import_is_perfetto(const void *begin, size_t size);
