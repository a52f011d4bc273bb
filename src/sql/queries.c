/* The named queries and the macros. */
#include "sql/queries.h"

#include <string.h>

#include "ui/options.h"

/* clang-format off */
const struct sql_named sql_queries[] = {
    {"findings", "what is wrong in each trace, largest gain first",
     "SELECT file, kind, gain_ns, function, object, text FROM findings\n"
     "ORDER BY is_note, gain_ns DESC, file, finding"},
    {"kinds", "how many events of each kind and type there are",
     "SELECT file, kind, type, count(*) AS events FROM events GROUP BY ALL ORDER BY file, events DESC, kind, type"},
    {"states", "where the goroutines' time went, by state and reason",
     "SELECT file, state, reason, count(*) AS times, sum(duration_ns) AS total_ns,\n"
     "       quantile_disc(duration_ns, 0.5) AS p50_ns, quantile_disc(duration_ns, 0.99) AS p99_ns,\n"
     "       max(duration_ns) AS max_ns\n"
     "FROM states GROUP BY ALL ORDER BY file, total_ns DESC, state, reason"},
    {"groups", "goroutines by start function",
     "SELECT file, name, count(*) AS goroutines, sum(exec_ns) AS exec_ns, sum(sched_wait_ns) AS sched_wait_ns,\n"
     "       sum(block_ns) AS block_ns, sum(syscall_ns + syscall_block_ns) AS syscall_ns\n"
     "FROM goroutines GROUP BY file, name ORDER BY file, exec_ns DESC, name"},
    /* Finds the 20 longest first: a join of all states with others would hold one side in
     * memory. */
    {"long-waits", "the 20 longest waits that ended: goroutine, reason, place and waker",
     "WITH longest AS (\n"
     "    SELECT * FROM states WHERE state = 'Waiting' AND has_end ORDER BY duration_ns DESC, file, begin_ns LIMIT 20)\n"
     "SELECT s.file, s.goroutine, g.name, s.reason, since_start(s.begin_ns, s.file) AS since_start, s.duration_ns,\n"
     "       k.function AS waits_in, s.waker, w.function AS woken_in\n"
     "FROM longest s JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN stacks k ON k.file = s.file AND k.stack = s.stack\n"
     "LEFT JOIN stacks w ON w.file = s.file AND w.stack = s.waker_stack\n"
     "ORDER BY s.duration_ns DESC, s.file, s.begin_ns"},
    {"wait-places", "where goroutines wait: time by reason and function",
     "SELECT s.file, s.reason, k.function, count(*) AS waits, sum(s.duration_ns) AS total_ns, max(s.duration_ns) AS max_ns\n"
     "FROM states s LEFT JOIN stacks k USING (file, stack)\n"
     "WHERE s.state = 'Waiting' GROUP BY ALL ORDER BY total_ns DESC, s.file, s.reason, k.function LIMIT 30"},
    {"sched-latency", "the 20 longest times from ready to running, with the waker and its place",
     "WITH longest AS (\n"
     "    SELECT * FROM states WHERE state = 'Runnable' AND has_end ORDER BY duration_ns DESC, file, begin_ns LIMIT 20),\n"
     "before AS (\n"
     "    SELECT * FROM states\n"
     "    WHERE state = 'Waiting' AND (file, goroutine, end_ns) IN (SELECT file, goroutine, begin_ns FROM longest))\n"
     "SELECT s.file, s.goroutine, g.name, since_start(s.begin_ns, s.file) AS since_start, s.duration_ns,\n"
     "       before.waker, k.function AS woken_in\n"
     "FROM longest s JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN before ON before.file = s.file AND before.goroutine = s.goroutine AND before.end_ns = s.begin_ns\n"
     "LEFT JOIN stacks k ON k.file = s.file AND k.stack = before.waker_stack\n"
     "ORDER BY s.duration_ns DESC, s.file, s.begin_ns"},
    {"wakers", "wake-ups by the start functions of waker and woken goroutine",
     /* Outer joins are done in the order written. DuckDB may reorder inner joins and join the two
      * goroutines by file first, all with all. */
     "SELECT s.file, w.name AS waker, g.name AS woken, s.reason, count(*) AS times, sum(s.duration_ns) AS waited_ns\n"
     "FROM states s LEFT JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN goroutines w ON w.file = s.file AND w.goroutine = s.waker\n"
     "WHERE s.waker IS NOT NULL\n"
     "GROUP BY ALL ORDER BY times DESC, waited_ns DESC, s.file, waker, woken, s.reason LIMIT 30"},
    {"syscalls", "system calls by the function that made them",
     "SELECT s.file, k.function, count(*) AS calls, sum(s.duration_ns) AS total_ns, max(s.duration_ns) AS max_ns\n"
     "FROM states s LEFT JOIN stacks k USING (file, stack)\n"
     "WHERE s.state = 'Syscall' GROUP BY ALL ORDER BY total_ns DESC, s.file, k.function LIMIT 30"},
    {"cpu", "CPU samples by the innermost function",
     "SELECT s.file, k.leaf, count(*) AS samples,\n"
     "       round(100.0 * count(*) / sum(count(*)) OVER (PARTITION BY s.file), 1) AS percent\n"
     "FROM samples s LEFT JOIN stacks k USING (file, stack)\n"
     "GROUP BY s.file, k.leaf ORDER BY samples DESC, s.file, k.leaf LIMIT 30"},
    {"procs", "how long each P ran goroutines",
     "SELECT file, proc, count(*) AS runs, sum(duration_ns) AS running_ns\n"
     "FROM states WHERE state = 'Running' AND proc IS NOT NULL GROUP BY file, proc ORDER BY file, proc"},
    {"heap", "memory in use over time, in 50 intervals",
     "WITH heap AS (SELECT file, time_ns, value FROM events WHERE name = '/memory/classes/heap/objects:bytes'),\n"
     "     span AS (SELECT file, min(time_ns) AS first, greatest(max(time_ns) - min(time_ns), 1) AS length\n"
     "             FROM heap GROUP BY file)\n"
     "SELECT file, (time_ns - first) * 50 // (length + 1) AS piece, min(time_ns) AS time_ns, min(value) AS least,\n"
     "       max(value) AS most\n"
     "FROM heap JOIN span USING (file) GROUP BY file, piece ORDER BY file, piece"},
    {"pauses", "each stop-the-world pause",
     "SELECT file, since_start(begin_ns, file) AS since_start, duration_ns, id AS goroutine, name FROM ranges\n"
     "WHERE starts_with(name, 'stop-the-world') AND begin_ns IS NOT NULL AND end_ns IS NOT NULL ORDER BY file, begin_ns"},
    {"tasks", "user tasks by type, and how long they took",
     "SELECT file, name, count(*) AS tasks, count(duration_ns) AS whole, quantile_disc(duration_ns, 0.5) AS p50_ns,\n"
     "       quantile_disc(duration_ns, 0.99) AS p99_ns, max(duration_ns) AS max_ns\n"
     "FROM tasks GROUP BY file, name ORDER BY file, tasks DESC, name"},
    {"regions", "user regions by name, and where the time in them went",
     "SELECT file, name, count(*) AS regions, sum(total_ns) AS total_ns, sum(exec_ns) AS exec_ns,\n"
     "       sum(sched_wait_ns) AS sched_wait_ns, sum(block_ns) AS block_ns, max(total_ns) AS max_ns\n"
     "FROM regions GROUP BY file, name ORDER BY file, total_ns DESC, name"},
    {"leaks", "goroutines that wait at the end, by start function and place",
     "SELECT s.file, g.name, s.reason, k.function AS waits_in, count(*) AS goroutines, max(s.duration_ns) AS longest_ns\n"
     "FROM states s JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN stacks k ON k.file = s.file AND k.stack = s.stack\n"
     "WHERE s.state = 'Waiting' AND NOT s.has_end\n"
     "GROUP BY ALL ORDER BY goroutines DESC, longest_ns DESC, s.file, g.name, s.reason LIMIT 30"},
    {"traces", "the traces: when they began, how long they are, what made them, of which program, and whether they are damaged",
     "SELECT file, host, make_timestamp_ns(wall_begin_ns) AS wall_begin, duration_ns, events, version, made_by,\n"
     "       program, is_damaged, lost_bytes\n"
     "FROM traces ORDER BY file"},
    {"processes", "recordings of C programs: the processes, and where the time of their threads went",
     "SELECT file, pid, name, threads, end_ns - begin_ns AS lived_ns, exec_ns, sched_wait_ns, block_ns, syscall_ns\n"
     "FROM processes ORDER BY file, exec_ns DESC, pid"},
    {"holders", "recordings of C programs: which threads held which locks, and where they took them",
     "SELECT h.file, h.object, g.name, k.function AS taken_in, count(*) AS holds, sum(h.held_ns) AS held_ns,\n"
     "       max(h.held_ns) AS max_ns\n"
     "FROM holds h LEFT JOIN goroutines g USING (file, goroutine)\n"
     "LEFT JOIN stacks k ON k.file = h.file AND k.stack = h.stack\n"
     "GROUP BY ALL ORDER BY held_ns DESC, h.file, h.object, g.name, taken_in LIMIT 30"},
    {"gc", "garbage collection: mark phases, pauses, assists and sweeps, and how much time they took",
     "SELECT file, name, count(*) AS times, sum(duration_ns) AS total_ns, max(duration_ns) AS max_ns\n"
     "FROM ranges GROUP BY file, name ORDER BY file, total_ns DESC, name"},
    {"logs", "what the program logged most, by category",
     "SELECT file, category, count(*) AS logs, count(DISTINCT goroutine) AS goroutines, any_value(message ORDER BY time_ns) AS first\n"
     "FROM logs GROUP BY file, category ORDER BY logs DESC, file, category LIMIT 30"},
    {NULL, NULL, NULL},
};

