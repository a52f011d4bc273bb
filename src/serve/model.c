/* Reads a trace into lanes while requests are answered. */
#include "serve/model.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "serve/holder.h"
#include "timeline/kept.h"

/*
 * A fair lock: a waiting thread gets it before the thread that has just released it, which a mutex
 * does not guarantee. At most one thread waits for `lock`; the others wait for `next`.
 */
struct fair_lock {
    pthread_mutex_t next, lock;
};

static void fair_lock_init(struct fair_lock *lock)
{
    (void)pthread_mutex_init(&lock->next, NULL);
    (void)pthread_mutex_init(&lock->lock, NULL);
}

static void fair_lock_fini(struct fair_lock *lock)
{
    (void)pthread_mutex_destroy(&lock->lock);
    (void)pthread_mutex_destroy(&lock->next);
}

static void fair_lock_take(struct fair_lock *lock)
{
    (void)pthread_mutex_lock(&lock->next);
    (void)pthread_mutex_lock(&lock->lock);
    (void)pthread_mutex_unlock(&lock->next);
}

static void fair_lock_give(struct fair_lock *lock)
{
    (void)pthread_mutex_unlock(&lock->lock);
}

struct model {
    struct intake *intake;
    const struct shelf *shelf;
    bool keeps; /* the lanes are in a file */
    trail_source *source;
    struct fair_lock lock; /* protects everything below */
    bool opened, stop;
    trail_reader *reader;
    trail_lanes *lanes;
    struct model_status status;
    size_t examined_logs; /* how many logs status.logs is of */
};

/* MARK: The shelf */

/* What is kept of the status besides the lanes. */
struct kept_status {
    int version;
    trail_maker maker;
    int64_t read;
};

static const char lanes_key[] = "lanes";

/* Takes the lanes from the shelf, instead of reading. Returns false if they are not there. */
static bool take_lanes(struct model *model)
{
    struct kept_status kept;
    int fd = model->shelf ? shelf_open(model->shelf, lanes_key) : -1;
    trail_lanes *lanes = fd >= 0 ? kept_read(fd, &kept, sizeof kept) : NULL;
    if (fd >= 0)
        (void)close(fd);
    if (!lanes)
        return false;
    fair_lock_take(&model->lock);
    model->lanes = lanes;
    model->status.version = kept.version;
    model->status.maker = kept.maker;
    model->status.read = kept.read;
    fair_lock_give(&model->lock);
    return true;
}

static trail_lanes *open_lanes(struct model *model, trail_reader *reader)
{
    bool has_shelf = model->shelf && model->shelf->folder >= 0;
    trail_lanes *lanes = has_shelf ? kept_open(reader, model->shelf->folder) : NULL;
    model->keeps = lanes != NULL;
    return lanes ? lanes : trail_lanes_open(reader);
}

/* Puts the lanes of a whole trace on the shelf. */
static void keep_lanes(struct model *model)
{
    const struct model_status *status = &model->status;
    struct kept_status kept = {status->version, status->maker, status->read};
    char name[SHELF_NAME];
    if (!model->keeps || status->damaged || model->stop || intake_is_changed(model->intake))
        return;
    fair_lock_take(&model->lock);
    bool good = kept_finish(model->lanes, &kept, sizeof kept);
    fair_lock_give(&model->lock);
    shelf_name(model->shelf, lanes_key, name);
    if (good)
        (void)kept_name(model->lanes, model->shelf->folder, name);
}

/* MARK: Reading */

/* Returns false at the end. Only the lanes are shared, so the reader runs without the lock. */
static bool read_batch(struct model *model)
{
    const trail_event *events;
    struct model_status *status = &model->status;
    long count = trail_reader_next_batch(model->reader, &events);
    fair_lock_take(&model->lock);
    status->read = trail_source_position(model->source);
    status->maker = *trail_reader_maker(model->reader);
    bool kept = count <= 0 || trail_lanes_feed(model->lanes, events, count);
    if (count < 0)
        status->error = *trail_reader_error(model->reader);
    if (!kept || (count < 0 && status->error.code == TRAIL_NO_MEMORY))
        (void)error_set(&status->error, TRAIL_NO_MEMORY, "no memory for more of the trace");
    status->damaged |= !kept || count < 0;
    if (!kept)
        count = 0;
    bool more = count > 0 && !model->stop;
    fair_lock_give(&model->lock);
    return more;
}

