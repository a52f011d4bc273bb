/*
 * The collector as the sum of its parts. Each part is declared in its own header and changed only
 * by the functions there; `struct collect` holds one of each, and what all of them need: the area,
 * the clock, the summary, and the trace, which the collectors of several programs may share.
 *
 *     feed.h -> threads.h, heap.h, profile.h                 what was recorded, by thread and time
 *     releases.h                                             which release ended which wait (of the trace)
 *     oncpu.h, switch_cost.h, faults.h                       when the kernel ran each thread, and its page faults
 *     trace.h -> model.h                                     the ops of all programs in order of time
 *     ops.h, annotations.h, states.h                         what they mean, as events
 *     holds.h                                                which locks each thread holds
 *     slow.h                                                 what takes too long (of the trace)
 *     code_names.h, lock_names.h, thread_names.h, jit.h,     names for addresses, descriptors and open calls
 *     descriptors.h, numbered.h, polled.h, open_stacks.h
 *     deadline.h                                             how long the work may take (of the trace)
 */
#pragma once

#include "base/arena.h"
#include "collect/annotations.h"
#include "collect/board.h"
#include "collect/code_names.h"
#include "collect/collect.h"
#include "collect/deadline.h"
#include "collect/descriptors.h"
#include "collect/faults.h"
#include "collect/feed.h"
#include "collect/heap.h"
#include "collect/holds.h"
#include "collect/jit.h"
#include "collect/lock_names.h"
#include "collect/model.h"
#include "collect/names.h"
#include "collect/numbered.h"
#include "collect/oncpu.h"
#include "collect/open_stacks.h"
#include "collect/polled.h"
#include "collect/profile.h"
#include "collect/releases.h"
#include "collect/slow.h"
#include "collect/states.h"
#include "collect/thread_names.h"
#include "collect/threads.h"
#include "collect/trace.h"
#include "write/v2_writer.h"

struct collect {
    struct collect_options options;
    struct area *area;
    struct ticks *ticks; /* the options' */
    struct trace *trace; /* the options' */
    struct collect *next_in_trace;
    uint32_t number;      /* of the program in the trace */
    uint32_t former_fork; /* of the program that the process executed before: see area_fork */
    struct arena arena;   /* names, and everything else that lives as long as the collector */

    bool refused;              /* the kernel does not let us read the program's memory */
    bool ended;                /* the program has ended, and all its records have been read */
    uint64_t end_ticks;        /* ... when that was noticed */
    uint64_t alive_ticks;      /* when the process was last seen not to have ended */
    uint64_t watermark;        /* set by the feed: all ops before it are known */
    uint64_t generation;       /* the trace's generation to which the modules have been written */
    int64_t first_ns, last_ns; /* of its first and last event; first_ns 0: none */
    /* Time off a CPU in calls that were too short to record or not wrapped. */
    int64_t moments_ns;
    struct unseen unseen;

    struct threads threads;
    struct feed feed;
    struct kernel_switches switches;
    struct switch_costs switch_costs;
    struct faults faults;
    struct profile profile;
    struct heap heap;
    struct open_stacks open_stacks;
    struct names names;
    struct code_names code;
    struct idmap object_names; /* address to text */
    struct jit jit;
    struct numbered numbered;
    struct descriptors *descriptors; /* NULL: none was looked up */
    struct states states;
    struct holds holds;
    struct annotations annotations;
    struct collect_summary summary;
};

/* Returns the prefix for names of the process's threads and objects; NULL: none. While a process is
 * the only one, it gets no prefix, and earlier names remain as they are. */
const char *collect_label(const struct collect *c);

/* Sets the error: out of memory; nothing more is taken. */
void trace_no_memory(struct trace *t);
void collect_no_memory(struct collect *c);

/* Counts a record that contradicts others, which the caller drops. */
void collect_damage(struct collect *c);

/* The program ended before `time`, in ticks, however late that was noticed. */
void collect_ended_before(struct collect *c, uint64_t time);
