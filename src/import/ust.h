/*
 * Mutexes of a program as LTTng's pthread wrapper records them (liblttng-ust-pthread-wrapper.so):
 * requests, acquisitions and unlocks. If another thread holds the mutex, a thread waits from its
 * request on and is woken by that thread; otherwise it runs. A release writes a log of the hold
 * time.
 *
 * Each event is recorded after what it describes, so an unlock may follow the acquisition that it
 * allowed. A condition variable unlocks its mutex without an event: the next thread seems to wait
 * for a moment, and a hold seems to continue through a wait for a condition.
 */
#pragma once

#include "base/objects.h"
#include "import/model.h"

enum ust_kind { UST_REQUEST, UST_ACQUIRE, UST_UNLOCK };

struct ust_event {
    enum ust_kind kind;
    int64_t time_ns;
    int32_t tid;
    uint64_t mutex; /* its address */
};

struct ust {
    struct import_model *model;
    struct objects mutexes; /* address -> struct ust_mutex */
    struct objects threads; /* TID -> struct ust_thread */
};

void ust_init(struct ust *ust, struct import_model *model);

/* Takes an event that succeeded. Returns false if out of memory. */
bool ust_take(struct ust *ust, const struct ust_event *event);
void ust_free(struct ust *ust);
