/*
 * What it costs to write an event of v2 (src/write/v2_writer.h). Each case writes 5 million events of two
 * or three small arguments, a generation a million, to a sink that drops them; the best of five runs.
 *
 * usage: trail-bench-writer
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "write/v2_writer.h"

#define EVENTS     5000000u
#define GENERATION 1000000u
#define RUNS       5

static bool drop(void *context, const void *data, size_t size)
{
    (void)data;
    *(uint64_t *)context += size;
    return true;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* `run` events of a thread, then those of the next of `threads`. */
struct load {
    const char *name;
    unsigned threads, run;
    bool lookups; /* a string and a stack of four frames before each event */
};

static uint64_t where(struct v2_writer *w, uint64_t i)
{
    static const trail_string name = {"example.(*server).handle", 24},
                              file = {"/src/example/server.go", 22};
    struct v2_frame frames[4];
    for (unsigned f = 0; f < 4; f++)
        frames[f] = (struct v2_frame){0x400000 + 64 * f + (i & 63), name, file, i & 63};
    return v2_writer_stack(w, frames, 4);
}

static uint64_t write_trace(const struct load *load)
{
    static const trail_string reason = {"chan receive", 12};
    uint64_t written = 0, stack = 0, text = 0;
    int64_t time_ns = INT64_C(3600) * 1000000000;
    struct v2_writer *w = v2_writer_open(26, &(trail_sink){drop, &written}, NULL);
    if (!w)
        abort();
    for (uint64_t i = 0; i < EVENTS; i++, time_ns += 150) {
        uint64_t m = 1000 + i / load->run % load->threads;
        if (i % GENERATION == 0) {
            if (i > 0)
                v2_writer_end(w);
            v2_writer_begin(w, time_ns, time_ns);
        }
        if (load->lookups) {
            text = v2_writer_string(w, reason);
            stack = where(w, i);
        }
        if (i & 1)
            v2_writer_event(w, m, time_ns, V2_GoBlock, V2_ARGS(text, stack));
        else
            v2_writer_event(w, m, time_ns, V2_GoStart, V2_ARGS(i & 1023, 7));
    }
    trail_error err;
    if (!v2_writer_close(w, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return written;
}

int main(void)
{
    static const struct load loads[] = {
        {"one thread", 1, 1, false},
        {"16 threads, 8 events in turn", 16, 8, false},
        {"16 threads in turn", 16, 1, false},
        {"10,000 threads in turn", 10000, 1, false},
        {"16 threads in turn, with look-ups", 16, 1, true},
    };
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        double best = 0;
        uint64_t bytes = 0;
        for (int run = 0; run < RUNS; run++) {
            double begin = now_ns();
            bytes = write_trace(&loads[i]);
            double took = now_ns() - begin;
            if (run == 0 || took < best)
                best = took;
        }
        printf("%-36s %6.2f ns/event  %5.1f bytes/event\n", loads[i].name, best / EVENTS,
               (double)bytes / EVENTS);
    }
    return 0;
}
