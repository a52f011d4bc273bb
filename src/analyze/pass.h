/*
 * The pass: what an analysis is made of. Each part has its file, takes the events that it needs, and
 * keeps its answer; the pass (pass.c) hands events out, and knows the window.
 */
#ifndef TRAIL_ANALYZE_PASS_H
#define TRAIL_ANALYZE_PASS_H

#include "analyze/activity.h"
#include "analyze/find.h"
#include "analyze/findings.h"
#include "analyze/gc.h"
#include "analyze/goroutines.h"
#include "analyze/groups.h"
#include "analyze/locks.h"
#include "analyze/names.h"
#include "analyze/path.h"
#include "analyze/profile.h"
#include "analyze/regions.h"
#include "analyze/stacks.h"
#include "analyze/tasks.h"
#include "analyze/threads.h"
#include "analyze/utilisation.h"
#include "analyze/waits.h"

/* Rows of goroutines that are over. */
struct goroutine_rows {
    trail_goroutine *items;
    size_t count, capacity;
};

struct trail_analysis {
    trail_analysis_options options;
    const trail_reader *reader;
    struct names names;
    struct stacks stacks;
    trail_name forever;      /* the reason of a wait that is an end */
    struct arena rows_arena; /* lists of rows */
    struct arena scratch;    /* lists of what is folded into a group at once */
    trail_analysis_span span;
    bool follows; /* somebody wants to know what goroutines do */
    bool started;
    bool counting; /* the window has begun */
    bool over;     /* it has ended */
    bool finished;
    int64_t from_ns, to_ns; /* of the window, absolute */
    struct goroutines goroutines;
    struct goroutine_rows rows;
    struct groups groups;
    struct regions regions;
    struct tasks tasks;
    struct utilisation utilisation[2];
    struct gc gc;
    struct profiles profiles;
    struct threads threads;
    struct activity *activity; /* NULL: nobody asked */
    struct waits *waits;       /* with activity */
    struct findings *findings; /* NULL: nobody asked */
    struct path path;
    struct locks *locks; /* NULL: nobody asked */
    struct find *find;   /* NULL: nobody asked */
    bool tells;          /* somebody wants to know of each transition of a goroutine */
};

static inline bool wants(const struct trail_analysis *analysis, unsigned what)
{
    return (analysis->options.what & what) != 0;
}

/* Whether a goroutine that began in `name` is meant. */
bool analysis_asks_for(const struct trail_analysis *analysis, const trail_who *who, int64_t id,
                       trail_name name);

/* A goroutine is over, or the trace is (`end_ns` is 0 then). False when memory is out. */
bool analysis_goroutine_ends(struct trail_analysis *analysis, struct goroutine *g, int64_t now,
                             int64_t end_ns);

#endif
