/*
 * The part of OpenMP's tool interface (OMPT) that is used here (OpenMP API Specification 5.0,
 * chapter 4; numbers added in 5.1 are marked), so that the build needs no OpenMP library.
 */
#pragma once

#include <stdint.h>

/* The tool's data for a thread, region or task, which the library stores. */
typedef union omp_data {
    uint64_t value;
    void *ptr;
} omp_data;

typedef void (*omp_function)(void);
typedef omp_function (*omp_lookup)(const char *name);
typedef int (*omp_set_callback)(int event, omp_function callback);

struct omp_start {
    int (*initialize)(omp_lookup lookup, int device, omp_data *tool);
    void (*finalize)(omp_data *tool);
    omp_data tool;
};

enum omp_event {
    OMP_THREAD_BEGIN = 1,
    OMP_THREAD_END = 2,
    OMP_PARALLEL_BEGIN = 3,
    OMP_PARALLEL_END = 4,
    OMP_TASK_CREATE = 5,
    OMP_TASK_SCHEDULE = 6,
    OMP_IMPLICIT_TASK = 7,
    OMP_SYNC_REGION_WAIT = 16,
    OMP_MUTEX_RELEASED = 17,
    OMP_WORK = 20,
    OMP_MASKED = 21,
    OMP_LOCK_DESTROY = 25,
    OMP_MUTEX_ACQUIRE = 26,
    OMP_MUTEX_ACQUIRED = 27,
    OMP_NEST_LOCK = 28,
};

enum omp_endpoint { OMP_BEGIN = 1, OMP_END = 2, OMP_BEGIN_AND_END = 3 /* 5.1 */ };

enum omp_thread { OMP_THREAD_WORKER = 2 };

enum omp_parallel { OMP_PARALLEL_LEAGUE = 0x40000000 };

enum omp_work {
    OMP_WORK_LOOP = 1,
    OMP_WORK_SECTIONS = 2,
    OMP_WORK_SINGLE = 3,
    OMP_WORK_SINGLE_OTHER = 4,
    OMP_WORK_WORKSHARE = 5,
    OMP_WORK_DISTRIBUTE = 6,
    OMP_WORK_TASKLOOP = 7,
    OMP_WORK_SCOPE = 8, /* 5.1 */
    /* 5.2: a loop is one of these if its schedule is known. */
    OMP_WORK_LOOP_STATIC = 10,
    OMP_WORK_LOOP_DYNAMIC = 11,
    OMP_WORK_LOOP_GUIDED = 12,
    OMP_WORK_LOOP_OTHER = 13,
};

enum omp_task_flag { OMP_TASK_INITIAL = 1, OMP_TASK_IMPLICIT = 2, OMP_TASK_EXPLICIT = 4 };

enum omp_task_status {
    OMP_TASK_COMPLETE = 1,
    OMP_TASK_CANCEL = 3,
    OMP_TASK_LATE_FULFILL = 6,
};

enum omp_sync {
    OMP_SYNC_BARRIER = 1,
    OMP_SYNC_BARRIER_IMPLICIT = 2,
    OMP_SYNC_BARRIER_EXPLICIT = 3,
    OMP_SYNC_BARRIER_IMPLEMENTATION = 4,
    OMP_SYNC_TASKWAIT = 5,
    OMP_SYNC_TASKGROUP = 6,
    OMP_SYNC_REDUCTION = 7,
    OMP_SYNC_BARRIER_WORKSHARE = 8, /* 5.1: the implicit barrier is one of these */
    OMP_SYNC_BARRIER_PARALLEL = 9,
    OMP_SYNC_BARRIER_TEAMS = 10,
};

enum omp_mutex {
    OMP_MUTEX_LOCK = 1,
    OMP_MUTEX_TEST_LOCK = 2,
    OMP_MUTEX_NEST_LOCK = 3,
    OMP_MUTEX_TEST_NEST_LOCK = 4,
    OMP_MUTEX_CRITICAL = 5,
    OMP_MUTEX_ATOMIC = 6,
    OMP_MUTEX_ORDERED = 7,
};
