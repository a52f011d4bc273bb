/*
 * The kernel's scheduling events as text: the name of an event, and its fields as the kernel, perf
 * and trace-cmd print them.
 *
 *     sched_switch   prev_comm=sh prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=cat next_pid=8 next_prio=120
 *                    sh:7 [120] S ==> cat:8 [120]
 *     sched_waking   comm=cat pid=8 prio=120 target_cpu=001
 *                    cat:8 [120] CPU:001
 */
#pragma once

#include "import/model.h"

enum sched_result {
    SCHED_EVENT,   /* *event is one for the model */
    SCHED_NOTHING, /* known but not needed; its names may have been taken */
    SCHED_UNKNOWN, /* the name of an unknown event */
    SCHED_BAD,     /* a known name with invalid fields */
};

/*
 * Parses the fields of an event. *event comes with its time, CPU and thread; sets its kind, other
 * threads and how a thread left. Passes names of threads to the model.
 */
enum sched_result sched_parse(struct import_model *model, trail_string name, trail_string fields,
                              struct import_event *event);
