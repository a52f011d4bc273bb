/* The named queries and the macros. */
#include "sql/queries.h"

#include <string.h>

#include "ui/options.h"

/* clang-format off */
const struct sql_named sql_queries[] = {
    {"kinds", "how many events of each kind and type there are",
     "SELECT kind, type, count(*) AS events FROM events GROUP BY ALL ORDER BY events DESC, kind, type"},
    {"states", "where the goroutines' time went, by state and reason",
     "SELECT state, reason, count(*) AS times, sum(duration_ns) AS total_ns,\n"
     "       quantile_disc(duration_ns, 0.5) AS p50_ns, quantile_disc(duration_ns, 0.99) AS p99_ns,\n"
     "       max(duration_ns) AS max_ns\n"
     "FROM states GROUP BY ALL ORDER BY total_ns DESC, state, reason"},
    {"groups", "goroutines by start function",
     "SELECT name, count(*) AS goroutines, sum(exec_ns) AS exec_ns, sum(sched_wait_ns) AS sched_wait_ns,\n"
     "       sum(block_ns) AS block_ns, sum(syscall_ns + syscall_block_ns) AS syscall_ns\n"
     "FROM goroutines GROUP BY name ORDER BY exec_ns DESC, name"},
    /* Of the 20 longest, the 20 are found first: a join of all states with others holds one side in memory. */
    {"long-waits", "the 20 longest waits that ended: goroutine, reason, place and waker",
     "WITH longest AS (\n"
     "    SELECT * FROM states WHERE state = 'Waiting' AND has_end ORDER BY duration_ns DESC, begin_ns LIMIT 20)\n"
     "SELECT s.goroutine, g.name, s.reason, since_start(s.begin_ns, s.file) AS since_start, s.duration_ns,\n"
     "       k.function AS waits_in, s.waker, w.function AS woken_in\n"
     "FROM longest s JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN stacks k ON k.file = s.file AND k.stack = s.stack\n"
     "LEFT JOIN stacks w ON w.file = s.file AND w.stack = s.waker_stack\n"
     "ORDER BY s.duration_ns DESC, s.begin_ns"},
    {"wait-places", "where goroutines wait: time by reason and function",
     "SELECT s.reason, k.function, count(*) AS waits, sum(s.duration_ns) AS total_ns, max(s.duration_ns) AS max_ns\n"
     "FROM states s LEFT JOIN stacks k USING (file, stack)\n"
     "WHERE s.state = 'Waiting' GROUP BY ALL ORDER BY total_ns DESC, s.reason, k.function LIMIT 30"},
    {"sched-latency", "the 20 longest times from ready to running, with the waker and its place",
     "WITH longest AS (\n"
     "    SELECT * FROM states WHERE state = 'Runnable' AND has_end ORDER BY duration_ns DESC, begin_ns LIMIT 20),\n"
     "before AS (\n"
     "    SELECT * FROM states\n"
     "    WHERE state = 'Waiting' AND (file, goroutine, end_ns) IN (SELECT file, goroutine, begin_ns FROM longest))\n"
     "SELECT s.goroutine, g.name, since_start(s.begin_ns, s.file) AS since_start, s.duration_ns,\n"
     "       before.waker, k.function AS woken_in\n"
     "FROM longest s JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN before ON before.file = s.file AND before.goroutine = s.goroutine AND before.end_ns = s.begin_ns\n"
     "LEFT JOIN stacks k ON k.file = s.file AND k.stack = before.waker_stack\n"
     "ORDER BY s.duration_ns DESC, s.begin_ns"},
    {"wakers", "wake-ups by the start functions of waker and woken goroutine",
     /* Outer joins are done in their order. Of inner ones DuckDB may join the two goroutines by file first:
        all of them with all. */
     "SELECT w.name AS waker, g.name AS woken, s.reason, count(*) AS times, sum(s.duration_ns) AS waited_ns\n"
     "FROM states s LEFT JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN goroutines w ON w.file = s.file AND w.goroutine = s.waker\n"
     "WHERE s.waker IS NOT NULL\n"
     "GROUP BY ALL ORDER BY times DESC, waited_ns DESC LIMIT 30"},
    {"syscalls", "system calls by the function that made them",
     "SELECT k.function, count(*) AS calls, sum(s.duration_ns) AS total_ns, max(s.duration_ns) AS max_ns\n"
     "FROM states s LEFT JOIN stacks k USING (file, stack)\n"
     "WHERE s.state = 'Syscall' GROUP BY ALL ORDER BY total_ns DESC, k.function LIMIT 30"},
    {"cpu", "CPU samples by the innermost function",
     "SELECT k.leaf, count(*) AS samples, round(100.0 * count(*) / sum(count(*)) OVER (), 1) AS percent\n"
     "FROM samples s LEFT JOIN stacks k USING (file, stack)\n"
     "GROUP BY k.leaf ORDER BY samples DESC, k.leaf LIMIT 30"},
    {"procs", "how long each P ran goroutines",
     "SELECT proc, count(*) AS runs, sum(duration_ns) AS running_ns\n"
     "FROM states WHERE state = 'Running' AND proc IS NOT NULL GROUP BY proc ORDER BY proc"},
    {"heap", "memory in use over time, in 50 intervals",
     "WITH heap AS (SELECT time_ns, value FROM events WHERE name = '/memory/classes/heap/objects:bytes'),\n"
     "     span AS (SELECT min(time_ns) AS first, greatest(max(time_ns) - min(time_ns), 1) AS length FROM heap)\n"
     "SELECT (time_ns - first) * 50 // (length + 1) AS piece, min(time_ns) AS time_ns, min(value) AS least,\n"
     "       max(value) AS most\n"
     "FROM heap, span GROUP BY piece ORDER BY piece"},
    {"pauses", "each stop-the-world pause",
     "WITH stops AS (\n"
     "    SELECT file, id, kind, name, time_ns AS begin_ns,\n"
     "           lead(time_ns) OVER (PARTITION BY file, id ORDER BY time_ns) AS end_ns\n"
     "    FROM events WHERE kind IN ('RangeBegin', 'RangeActive', 'RangeEnd') AND starts_with(name, 'stop-the-world'))\n"
     "SELECT since_start(begin_ns, file) AS since_start, end_ns - begin_ns AS duration_ns, id AS goroutine, name\n"
     "FROM stops WHERE kind = 'RangeBegin' AND end_ns IS NOT NULL ORDER BY begin_ns"},
    {"tasks", "user tasks by type, and how long they took",
     "SELECT name, count(*) AS tasks, count(duration_ns) AS whole, quantile_disc(duration_ns, 0.5) AS p50_ns,\n"
     "       quantile_disc(duration_ns, 0.99) AS p99_ns, max(duration_ns) AS max_ns\n"
     "FROM tasks GROUP BY name ORDER BY tasks DESC, name"},
    {"regions", "user regions by name, and where the time in them went",
     "SELECT name, count(*) AS regions, sum(total_ns) AS total_ns, sum(exec_ns) AS exec_ns,\n"
     "       sum(sched_wait_ns) AS sched_wait_ns, sum(block_ns) AS block_ns, max(total_ns) AS max_ns\n"
     "FROM regions GROUP BY name ORDER BY total_ns DESC, name"},
    {"leaks", "goroutines that wait at the end, by start function and place",
     "SELECT g.name, s.reason, k.function AS waits_in, count(*) AS goroutines, max(s.duration_ns) AS longest_ns\n"
     "FROM states s JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN stacks k ON k.file = s.file AND k.stack = s.stack\n"
     "WHERE s.state = 'Waiting' AND NOT s.has_end\n"
     "GROUP BY ALL ORDER BY goroutines DESC, longest_ns DESC LIMIT 30"},
    {NULL, NULL, NULL},
};

