/* v2 parallel: threads, and the list of generations that they read. */
#include "read/v2/parallel.h"

#include <pthread.h>
#include <stdlib.h>

#include "read/source.h"
#include "read/v2/batch.h"
#include "wire/wire.h"

/* A smaller file is read before threads could start. */
#define SMALLEST_FILE ((int64_t)1 << 20)
/* Larger generations are left to the reader. The second limit is for all that are being read at the
 * same time. */
#define LARGEST_GENERATION ((uint64_t)64 << 20)
#define LARGEST_SUM        ((uint64_t)256 << 20)

/* Holds a header and the byte after it. */
#define HEADER_READ_SIZE 64

enum { MOST_THREADS = 64, MOST_JOBS = 2 * MOST_THREADS };

enum job_state { JOB_FREE, JOB_RUNNING, JOB_DONE };

struct job {
    struct v2_extent extent;
    enum job_state state;
    struct v2_alone *alone; /* JOB_DONE: NULL if the reader has to read it */
};

struct v2_parallel {
    const trail_source *source;
    int version;
    bool strict;
    uint64_t size; /* of the source */
    unsigned threads;
    pthread_t thread[MOST_THREADS];
    size_t started;
    pthread_mutex_t lock;
    pthread_cond_t may_run, done_one;
    /* Guarded by the lock. */
    bool stop;
    struct job jobs[MOST_JOBS]; /* the generations [first, end) of the list, in order */
    size_t first, end;
    uint64_t next_offset; /* of the generation after the last job */
    bool no_more;         /* no extent was found there */
    uint64_t running;     /* bytes of the generations being read */
};

/* MARK: Extents */

/* Reads the header at `at`. Returns false if it is not the header of a plausible batch. */
static bool read_header(const struct v2_parallel *p, uint64_t at, struct v2_batch_header *header,
                        size_t *length)
{
    uint8_t bytes[HEADER_READ_SIZE];
    uint64_t left = at < p->size ? p->size - at : 0;
    size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;
    return size > 0 && source_again(p->source, at, bytes, size, NULL) == 0 &&
           v2_batch_header(bytes, size, p->version, header, length, NULL) == V2_HEADER_OK &&
           (header->end_of_generation || header->generation > 0) && header->size <= left - *length;
}

/*
 * Finds the generation at `from`: up to its end mark, or up to 1.25 to the next generation or the
 * end of the file. Returns false if it ends otherwise.
 */
static bool find_extent(const struct v2_parallel *p, uint64_t from, struct v2_extent *extent)
{
    struct v2_batch_header header;
    size_t length;
    *extent = (struct v2_extent){.offset = from};
    for (uint64_t at = from;; at += length + header.size) {
        extent->size = at - from;
        if (at == p->size && at > from)
            return p->version < 26;
        if (!read_header(p, at, &header, &length))
            return false;
        if (header.end_of_generation) {
            extent->size += length;
            return at > from;
        }
        if (at == from)
            extent->number = header.generation;
        else if (header.generation != extent->number)
            return p->version < 26 && header.generation == extent->number + 1;
    }
}

/* MARK: The list. All functions have the lock. */

static struct job *job_at(struct v2_parallel *p, size_t i)
{
    return &p->jobs[i % MOST_JOBS];
}

/* Adds the next generation to the list. Returns false if there is none. */
static bool add_job(struct v2_parallel *p)
{
    struct job *job = job_at(p, p->end);
    if (p->no_more || p->end - p->first >= (size_t)2 * p->threads)
        return false;
    *job = (struct job){0};
    p->no_more = !find_extent(p, p->next_offset, &job->extent);
    if (p->no_more)
        return false;
    p->next_offset = job->extent.offset + job->extent.size;
    p->end++;
    return true;
}

static bool may_run(const struct v2_parallel *p, const struct job *job)
{
    return job->state == JOB_FREE && job->extent.size <= LARGEST_GENERATION &&
           p->running + job->extent.size <= LARGEST_SUM;
}

