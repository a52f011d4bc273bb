/*
 * Runs: analyses of the trace as child processes that run the command itself, so that the page
 * shows the same results as the command line.
 *
 * command_line.h defines what may be run. At most two run at a time. A child is killed when its
 * client has disconnected, or when its time or output exceeds a limit. The most recent answers are
 * cached, and a request for an answer that is being computed waits for it. As soon as the file of a
 * large trace is complete, the panels' first requests are computed with low priority.
 */
#pragma once

#include "serve/command_line.h"
#include "serve/exchange.h"
#include "serve/shelf.h"

struct runs;

/*
 * The intakes, the shelf and the texts of `passed` must outlive the runs. `other` is the trace to
 * compare with, or NULL; `shelf` is where answers are kept, or NULL. Returns NULL if out of memory.
 */
struct runs *runs_open(const struct intake *intake, const struct intake *other,
                       const struct shelf *shelf, const struct command_passed *passed);

/* Kills running children and starts no more. Called before the server stops. Accepts NULL. */
void runs_stop(struct runs *runs);

/* Called after runs_stop, when no more requests can come. Accepts NULL. */
void runs_close(struct runs *runs);

/*
 * Whether the file is complete, and whether DuckDB is available (false until a first query has
 * succeeded).
 */
bool runs_can_run(const struct runs *runs);
bool runs_can_sql(const struct runs *runs);

/* Whether a file that the runs read has changed since it was opened. */
bool runs_are_stale(const struct runs *runs);

/* Answer /api/run, /api/sql and /api/embed; `title` is the document's. */
void runs_answer_command(struct runs *runs, struct exchange *exchange);
void runs_answer_sql(struct runs *runs, struct exchange *exchange);
void runs_answer_embed(struct runs *runs, struct exchange *exchange, const char *title);
