/*
 * The views over the tables: what many queries would derive from them, and Perfetto's tables with
 * the names and columns of its trace processor (prelude "slices", "thread_state" and others).
 */
#include "sql/views.h"

#include <stdio.h>

#include "ui/cli.h"

/* clang-format off */

/*
 * The threads of recordings with PID and names: "sort (4711): main" is the thread main of the
 * process sort; other names belong to the process of the first thread, whose TID is its PID. Other
 * goroutines have no PID.
 */
#define NAME_PARTS "regexp_extract(g.name, '(?s)^(.*?) ?\\((\\d{1,10})\\): (.*)$', ['process', 'pid', 'thread'])"
#define OS_THREADS \
     "(SELECT g.*, t.made_by, CASE WHEN t.made_by = 'trail record' THEN coalesce(TRY_CAST(" NAME_PARTS ".pid AS BIGINT), f.tid) END AS pid,\n" \
     "       CASE WHEN t.made_by = 'trail record' THEN nullif(" NAME_PARTS ".process, '') END AS process,\n" \
     "       CASE WHEN t.made_by = 'trail record' AND " NAME_PARTS ".pid != '' THEN " NAME_PARTS ".thread ELSE g.name END AS thread\n" \
     " FROM goroutines g JOIN traces t USING (file)\n" \
     " LEFT JOIN (SELECT file, min(thread) AS tid FROM states WHERE goroutine = 1 GROUP BY file) f USING (file))"

/* Slices belong to a track of their goroutine, or to one of their name (process_track). Numbers of
 * tracks are those of goroutines times 4, and others modulo 4, so that no two are alike. */
#define SLICES \
     "SELECT begin_ns AS ts, coalesce(end_ns - begin_ns, -1) AS dur, name, 'region' AS category, trail_of(goroutine, file) AS utid, file\n" \
     "FROM regions WHERE begin_ns IS NOT NULL\n" \
     "UNION ALL SELECT begin_ns, coalesce(duration_ns, -1), name, 'task', NULL, file FROM tasks WHERE begin_ns IS NOT NULL\n" \
     "UNION ALL SELECT begin_ns, coalesce(duration_ns, -1), name, 'range',\n" \
     "                 CASE WHEN resource = 'goroutine' THEN trail_of(id, file) END, file FROM ranges WHERE begin_ns IS NOT NULL"