/* Returns a job to run; NULL: none. */
static struct job *claim(struct v2_parallel *p)
{
    size_t i = p->first;
    while (i < p->end && !may_run(p, job_at(p, i)))
        i++;
    if (i == p->end && (!add_job(p) || !may_run(p, job_at(p, i))))
        return NULL;
    struct job *job = job_at(p, i);
    job->state = JOB_RUNNING;
    p->running += job->extent.size;
    return job;
}

/* Runs a claimed job, without the lock. */
static void run(struct v2_parallel *p, struct job *job)
{
    (void)pthread_mutex_unlock(&p->lock);
    struct v2_alone *alone = v2_alone_read(p->source, p->version, p->strict, &job->extent);
    (void)pthread_mutex_lock(&p->lock);
    job->alone = alone;
    job->state = JOB_DONE;
    p->running -= job->extent.size;
    (void)pthread_cond_signal(&p->done_one);
}

/* Removes the first job, which is not running. */
static void drop_first(struct v2_parallel *p)
{
    p->first++;
    (void)pthread_cond_signal(&p->may_run);
}

/* MARK: Threads */

static void *read_generations(void *context)
{
    struct v2_parallel *p = context;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct job *job = claim(p);
        if (job)
            run(p, job);
        else
            (void)pthread_cond_wait(&p->may_run, &p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Starts a thread for each further generation, up to the number allowed in addition to the
 * caller's. */
static void start(struct v2_parallel *p)
{
    while (p->started + 1 < p->threads && (p->started + 1 < p->end - p->first || add_job(p)) &&
           pthread_create(&p->thread[p->started], NULL, read_generations, p) == 0)
        p->started++;
}

/* MARK: The reader */

struct v2_parallel *v2_parallel_open(const trail_source *source, int version, bool strict,
                                     unsigned threads)
{
    if (threads < 2 || !source_is_file(source) || trail_source_size(source) < SMALLEST_FILE)
        return NULL;
    struct v2_parallel *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->source = source;
    p->version = version;
    p->strict = strict;
    p->size = (uint64_t)trail_source_size(source);
    p->threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    p->next_offset = WIRE_HEADER_SIZE;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->may_run, NULL);
    (void)pthread_cond_init(&p->done_one, NULL);
    return p;
}

/* Makes the generation at `offset` the first of the list. Returns false if it has no extent. */
static bool find_first(struct v2_parallel *p, uint64_t offset)
{
    while (p->first < p->end && job_at(p, p->first)->extent.offset < offset) {
        const struct job *job = job_at(p, p->first);
        while (job->state == JOB_RUNNING)
            (void)pthread_cond_wait(&p->done_one, &p->lock);
        v2_alone_free(job->alone);
        drop_first(p);
    }
    if (p->first == p->end) {
        p->no_more = false;
        p->next_offset = offset;
        if (!add_job(p))
            return false;
    }
    return job_at(p, p->first)->extent.offset == offset;
}

struct v2_alone *v2_parallel_take(struct v2_parallel *p, uint64_t offset, struct v2_extent *extent)
{
    struct v2_alone *alone = NULL;
    (void)pthread_mutex_lock(&p->lock);
    if (find_first(p, offset)) {
        const struct job *job = job_at(p, p->first);
        /* The very first generation depends on no other, so the reader reads it meanwhile. */
        while (p->first > 0 && job->state != JOB_DONE) {
            struct job *other = claim(p);
            if (!other && job->state == JOB_FREE)
                break;
            if (other)
                run(p, other);
            else
                (void)pthread_cond_wait(&p->done_one, &p->lock);
        }
        *extent = job->extent;
        alone = job->alone;
        if (p->started == 0)
            start(p);
        drop_first(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return alone;
}

void v2_parallel_close(struct v2_parallel *p)
{
    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_broadcast(&p->may_run);
    (void)pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->started; i++)
        (void)pthread_join(p->thread[i], NULL);
    for (; p->first < p->end; p->first++)
        v2_alone_free(job_at(p, p->first)->alone);
    (void)pthread_cond_destroy(&p->done_one);
    (void)pthread_cond_destroy(&p->may_run);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}