/* A macro with the file as its last argument, and one without, whose definition is `alone`: over
 * the only trace, or an error. */
#define MACRO(name, of, alone, in_file) \
    "CREATE MACRO " name "(" of ") AS " alone ", (" of ", of_file) AS " in_file ";"
#define NO_FILE(name, of) \
    "error('" name "(" of ") does not say of which trace, and there are several: " name "(" of ", file)')"

/*
 * The functions of a stack as one text. Arguments are pasted into the text of the macro, where an
 * alias of the macro would hide one of the query; so the macro's aliases have names that no query
 * uses.
 */
#define FUNCTIONS_OF(order, between, and_file)                                                       \
    "(SELECT array_to_string(list(coalesce(trail_f.function, '?') ORDER BY trail_f.frame " order "), '" \
    between "') FROM frames trail_f WHERE trail_f.stack = number" and_file ")"
#define IN_FILE              " AND trail_f.file = of_file"
#define STACK(and_file)      FUNCTIONS_OF("ASC", " < ", and_file)
#define PATH(and_file)       FUNCTIONS_OF("DESC", ";", and_file)
#define SINCE_START(in_file) "(time_ns - (SELECT min(trail_b.ns) FROM trail_begins trail_b" in_file ")) || 'ns'"
#define OF_FILE              " WHERE trail_b.file = of_file"