const struct sql_named sql_views[] = {
    {"wakes", "wake-ups: waker, woken goroutine, when, and how long until it ran",
     "SELECT time_ns, waker, waker_stack, goroutine, waited_ns, ready_ns, reason, wait_kind, object, trace, file\n"
     "FROM (SELECT end_ns AS time_ns, waker, waker_stack, goroutine, duration_ns AS waited_ns, reason, wait_kind, object,\n"
     "             CASE WHEN lead(state) OVER later = 'Running' THEN 0\n"
     "                  WHEN lead(state) OVER later = 'Runnable' AND lead(has_end) OVER later\n"
     "                  THEN lead(duration_ns) OVER later END AS ready_ns, trace, file\n"
     "      FROM states WINDOW later AS (PARTITION BY file, goroutine ORDER BY begin_ns))\n"
     "WHERE waker IS NOT NULL"},
    {"ranges", "collections, pauses, assists, sweeps: begin and end; id is the goroutine or P, if one did it",
     "SELECT name, resource, id, CASE WHEN kind = 'RangeBegin' THEN time_ns END AS begin_ns,\n"
     "       CASE WHEN next_kind = 'RangeEnd' THEN next_ns END AS end_ns,\n"
     "       CASE WHEN next_kind = 'RangeEnd' THEN next_ns - time_ns END AS duration_ns, trace, file\n"
     "FROM (SELECT kind, name, resource, id, time_ns, lead(kind) OVER later AS next_kind,\n"
     "             lead(time_ns) OVER later AS next_ns, lag(kind) OVER later AS last_kind, trace, file\n"
     "      FROM events WHERE kind IN ('RangeBegin', 'RangeActive', 'RangeEnd')\n"
     "      WINDOW later AS (PARTITION BY file, name, resource, id ORDER BY time_ns))\n"
     /* A range that is active when a generation begins is still the same range. */
     "WHERE kind = 'RangeBegin' OR (kind = 'RangeActive' AND coalesce(last_kind, 'RangeEnd') = 'RangeEnd')"},
    {"counters", "values over time: heap, goal, GOMAXPROCS",
     "SELECT time_ns, name, value, trace, file FROM events WHERE kind = 'Metric'"},
    {"holds", "recordings of C programs: how long locks were held (to three digits; is_coarse: to a millisecond), and the holder",
     /* Another goroutine than the holder may have released it: the last digits of the holder's. */
     "SELECT end_ns, coalesce(goroutine // 1000000000 * 1000000000 + TRY_CAST(hold.taker AS BIGINT), goroutine)\n"
     "       AS goroutine,\n"
     "       hold.object, CAST(CAST(hold.length AS DOUBLE) *\n"
     "       CASE hold.unit WHEN 'ns' THEN 1 WHEN 'us' THEN 1e3 WHEN 'ms' THEN 1e6 ELSE 1e9 END AS BIGINT) AS held_ns,\n"
     "       hold.about = '~' AS is_coarse, stack, trace, file\n"
     "FROM (SELECT time_ns AS end_ns, goroutine, stack, trace, file,\n"
     "             regexp_extract(message, '^(.*) (~?)([0-9.]+)(ns|us|ms|s)(?: by ([0-9]{1,9}))?$',\n"
     "                            ['object', 'about', 'length', 'unit', 'taker']) AS hold\n"
     "      FROM logs WHERE category = 'held')\n"
     "WHERE hold.length != ''"},
    {"threads", "threads (M): when they were seen, and for how long they ran",
     "SELECT thread, min(begin_ns) AS first_ns, max(end_ns) AS last_ns,\n"
     "       coalesce(sum(duration_ns) FILTER (state = 'Running'), 0) AS running_ns,\n"
     "       coalesce(sum(duration_ns) FILTER (state = 'Syscall'), 0) AS syscall_ns,\n"
     "       count(DISTINCT goroutine) AS goroutines, trace, file\n"
     "FROM states WHERE thread IS NOT NULL GROUP BY thread, trace, file"},
    {"processes", "recordings of C programs: the processes, and where the time of their threads went; of others one without pid",
     "SELECT pid, process AS name, count(*) AS threads, min(creation_ns) AS begin_ns,\n"
     "       CASE WHEN count(end_ns) = count(*) THEN max(end_ns) END AS end_ns, sum(exec_ns) AS exec_ns,\n"
     "       sum(sched_wait_ns) AS sched_wait_ns, sum(block_ns) AS block_ns,\n"
     "       sum(syscall_ns + syscall_block_ns) AS syscall_ns, trace, file\n"
     "FROM " OS_THREADS " GROUP BY pid, process, trace, file"},
    /* As in Perfetto: utid is the goroutine, cpu the P; dur is -1 if the end is not in the trace. */
    {"thread", "Perfetto's: goroutines (threads of a C program)",
     "SELECT trail_of(g.goroutine, g.file) AS utid, i.tid, g.thread AS name, creation_ns AS start_ts, end_ns AS end_ts,\n"
     "       trail_of(coalesce(pid, 0), g.file) AS upid, g.file\n"
     "FROM " OS_THREADS " g LEFT JOIN (SELECT file, goroutine, min(thread) AS tid FROM states GROUP BY file, goroutine) i\n"
     "ON i.file = g.file AND i.goroutine = g.goroutine AND made_by IN ('trail record', 'trail import')"},
    {"process", "Perfetto's: the processes of a recording; else one per trace",
     "SELECT trail_of(coalesce(pid, 0), file) AS upid, pid, coalesce(max(name), file) AS name, file\n"
     "FROM processes GROUP BY pid, file"},
    {"process_track", "Perfetto's: the tracks of tasks and of ranges that belong to no goroutine, one for each name",
     "SELECT trail_of(row_number() OVER (PARTITION BY file ORDER BY category, name), file) * 4 + 1 AS id, name, category AS type, file\n"
     "FROM (SELECT DISTINCT name, category, file FROM (" SLICES ") WHERE utid IS NULL AND name IS NOT NULL)"},
    {"counter_track", "Perfetto's: a track for each counter",
     "SELECT trail_of(row_number() OVER (PARTITION BY file ORDER BY name), file) * 4 + 2 AS id, name, file\n"
     "FROM (SELECT DISTINCT name, file FROM counters)"},
    {"thread_state", "Perfetto's: states, R: ready, S: waiting, D: in a system call",
     "SELECT begin_ns AS ts, CASE WHEN has_end THEN duration_ns ELSE -1 END AS dur, proc AS cpu, trail_of(goroutine, file) AS utid,\n"
     "       CASE state WHEN 'Runnable' THEN 'R' WHEN 'Waiting' THEN 'S' WHEN 'Syscall' THEN 'D'\n"
     "                  ELSE CAST(state AS VARCHAR) END AS state,\n"
     "       coalesce(object, reason) AS blocked_function, trail_of(waker, file) AS waker_utid, file\n"
     "FROM states"},
    {"sched", "Perfetto's: what ran where",
     "SELECT begin_ns AS ts, CASE WHEN has_end THEN duration_ns ELSE -1 END AS dur, proc AS cpu, trail_of(goroutine, file) AS utid,\n"
     "       CASE next_state WHEN 'Runnable' THEN 'R' WHEN 'Waiting' THEN 'S' WHEN 'Syscall' THEN 'D'\n"
     "                       ELSE 'X' END AS end_state, file\n"
     "FROM states WHERE state = 'Running'"},
    {"slice", "Perfetto's: regions, tasks and ranges, each on a track of its goroutine or of its name",
     "SELECT s.ts, s.dur, coalesce(s.utid * 4, t.id) AS track_id, s.name, s.category, s.file\n"
     "FROM (" SLICES ") s LEFT JOIN process_track t ON s.utid IS NULL AND t.name = s.name AND t.type = s.category AND t.file = s.file"},
    {"thread_track", "Perfetto's: the track of each goroutine's slices",
     "SELECT utid * 4 AS id, name, 'thread_slice' AS type, utid, file FROM thread"},
    {"counter", "Perfetto's: counters; counter_track has their names",
     "SELECT time_ns AS ts, t.id AS track_id, CAST(c.value AS DOUBLE) AS value, c.file\n"
     "FROM counters c JOIN counter_track t USING (name, file)"},
    {NULL, NULL, NULL},
};
/* clang-format on */

int sql_views_create(struct duckdb *duckdb)
{
    char text[4096];
    int code = EXIT_GOOD;
    for (const struct sql_named *view = sql_views; view->name && code == EXIT_GOOD; view++) {
        (void)snprintf(text, sizeof text, "CREATE VIEW %s AS %s", view->name, view->sql);
        code = duckdb_run(duckdb, text);
    }
    return code;
}
