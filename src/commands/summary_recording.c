#include "commands/summary_recording.h"

#include <inttypes.h>
#include <stdio.h>

#include "ui/cpu_limits.h"
#include "ui/recorded.h"
#include "ui/show.h"
#include "wire/missed.h"

enum { MOST_NAMES = 10 };

bool summary_recording_has(const trail_reader *reader)
{
    const trail_recorded *rows;
    return trail_reader_recorded(reader, &rows) > 0;
}

/* Adds up the rows of one kind. */
static trail_recorded sum_of(const trail_reader *reader, trail_recorded_what what)
{
    trail_recorded sum = {.what = what};
    RECORDED_EACH(row, reader, what) {
        sum.cpu_ns += row->cpu_ns;
        sum.count += row->count;
    }
    return sum;
}

int64_t summary_recording_cpu_ns(const trail_reader *reader)
{
    return sum_of(reader, TRAIL_RECORDED_PROCESS).cpu_ns;
}

/* Whether the recorder's CPU time is known. Snapshots are written before it is. */
static bool has_recorder(const trail_reader *reader)
{
    return recorded_next(reader, TRAIL_RECORDED_RECORDER, NULL) != NULL;
}

/* Prints the names in those rows, "true (4711), ls (4712)"; returns their number. */
static size_t show_names(const trail_reader *reader, trail_recorded_what what, const char *before)
{
    size_t found = 0;
    RECORDED_EACH(row, reader, what) {
        if (++found > MOST_NAMES)
            continue;
        printf("%s", found == 1 ? before : ", ");
        show_plain(row->name);
        printf(" (%" PRIu64 ")", row->pid);
    }
    if (found > MOST_NAMES)
        printf(", ...");
    return found;
}

static void show_why(const trail_reader *reader, trail_recorded_what what)
{
    size_t found = 0;
    RECORDED_EACH(row, reader, what) {
        const struct wire_missed_words *words = wire_missed_words(row->count);
        if (!words || ++found > MOST_NAMES)
            continue;
        fputs("  ", stdout);
        show_plain(row->name);
        printf(" (%" PRIu64 "): %s: %s\n", row->pid, words->why, words->remedy);
    }
}

static void show_missed(const trail_reader *reader)
{
    size_t missed = show_names(reader, TRAIL_RECORDED_MISSED, "not recorded: ");
    if (missed > 0)
        printf(
            "\n  %zu process%s that did not load the recorder: static or privileged programs, or "
            "an environment without LD_PRELOAD\n",
            missed, missed == 1 ? "" : "es");
    show_why(reader, TRAIL_RECORDED_MISSED);
    if (show_names(reader, TRAIL_RECORDED_LEFT, "recorded in part: ") > 0)
        printf("\n  the program executed in its place did not load the recorder\n");
    show_why(reader, TRAIL_RECORDED_LEFT);
}

static void show_count(const trail_reader *reader, trail_recorded_what what, const char *before,
                       const char *behind)
{
    uint64_t count = sum_of(reader, what).count;
    if (count > 0)
        printf("%s: %" PRIu64 " process%s %s\n", before, count, count == 1 ? "" : "es", behind);
}

void summary_recording_show(const trail_reader *reader)
{
    char cpu[SHOW_SIZE];
    struct cpu_limits limits;
    RECORDED_EACH(row, reader, TRAIL_RECORDED_SLOW)
        show_line("slow: %.*s", (int)row->name.size, row->name.data);
    if (has_recorder(reader))
        printf("recorder: %s of CPU time\n",
               show_duration(cpu, sum_of(reader, TRAIL_RECORDED_RECORDER).cpu_ns));
    cpu_limits_find(reader, &limits);
    cpu_limits_show(&limits, "");
    if (sum_of(reader, TRAIL_RECORDED_READY).count > 0)
        printf("ready: inferred after waits, without the kernel's wake-ups (root, CAP_PERFMON)\n");
    show_missed(reader);
    show_count(reader, TRAIL_RECORDED_LATE, "not recorded",
               "that started faster than the recorder could accept them");
    show_count(reader, TRAIL_RECORDED_UNKNOWN, "not known whether recorded",
               "that started too fast");
}

static void json_names(const trail_reader *reader, struct json *json, const char *key,
                       trail_recorded_what what)
{
    json_open(json, key, '[');
    RECORDED_EACH(row, reader, what) {
        json_open(json, NULL, '{');
        json_number(json, "pid", row->pid);
        json_text(json, "name", row->name);
        if (wire_missed_words(row->count))
            json_string(json, "why", wire_missed_words(row->count)->why);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void summary_recording_json(const trail_reader *reader, struct json *json)
{
    struct cpu_limits limits;
    if (!summary_recording_has(reader))
        return;
    json_open(json, "recording", '{');
    if (has_recorder(reader))
        json_signed(json, "cpu_ns", sum_of(reader, TRAIL_RECORDED_RECORDER).cpu_ns);
    json_open(json, "slow", '[');
    RECORDED_EACH(row, reader, TRAIL_RECORDED_SLOW)
        json_text(json, NULL, row->name);
    json_close(json, ']');
    cpu_limits_find(reader, &limits);
    cpu_limits_json(&limits, json);
    json_bool(json, "ready_inferred", sum_of(reader, TRAIL_RECORDED_READY).count > 0);
    json_names(reader, json, "not_recorded", TRAIL_RECORDED_MISSED);
    json_names(reader, json, "recorded_in_part", TRAIL_RECORDED_LEFT);
    json_number(json, "too_fast", sum_of(reader, TRAIL_RECORDED_LATE).count);
    json_number(json, "unknown", sum_of(reader, TRAIL_RECORDED_UNKNOWN).count);
    json_close(json, '}');
}
