/* Infers waits from LTTng's events about mutexes: see ust.h. */
#include "import/ust.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct ust_mutex {
    int32_t holder; /* 0: none */
    int64_t acquired_ns;
    uint32_t depth; /* how often the holder has locked it */
    int32_t releaser;
    int64_t released_ns;
};

struct ust_thread {
    uint64_t mutex; /* the requested one */
    int64_t requested_ns;
    bool requests, waits;
};

void ust_init(struct ust *ust, struct import_model *model)
{
    *ust = (struct ust){.model = model,
                        .mutexes = OBJECTS_OF(struct ust_mutex),
                        .threads = OBJECTS_OF(struct ust_thread)};
}

static bool emit(struct ust *ust, enum import_kind kind, int64_t time_ns, int32_t tid,
                 int32_t other, const char *text)
{
    struct import_event event = {.kind = (uint8_t)kind,
                                 .time_ns = time_ns,
                                 .cpu = IMPORT_NO_CPU,
                                 .tid = tid,
                                 .other = other,
                                 .text = text ? strdup(text) : NULL};
    return (!text || event.text) && import_model_put(ust->model, &event);
}

/* The holder releases the mutex: writes the hold time to the trace. */
static bool released(struct ust *ust, uint64_t address, const struct ust_mutex *mutex,
                     int64_t now_ns)
{
    char text[80];
    (void)snprintf(text, sizeof text, "mutex 0x%" PRIx64 " %" PRIu64 "ns", address,
                   (uint64_t)now_ns - (uint64_t)mutex->acquired_ns);
    return emit(ust, IMPORT_HELD, now_ns, mutex->holder, 0, text);
}

/* The thread has been waiting since its request. */
static bool wait_since_request(struct ust *ust, struct ust_thread *thread, int32_t tid)
{
    char text[40];
    (void)snprintf(text, sizeof text, "mutex 0x%" PRIx64, thread->mutex);
    thread->waits = true;
    return emit(ust, IMPORT_PAUSE, thread->requested_ns, tid, 0, text);
}

static bool request(struct ust *ust, const struct ust_event *e, const struct ust_mutex *mutex,
                    struct ust_thread *thread)
{
    *thread = (struct ust_thread){.mutex = e->mutex, .requested_ns = e->time_ns, .requests = true};
    return mutex->holder == 0 || mutex->holder == e->tid || wait_since_request(ust, thread, e->tid);
}

/*
 * Returns the thread that has unlocked the mutex since the request, and when; 0: none. Because an
 * unlock is recorded after it happens, this may still be the holder.
 */
static int32_t waker_of(const struct ust_mutex *mutex, const struct ust_thread *thread,
                        const struct ust_event *e, int64_t *when_ns)
{
    *when_ns = e->time_ns;
    if (mutex->holder != 0)
        return mutex->holder != e->tid ? mutex->holder : 0;
    *when_ns = mutex->released_ns;
    return mutex->releaser != e->tid && mutex->released_ns >= thread->requested_ns ? mutex->releaser
                                                                                   : 0;
}

static bool acquire(struct ust *ust, const struct ust_event *e, struct ust_mutex *mutex,
                    struct ust_thread *thread)
{
    bool good = true;
    int64_t when_ns;
    int32_t waker =
        thread->requests && thread->mutex == e->mutex ? waker_of(mutex, thread, e, &when_ns) : 0;
    /* According to the events, which lag behind, it was free at the request. */
    if (waker != 0 && !thread->waits)
        good = wait_since_request(ust, thread, e->tid);
    if (mutex->holder != 0 && mutex->holder != e->tid)
        good = good && released(ust, e->mutex, mutex, e->time_ns);
    if (waker != 0)
        good = good && emit(ust, IMPORT_WAKING, when_ns, waker, e->tid, NULL);
    if (thread->waits)
        good = good && emit(ust, IMPORT_RUN, e->time_ns, e->tid, 0, NULL);
    *thread = (struct ust_thread){0};
    if (mutex->holder != e->tid)
        *mutex = (struct ust_mutex){.holder = e->tid, .acquired_ns = e->time_ns};
    mutex->depth++;
    return good;
}

static bool unlock(struct ust *ust, const struct ust_event *e, struct ust_mutex *mutex)
{
    /* The unlock is recorded after it happens: another thread may have the mutex already. */
    if (mutex->holder != 0 && mutex->holder != e->tid)
        return true;
    if (mutex->depth > 1) {
        mutex->depth--;
        return true;
    }
    bool good = mutex->holder == 0 || released(ust, e->mutex, mutex, e->time_ns);
    *mutex = (struct ust_mutex){.releaser = e->tid, .released_ns = e->time_ns};
    return good;
}

bool ust_take(struct ust *ust, const struct ust_event *e)
{
    bool fresh = !objects_find(&ust->threads, (uint64_t)e->tid);
    struct ust_mutex *mutex = objects_get(&ust->mutexes, e->mutex);
    struct ust_thread *thread = objects_get(&ust->threads, (uint64_t)e->tid);
    if (!mutex || !thread || (fresh && !emit(ust, IMPORT_RUN, e->time_ns, e->tid, 0, NULL)))
        return false;
    switch (e->kind) {
    case UST_REQUEST:
        return request(ust, e, mutex, thread);
    case UST_ACQUIRE:
        return acquire(ust, e, mutex, thread);
    case UST_UNLOCK:
        return unlock(ust, e, mutex);
    }
    return true;
}

void ust_free(struct ust *ust)
{
    objects_free(&ust->mutexes);
    objects_free(&ust->threads);
}
