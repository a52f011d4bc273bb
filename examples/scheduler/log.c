/*
 * The host's own log of its calls of the tracer, for a test to compare: a line for each event and
 * goroutine, numbered per goroutine. A line is written just before the event:
 *
 *     g=12 n=5 + block sync
 *
 * `+` says that the event must be in the trace: it was on, start and stop were not under way. Lines
 * of different goroutines stand in any order.
 */
#include "scheduler.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

void note(struct g *g, const char *format, ...)
{
    char text[256];
    va_list args;
    if (!sched.log)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(sched.log, "g=%" PRIu64 " n=%" PRIu64 " %c %s\n", g->trail.id, ++g->noted,
            atomic_load(&sched.log_sure) ? '+' : '-', text);
}

void log_open(const char *path)
{
    sched.log = fopen(path, "w");
    if (!sched.log) {
        perror(path);
        exit(1);
    }
}

void log_close(void)
{
    if (sched.log)
        fclose(sched.log);
}
