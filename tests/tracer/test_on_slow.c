/* Snapshots of slow tasks and regions: when one is written, what it says, and the limits. Timing does
 * not matter: a limit of 1 ns makes everything slow, one of an hour nothing. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <trail/read.h>
#include <trail/record.h>
#include <unistd.h>

#include "../lib/unit.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)

/* MARK: What was written */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned files, failures;
    char path[512];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void written(void *context, const char *path, const trail_error *err)
{
    pthread_mutex_lock(&seen.lock);
    assert_ptr_equal(context, &seen);
    assert_true(!path != !err);
    seen.files += path != NULL;
    seen.failures += err != NULL;
    if (path)
        (void)snprintf(seen.path, sizeof seen.path, "%s", path);
    pthread_cond_signal(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
}

static void wait_for_attempts(unsigned count)
{
    pthread_mutex_lock(&seen.lock);
    while (seen.files + seen.failures < count)
        pthread_cond_wait(&seen.changed, &seen.lock);
    pthread_mutex_unlock(&seen.lock);
}

static char folder[64];

static trail_flight_slow limit(const char *name)
{
    return (trail_flight_slow){.size = sizeof(trail_flight_slow),
                               .name = name,
                               .limit_ns = 1,
                               .folder = folder,
                               .every_ns = HOUR_NS,
                               .written = written,
                               .context = &seen};
}

static void begin(const trail_flight_slow *slow)
{
    trail_error err;
    seen.files = seen.failures = 0;
    (void)snprintf(folder, sizeof folder, "/tmp/trail-slow-XXXXXX");
    assert_non_null(mkdtemp(folder));
    if (!trail_flight_start(NULL, &err) || !trail_flight_on_slow(slow, &err))
        fail_msg("%s", err.message);
}

static void end(void)
{
    trail_flight_stop();
    if (seen.files)
        unlink(seen.path);
    assert_int_equal(rmdir(folder), 0); /* nothing else is in it */
}

static void task(const char *name)
{
    uint64_t id = trail_task_begin(0, name);
    usleep(10);
    trail_task_end(id);
}

/* Compares the line of the snapshot up to its first figure. */
static void assert_is_about(const char *what)
{
    const trail_recorded *rows;
    const trail_event *event;
    trail_error err;
    trail_source *source = trail_source_open_path(seen.path, &err);
    trail_reader *reader = source ? trail_reader_open(source, NULL, &err) : NULL;
    size_t count, found = 0;
    struct stat file;
    int status;
    assert_non_null(reader);
    while ((status = trail_reader_next(reader, &event)) > 0)
        ;
    assert_int_equal(status, 0);
    count = trail_reader_recorded(reader, &rows);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].what != TRAIL_RECORDED_SLOW)
            continue;
        found++;
        assert_int_equal(rows[i].pid, getpid());
        assert_memory_equal(rows[i].name.data, what, strlen(what));
    }
    assert_int_equal(found, 1);
    assert_int_equal(stat(seen.path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    trail_reader_close(reader);
    trail_source_close(source);
}

/* MARK: Tests */

TEST(only_what_has_the_name)
{
    trail_flight_slow slow = limit("request");
    begin(&slow);
    task("other");
    task("request");
    wait_for_attempts(1);
    assert_is_about("task request took ");
    end();
}

TEST(a_region_without_a_name_in_the_limit)
{
    trail_flight_slow slow = limit(NULL);
    begin(&slow);
    trail_region_begin(0, "parse");
    trail_region_end(0, "parse");
    wait_for_attempts(1);
    assert_is_about("region parse ");
    end();
}

TEST(what_never_ends)
{
    trail_flight_slow slow = limit("outer");
    begin(&slow);
    trail_region_begin(0, "outer");
    wait_for_attempts(1);
    assert_is_about("region outer has taken ");
    trail_region_end(0, "outer");
    end();
}

TEST(what_is_quick_has_none)
{
    trail_flight_slow slow = limit(NULL);
    slow.limit_ns = HOUR_NS;
    begin(&slow);
    for (int i = 0; i < 3000; i++) /* more than are kept at once */
        task("request");
    end();
    assert_int_equal(seen.files + seen.failures, 0);
}

TEST(one_in_a_time)
{
    trail_flight_slow slow = limit("request");
    begin(&slow);
    task("request");
    wait_for_attempts(1);
    for (int i = 0; i < 3; i++) {
        task("request");
        usleep(60000); /* lets the library's thread look; the result does not depend on it */
    }
    end();
    assert_int_equal(seen.files, 1);
}

TEST(no_room)
{
    trail_flight_slow slow = limit("request");
    slow.max_bytes = 100;
    begin(&slow);
    task("request");
    wait_for_attempts(1);
    end();
    assert_int_equal(seen.files, 0);
    assert_int_equal(seen.failures, 1);
}

TEST(wrong_options)
{
    trail_flight_slow wrong[4];
    trail_error err;
    for (size_t i = 0; i < 4; i++) {
        wrong[i] = limit("request");
        wrong[i].folder = "/tmp";
    }
    wrong[0].size = 8;
    wrong[1].limit_ns = 0;
    wrong[2].every_ns = 1;
    wrong[3].folder = "/nonexistent";
    for (size_t i = 0; i < 4; i++)
        assert_false(trail_flight_on_slow(&wrong[i], &err));
    assert_non_null(strstr(err.message, "/nonexistent: No such file"));
    assert_true(trail_flight_on_slow(NULL, &err));
}
