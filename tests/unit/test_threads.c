/*
 * Readers in different threads are independent: each prints the same with others running as alone.
 * Reading ahead does not interfere with the reader's caller either. Also run under ThreadSanitizer,
 * which detects races that do not show in the output.
 *
 * usage: test_threads TRACE...
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trail/export.h>
#include <unistd.h>

#include "../lib/unit.h"

#define MOST_JOBS 16

/* Reading of one trace in one form, and the length and FNV-1a hash of the result. */
struct job {
    const char *path;
    uint64_t hash, size;
    trail_format format;
    bool ahead;
    bool failed;
};

static bool take(void *context, const void *data, size_t size)
{
    struct job *job = context;
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        job->hash = (job->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    job->size += size;
    return true;
}

static void *work(void *argument)
{
    struct job *job = argument;
    trail_print_options options = {.format = job->format, .stacks = true};
    trail_error err;
    trail_source *source = trail_source_open_path(job->path, &err);
    trail_reader_options reading = {.ahead = job->ahead};
    trail_reader *reader = source ? trail_reader_open(source, &reading, &err) : NULL;
    trail_sink sink = {take, job};
    job->hash = UINT64_C(0xcbf29ce484222325);
    job->size = 0;
    job->failed = !reader || trail_print(reader, &options, &sink, &err) < 0;
    trail_reader_close(reader);
    trail_source_close(source);
    return NULL;
}

static struct job jobs[MOST_JOBS];
static size_t job_count;

static void as_alone(bool ahead)
{
    struct job alone[MOST_JOBS];
    pthread_t threads[MOST_JOBS];
    for (size_t i = 0; i < job_count; i++) {
        work(&jobs[i]);
        assert_false(jobs[i].failed);
        assert_true(jobs[i].size > 0);
        alone[i] = jobs[i];
        jobs[i].ahead = ahead;
    }
    for (size_t i = 0; i < job_count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (size_t i = 0; i < job_count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < job_count; i++) {
        assert_false(jobs[i].failed);
        assert_int_equal(jobs[i].size, alone[i].size);
        assert_int_equal(jobs[i].hash, alone[i].hash);
        jobs[i].ahead = false;
    }
}

TEST(together_as_alone)
{
    as_alone(false);
}

TEST(ahead_as_alone)
{
    as_alone(true);
}

/* Closed at any place: before the first batch, between batches, at the end. */
TEST(ahead_is_given_up)
{
    const trail_reader_options ahead = {.ahead = true};
    for (size_t i = 0; i < job_count; i++) {
        for (int batches = 0; batches < 6; batches++) {
            const trail_event *events;
            trail_error err;
            trail_source *source = trail_source_open_path(jobs[i].path, &err);
            trail_reader *reader = trail_reader_open(source, &ahead, &err);
            assert_non_null(reader);
            for (int n = 0; n < batches && trail_reader_next_batch(reader, &events) > 0; n++)
                ;
            trail_reader_close(reader);
            trail_source_close(source);
        }
    }
}

int main(int argc, char **argv)
{
    static const trail_format formats[] = {TRAIL_FORMAT_TEXT, TRAIL_FORMAT_GO, TRAIL_FORMAT_JSONL};
    for (int i = 1; i < argc; i++) {
        if (access(argv[i], R_OK) < 0) {
            printf("Bail out! %s: %s\n", argv[i], strerror(errno));
            return EXIT_FAILURE;
        }
        for (size_t f = 0; f < 3 && job_count < MOST_JOBS; f++)
            jobs[job_count++] = (struct job){.path = argv[i], .format = formats[f]};
    }
    return job_count ? run_all_tests(NULL, NULL) : EXIT_FAILURE;
}
