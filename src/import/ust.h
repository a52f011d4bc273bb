/*
 * Mutexes of a program as LTTng's wrapper of pthread records them
 * (liblttng-ust-pthread-wrapper.so): requests, acquisitions and unlocks. A thread waits from its
 * request on if another one holds the mutex, which wakes it; otherwise it runs. A release is a log of how
 * long the mutex was held.
 *
 * Each event is recorded behind what it is of, so that an unlock may come after the acquisition
 * that it allowed. A condition variable unlocks its mutex without an event: the next thread seems
 * to wait for a moment, and a hold goes on through a wait for a condition.
 */
#ifndef TRAIL_IMPORT_UST_H
#define TRAIL_IMPORT_UST_H

#include "base/idmap.h"
#include "import/model.h"

enum ust_kind { UST_REQUEST, UST_ACQUIRE, UST_UNLOCK };

struct ust_event {
    enum ust_kind kind;
    int64_t time_ns;
    int32_t tid;
    uint64_t mutex; /* its address */
};

/* Zero-initialised, but for the model. */
struct ust {
    struct import_model *model;
    struct idmap mutexes; /* address -> struct ust_mutex */
    struct idmap threads; /* TID -> struct ust_thread */
};

/* Takes an event, of one that succeeded. Returns false if memory is out. */
bool ust_take(struct ust *ust, const struct ust_event *event);
void ust_free(struct ust *ust);

#endif
