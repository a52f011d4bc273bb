/*
 * What the files of the waits share: groups and blame (waits.c), places (waits_places.c), waits for
 * work (waits_work.c) and for what is outside the program (waits_outside.c). Functions that return
 * bool return false on out of memory, unless it says otherwise.
 */
#ifndef TRAIL_ANALYZE_WAITS_PARTS_H
#define TRAIL_ANALYZE_WAITS_PARTS_H

#include "analyze/part.h"
#include "analyze/waits.h"

/* MARK: Groups */

/* The slow path of waits_group. */
struct wait_group *waits_make_group(struct waits *waits, trail_name name);

/* Returns the group of a start function; NULL on out of memory. */
static inline struct wait_group *waits_group(struct waits *waits, trail_name name)
{
    if (__builtin_expect(name < waits->by_name_capacity && waits->by_name[name], 1))
        return waits->by_name[name];
    return waits_make_group(waits, name);
}

/* Returns the row of a wait, or of its kind where that is known; NULL on out of memory. */
trail_wait *waits_row(const struct names *names, struct wait_group *group, trail_name wait);

/* MARK: What held it up */

/* Returns the name of a frame's place. */
trail_name waits_name_frame(struct waits *waits, const trail_place *frame);

/* The start function of a goroutine; 0: unknown. */
trail_name waits_start(const struct waits *waits, int64_t id);

/* The wait of `g` at `place` (NULL: elsewhere), which was for `wait`, has ended. */
bool waits_blame(struct waits *waits, const struct goroutine *g, const struct place *place,
                 int64_t serial_at, trail_name wait, const trail_event *event);

/* MARK: Places */

/* Returns the place of a stack, and what is waited for there. 0: no frame of the program. */
trail_name waits_name_place(struct waits *waits, trail_stack_handle stack, enum place_kind *kind);

/* Returns the reason of a wait; of one that began before the trace, the one of its stack. */
trail_name waits_reason(const struct waits *waits, const trail_event *event);

/* A wait begins, or has ended, perhaps at a place. */
bool waits_enter_place(struct waits *waits, const struct goroutine *g, const trail_event *event,
                       trail_name reason);
bool waits_leave_place(struct waits *waits, const struct goroutine *g, const trail_event *event);

/* The goroutine has done some work since it was woken. */
void waits_works(struct waits *waits, int64_t id);

/* The goroutine has woken `g`, or created it. */
void waits_woke(struct waits *waits, const struct goroutine *g, int64_t id);

/* MARK: Work */

/* A wait begins, or has ended, that may be for work. */
bool waits_enter_idle(struct waits *waits, const struct goroutine *g, const trail_event *event);
void waits_leave_idle(struct waits *waits, const struct goroutine *g, int64_t now);

/* The goroutine ends: which of its waits were for work. */
bool waits_judge_idle(struct waits *waits, const struct goroutine *g, int64_t now);

/* A wait to send was ended soon, or late. */
bool waits_count_served(struct waits *waits, const struct goroutine *sender,
                        const trail_event *event);
bool waits_count_late(struct waits *waits, int64_t goroutine);

/* The goroutine ends, which ran for that long. */
void waits_note_spinner(struct waits *waits, const struct goroutine *g, int64_t ran);
bool waits_count_worker(struct waits *waits, const struct goroutine *g, int64_t ran, int64_t now);

/* MARK: Outside */

/* A wait for `wait` begins that may be for something outside. */
bool waits_enter_outside(struct waits *waits, struct goroutine *g, trail_name wait,
                         const trail_event *event);

/* A wait of Go begins, perhaps for an answer. */
bool waits_enter_answer(struct waits *waits, struct goroutine *g, const trail_event *event);

/* Returns whether a goroutine of Go with this stack waits for the answer to an HTTP request. */
bool waits_asks(struct waits *waits, trail_stack stack);

/* `creator` created the goroutine: one that accepts connections creates those that serve them. */
bool waits_serves(struct waits *waits, int64_t creator, int64_t goroutine);

/* A goroutine that waits for something outside at times goes on. */
bool waits_leave_outside(struct waits *waits, const struct goroutine *g, const trail_event *event);

/* A wait of Go that can be for a timer has ended. */
bool waits_leave_timed(struct waits *waits, struct goroutine *g, const trail_event *event);

/* A system call begins; one that a log announced is a wait. */
bool waits_call_begins(struct waits *waits, struct goroutine *g, const trail_event *event);

/* A system call of Go has ended that took long: it waited for something outside. */
bool waits_go_call_ends(struct waits *waits, const struct goroutine *g, const trail_event *event);

#endif
