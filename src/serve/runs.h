/*
 * Runs: analyses of the trace by the command itself, as child processes, so that the page shows what
 * the command line shows.
 *
 * What may be asked for is command_line.h's. At most two run at a time; a child is killed when nobody
 * waits for it any more, when it takes too long, or when it says too much. The last few answers are
 * kept.
 */
#ifndef TRAIL_SERVE_RUNS_H
#define TRAIL_SERVE_RUNS_H

#include "serve/intake.h"
#include "serve/question.h"

struct runs;

/*
 * `program` is the command; it and the intakes must outlive the runs. `other` is the trace that this
 * one is compared with; NULL: there is none. NULL when memory is out.
 */
struct runs *runs_open(const char *program, const struct intake *intake,
                       const struct intake *other);

/* Kills what runs, and lets nothing else begin: before the server is stopped. Accepts NULL. */
void runs_stop(struct runs *runs);

/* After runs_stop, and when nobody asks any more. Accepts NULL. */
void runs_close(struct runs *runs);

/* Whether the file is complete, and whether DuckDB is there, which becomes known a little later. */
bool runs_can_run(const struct runs *runs);
bool runs_can_sql(const struct runs *runs);

/* /api/run and /api/sql. */
void runs_answer_command(struct runs *runs, struct question *question);
void runs_answer_sql(struct runs *runs, struct question *question);

#endif