/* The functions of a stack in one text. With one argument for queries over one trace. */
#define FUNCTIONS_OF(order, between, condition)                                                      \
    "(SELECT array_to_string(list(coalesce(k.function, '?') ORDER BY k.frame " order "), '" between  \
    "') FROM frames k WHERE " condition ")"
#define STACK_MACRO(name, order, between)                                                            \
    "CREATE MACRO " name "(id) AS " FUNCTIONS_OF(order, between, "k.stack = id")                     \
    ", (id, of_file) AS " FUNCTIONS_OF(order, between, "k.stack = id AND k.file = of_file") ";"

const char sql_macros[] = STACK_MACRO("stack", "ASC", " < ") STACK_MACRO("path", "DESC", ";");

const char sql_macro_since_start[] =
    "CREATE MACRO since_start(t) AS (t - (SELECT min(ns) FROM trail_begins)) || 'ns',\n"
    "(t, of_file) AS (t - (SELECT min(ns) FROM trail_begins b WHERE b.file = of_file)) || 'ns';";
/* clang-format on */

const struct sql_named *sql_query_find(const char *name)
{
    for (const struct sql_named *query = sql_queries; query->name; query++)
        if (strcmp(query->name, name) == 0)
            return query;
    return NULL;
}

const char *sql_query_near(const char *name)
{
    const char *names[sizeof sql_queries / sizeof *sql_queries] = {0};
    for (int i = 0; sql_queries[i].name; i++)
        names[i] = sql_queries[i].name;
    return nearest_word(name, names);
}
