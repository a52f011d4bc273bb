/* See traces.h. */
#include "ui/traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/part_name.h"
#include "ui/cli.h"
#include "ui/show.h"

/* MARK: The host */

void trace_host(char host[TRACE_HOST_SIZE])
{
    if (gethostname(host, TRACE_HOST_SIZE) < 0)
        host[0] = '\0';
    host[TRACE_HOST_SIZE - 1] = '\0';
}

int trace_host_find(const struct command *command, const char **host, char own[TRACE_HOST_SIZE])
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!*host) {
        trace_host(own);
        *host = own;
    }
    size_t size = strlen(*host);
    if (size == 0 || **host == '.' || strspn(*host, letters) != size)
        return usage_error(command, "--host is letters, digits, '.', '_' and '-', not '%s'", *host);
    return EXIT_GOOD;
}

/* MARK: The day */

/* Returns the wall clock at the first Sync of a v2 trace; 0: none; -1: *err is set. */
static int64_t wall_clock(trail_source *source, trail_error *err)
{
    const trail_event *events;
    int64_t seconds = 0;
    trail_clock_snapshot clocks;
    trail_reader *reader = trail_reader_open(source, NULL, err);
    if (!reader)
        return -1;
    if (trail_version_is_v2(trail_reader_version(reader))) {
        long count = trail_reader_next_batch(reader, &events);
        if (count == 1 && events[0].kind == TRAIL_SYNC && events[0].sync.final)
            count = trail_reader_next_batch(reader, &events); /* an error may follow it */
        if (count < 0) {
            *err = *trail_reader_error(reader);
            seconds = -1;
        }
        for (long i = 0; i < count && seconds == 0; i++)
            if (trail_reader_wall_clock(reader, &events[i], &clocks))
                seconds = clocks.wall_s;
    }
    trail_reader_close(reader);
    return seconds;
}

int32_t trace_day(struct input *input)
{
    trail_error err;
    struct stat file;
    struct part_name part;
    const char *path = part_name_parse(input->word, &part) ? part.file : input->word;
    trail_source *source = input_open(input, &err);
    int64_t seconds = source ? wall_clock(source, &err) : 0;
    if ((!source || seconds < 0) && err.code == TRAIL_NO_MEMORY)
        show_lacks();
    trail_source_close(source);
    if (seconds <= 0)
        seconds = !input->data && stat(path, &file) == 0 ? file.st_mtime : time(NULL);
    return (int32_t)(seconds / 86400);
}

/* MARK: IDs */

/* IDs need a complete pass over every trace, so they are computed when a query first uses one. */
static void find_ids(struct traces *traces)
{
    pthread_mutex_lock(&traces->lock);
    for (size_t i = 0; i < traces->count && !*traces->ids[i]; i++)
        input_trace_id(&traces->inputs[i], traces->host, traces->ids[i]);
    pthread_mutex_unlock(&traces->lock);
}

/* Whether no earlier file has the same ID: a trace given twice would be joined with itself. */
static bool is_first(const struct traces *traces, size_t trace, trail_error *err)
{
    size_t first = 0;
    while (strcmp(traces->ids[first], traces->ids[trace]) != 0)
        first++;
    if (first == trace)
        return true;
    *err = no_error();
    err->code = TRAIL_USAGE;
    (void)snprintf(err->message, sizeof err->message, "the same trace as %s; it is left out",
                   traces->inputs[first].word);
    return false;
}

/* Whether a column is wanted that all tables have, counted from the last one. */
static bool wants_common(const uint32_t wanted[TRAIL_TABLES], size_t from_last)
{
    for (int i = 0; i < TRAIL_TABLES; i++)
        if ((wanted[i] >> (trail_table_get((trail_table_id)i)->column_count - from_last) & 1) != 0)
            return true;
    return false;
}

/* MARK: One reading */

bool traces_init(struct traces *traces)
{
    traces->reported = calloc(traces->count + 1, sizeof *traces->reported);
    traces->ids = calloc(traces->count + 1, sizeof *traces->ids);
    if (traces->reported && traces->ids && pthread_mutex_init(&traces->lock, NULL) == 0)
        return true;
    free(traces->reported);
    free((void *)traces->ids);
    traces->reported = NULL;
    traces->ids = NULL;
    return false;
}

void traces_free(struct traces *traces)
{
    if (traces->reported)
        pthread_mutex_destroy(&traces->lock);
    free(traces->reported);
    free((void *)traces->ids);
}

void traces_report(struct traces *traces, size_t trace, const trail_error *err)
{
    pthread_mutex_lock(&traces->lock);
    if (!traces->reported[trace])
        traces->code = worse_exit(traces->code, print_error(traces->inputs[trace].word, err));
    traces->reported[trace] = true;
    pthread_mutex_unlock(&traces->lock);
}

bool trace_reading_open(struct trace_reading *reading, struct traces *traces, size_t trace,
                        const uint32_t wanted[TRAIL_TABLES], trail_error *err)
{
    if (wants_common(wanted, TRAIL_TABLE_COMMON)) {
        find_ids(traces);
        if (!is_first(traces, trace, err))
            return false;
    }
    trail_tables_options options = {
        .trace = traces->ids[trace],
        .file = traces->files[trace],
        .host = traces->host,
        .day = traces->day,
    };
    WINDOW_PUT(&options, &traces->window);
    memcpy(options.wanted, wanted, sizeof options.wanted);
    if (!traces->has_day && wants_common(wanted, 1))
        options.day = trace_day(&traces->inputs[trace]);
    reading->source = input_open(&traces->inputs[trace], err);
    if (!reading->source)
        return false;
    reading->reader = trail_reader_open(reading->source, &traces->reader, err);
    if (!reading->reader)
        return false;
    reading->tables = trail_tables_open(reading->reader, &options, err);
    return reading->tables != NULL;
}

void trace_reading_close(struct trace_reading *reading)
{
    trail_tables_close(reading->tables);
    trail_reader_close(reading->reader);
    trail_source_close(reading->source);
    *reading = (struct trace_reading){0};
}