#define WALL(in_file)        "(time_ns + (SELECT min(trail_t.wall_begin_ns - trail_t.begin_ns) FROM traces trail_t" in_file "))"
#define WALL_FILE            " WHERE trail_t.file = of_file"

/*
 * Fields of a log in logfmt, status=200 ms=1.5 path="/": an integer, any number, any value as text.
 * Only fields may precede a field, so that no text in quotes or prose counts as one.
 */
#define VALUE "(\"(?:[^\"\\\\]|\\\\.)*\"|[^\\s\"]*)"
#define RAW \
    "regexp_extract(message, '^(?:[^\\s\"=]+=" VALUE " )*?' || regexp_escape(name) || '=" VALUE "(?: |$)', 2)"
#define UNQUOTED \
    "replace(replace(replace(replace(replace(replace(trail_raw(message, name)[2:-2], '\\\\', chr(1)), '\\\"', '\"'), " \
    "'\\n', chr(10)), '\\r', chr(13)), '\\t', chr(9)), chr(1), '\\')"
#define FIELDS \
    "CREATE MACRO trail_raw(message, name) AS " RAW ";" \
    "CREATE MACRO int_field(message, name) AS " \
    "TRY_CAST(regexp_extract(trail_raw(message, name), '^-?[0-9]+$') AS BIGINT);" \
    "CREATE MACRO double_field(message, name) AS TRY_CAST(trail_raw(message, name) AS DOUBLE);" \
    "CREATE MACRO text_field(message, name) AS CASE WHEN starts_with(trail_raw(message, name), '\"') " \
    "THEN " UNQUOTED " ELSE nullif(trail_raw(message, name), '') END;"

const char *sql_macros(bool several)
{
    return several ? FIELDS MACRO("wall_ns", "time_ns", NO_FILE("wall_ns", "time_ns"), WALL(WALL_FILE))
                     MACRO("stack", "number", NO_FILE("stack", "number"), STACK(IN_FILE))
                     MACRO("path", "number", NO_FILE("path", "number"), PATH(IN_FILE))
                   : FIELDS MACRO("wall_ns", "time_ns", WALL(""), WALL(WALL_FILE))
                     MACRO("stack", "number", STACK(""), STACK(IN_FILE))
                     MACRO("path", "number", PATH(""), PATH(IN_FILE));
}

const char *sql_macro_since_start(bool several)
{
    return several ? MACRO("since_start", "time_ns", NO_FILE("since_start", "time_ns"), SINCE_START(OF_FILE))
                   : MACRO("since_start", "time_ns", SINCE_START(""), SINCE_START(OF_FILE));
}
/* clang-format on */

const struct sql_named *sql_named_find(const struct sql_named *rows, const char *name)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

const struct sql_named *sql_query_find(const char *name)
{
    return sql_named_find(sql_queries, name);
}

const char *sql_query_near(const char *name)
{
    const char *names[sizeof sql_queries / sizeof *sql_queries] = {0};
    for (int i = 0; sql_queries[i].name; i++)
        names[i] = sql_queries[i].name;
    return nearest_word(name, names);
}
