/*
 * The collector as the sum of its parts. Each part is declared in its own header and changed only by the functions
 * there; `struct collect` holds one of each, and what all of them need: the area, the clock, the writer, the
 * summary, and the flag that memory ran out.
 *
 *     feed.h -> threads.h, releases.h, heap.h, profile.h     what was recorded, by thread and time
 *     oncpu.h, faults.h                                      when the kernel ran each thread, and its page faults
 *     model.h -> ops.h, annotations.h, states.h              what it means, as events
 *     holds.h                                                which locks each thread holds
 *     names.h, jit.h, descriptors.h,                         names for addresses, descriptors and open calls
 *     numbered.h, open_stacks.h
 *     deadline.h                                             how long the work may take
 */
#ifndef TRAIL_COLLECT_PARTS_H
#define TRAIL_COLLECT_PARTS_H

#include "base/arena.h"
#include "collect/annotations.h"
#include "collect/collect.h"
#include "collect/deadline.h"
#include "collect/descriptors.h"
#include "collect/faults.h"
#include "collect/feed.h"
#include "collect/heap.h"
#include "collect/holds.h"
#include "collect/jit.h"
#include "collect/model.h"
#include "collect/names.h"
#include "collect/numbered.h"
#include "collect/oncpu.h"
#include "collect/open_stacks.h"
#include "collect/profile.h"
#include "collect/releases.h"
#include "collect/states.h"
#include "collect/threads.h"
#include "write/v2_writer.h"

struct collect {
    struct collect_options options;
    struct area *area;
    struct ticks *ticks; /* the options' */
    struct v2_writer *writer;
    struct arena arena; /* names, and what else lives as long as the collector */
    trail_error error;
    bool failed; /* memory ran out: `error` is set */

    /* The programs that the process executed before: each has its own area, and so its own stacks and texts. */
    uint32_t image;
    bool refused;       /* the kernel does not let us read the program's memory */
    uint64_t end_ticks; /* when the program ended */
    uint64_t watermark; /* set by the feed: the model may write all ops before it */

    struct deadline deadline;
    struct threads threads;
    struct feed feed;
    struct releases releases;
    struct kernel_switches switches;
    struct faults faults;
    struct profile profile;
    struct heap heap;
    struct open_stacks open_stacks;
    struct names names;
    struct jit jit;
    struct numbered numbered;
    struct descriptors *descriptors; /* NULL: none was looked up */
    struct model model;
    struct states states;
    struct holds holds;
    struct annotations annotations;
    struct collect_summary summary;
};

/* The key of an area's stack or text for the whole trace; of number 0 it is 0. */
static inline uint64_t image_key(const struct collect *c, uint32_t number)
{
    return number ? (uint64_t)c->image << 32 | number : 0;
}

/* Sets the error: memory is out, and nothing more is taken. */
void collect_no_memory(struct collect *c);

/* Counts a record that contradicts others. The caller leaves it out. */
void collect_damage(struct collect *c);

#endif