/* Waits for the header without the lock: it may take long to arrive. */
static bool open_reader(struct model *model)
{
    trail_reader_options options = {.partial = true, .ahead = true};
    struct model_status *status = &model->status;
    trail_error err = {0};
    model->source = intake_begin(model->intake, &err);
    trail_reader *reader = model->source ? trail_reader_open(model->source, &options, &err) : NULL;
    trail_lanes *lanes = reader ? open_lanes(model, reader) : NULL;
    if (reader && !lanes)
        (void)error_no_memory(&err);
    fair_lock_take(&model->lock);
    model->reader = reader;
    model->lanes = lanes;
    status->error = err;
    status->damaged = lanes == NULL;
    status->version = reader ? trail_reader_version(reader) : 0;
    bool more = lanes && !model->stop;
    fair_lock_give(&model->lock);
    return more;
}

bool model_read(struct model *model)
{
    bool first = !model->opened;
    model->opened = true;
    bool taken = first && take_lanes(model);
    if (!taken && (first ? open_reader(model) : read_batch(model)))
        return true;
    fair_lock_take(&model->lock);
    model->status.done = true;
    fair_lock_give(&model->lock);
    if (!taken)
        keep_lanes(model);
    return false;
}

/* MARK: Life */

struct model *model_open(struct intake *intake, const struct shelf *shelf, trail_error *err)
{
    struct model *model = calloc(1, sizeof *model);
    if (!model) {
        (void)error_no_memory(err);
        return NULL;
    }
    model->intake = intake;
    model->shelf = shelf;
    model->status.live = intake_is_live(intake);
    fair_lock_init(&model->lock);
    return model;
}

void model_stop(struct model *model)
{
    fair_lock_take(&model->lock);
    model->stop = true;
    fair_lock_give(&model->lock);
    intake_stop(model->intake);
}

void model_close(struct model *model)
{
    if (!model)
        return;
    trail_lanes_close(model->lanes);
    trail_reader_close(model->reader);
    fair_lock_fini(&model->lock);
    free(model);
}

/* MARK: State */

/* Returns the number of logs of the program. Examines each log once. */
static size_t count_logs(struct model *model)
{
    const trail_mark *marks;
    size_t count = trail_lanes_logs(model->lanes, &marks);
    for (; model->examined_logs < count; model->examined_logs++)
        model->status.logs += !mark_is_recorders(model->lanes, &marks[model->examined_logs]);
    return model->status.logs;
}

static void count_bars(const trail_lanes *lanes, struct model_status *status)
{
    const trail_mark *marks;
    for (int kind = 0; kind < 3; kind++)
        status->bars[kind] = trail_lanes_count_bars(lanes, (trail_bar_kind)kind);
    status->samples = trail_lanes_samples(lanes, &marks);
}

void model_get_status(struct model *model, struct model_status *status)
{
    fair_lock_take(&model->lock);
    *status = model->status;
    if (model->lanes) {
        trail_lanes_get_size(model->lanes, &status->lanes);
        status->end_ns = trail_lanes_end(model->lanes);
        status->has_wall = trail_lanes_wall(model->lanes, &status->wall_ns);
        for (int kind = 0; kind < TRAIL_LANE_KINDS; kind++)
            status->lane_counts[kind] = trail_lanes_count(model->lanes, (trail_lane_kind)kind);
        count_bars(model->lanes, status);
        status->logs = count_logs(model);
    }
    fair_lock_give(&model->lock);
    status->size = intake_size(model->intake);
    status->received = intake_received(model->intake);
    status->waits = !status->done && status->version > 0 && status->version < 22;
}

const trail_lanes *model_lock(struct model *model)
{
    fair_lock_take(&model->lock);
    if (model->lanes)
        return model->lanes;
    fair_lock_give(&model->lock);
    return NULL;
}

void model_unlock(struct model *model)
{
    fair_lock_give(&model->lock);
}

void model_yield(struct model *model)
{
    fair_lock_give(&model->lock);
    fair_lock_take(&model->lock);
}
