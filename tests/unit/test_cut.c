/*
 * A file that is truncated while it is read: the error TRAIL_IO, in whatever way and however far it
 * is read; never a normal end, never a crash.
 *
 * usage: test_cut V1_TRACE... V2_TRACE (each larger than one read)
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <trail/export.h>
#include <unistd.h>
#include <zlib.h>

#include "../lib/unit.h"

static char **paths;
static int path_count;

/* A copy that will be truncated. */
struct file {
    char path[64];
    int fd;
    off_t size;
};

static void file_fill(struct file *file, const char *path, bool gzipped)
{
    char buf[65536];
    ssize_t n;
    struct stat st;
    int from = open(path, O_RDONLY);
    (void)snprintf(file->path, sizeof file->path, "/tmp/test_cut.XXXXXX");
    file->fd = mkstemp(file->path);
    assert_true(from >= 0 && file->fd >= 0);
    gzFile gz = gzipped ? gzdopen(dup(file->fd), "wb1") : NULL;
    while ((n = read(from, buf, sizeof buf)) > 0)
        assert_int_equal(gz ? gzwrite(gz, buf, (unsigned)n) : write(file->fd, buf, (size_t)n), n);
    if (gz)
        assert_int_equal(gzclose(gz), Z_OK);
    assert_int_equal(fstat(file->fd, &st), 0);
    file->size = st.st_size;
    (void)close(from);
}

static void file_drop(struct file *file)
{
    (void)close(file->fd);
    (void)unlink(file->path);
}

/* When it is truncated: before this many batches were read, in steps before the first one. */
enum { BEFORE_READER, BEFORE_BATCH };
static const struct when {
    int step;
    long batches;
} whens[] = {{BEFORE_READER, 0}, {BEFORE_BATCH, 0}, {BEFORE_BATCH, 1}, {BEFORE_BATCH, 20}};
enum { WHENS = sizeof whens / sizeof *whens };

/* To which size: nothing, a part of the header, some batches, all but what is read last. */
enum { SIZES = 4 };
static off_t cut_size(const struct file *file, int i)
{
    const off_t sizes[SIZES] = {0, 10, file->size / 4, file->size - 4096};
    return sizes[i];
}

static void cut(const struct file *file, int size)
{
    assert_int_equal(ftruncate(file->fd, cut_size(file, size)), 0);
}

/* MARK: Events */

static long next(trail_reader *reader, const trail_reader_options *options)
{
    const trail_event *events;
    const trail_v1_event *v1_events;
    return options->view == TRAIL_VIEW_V1 ? trail_reader_next_v1_batch(reader, &v1_events)
                                          : trail_reader_next_batch(reader, &events);
}

static void read_cut(const char *path, const trail_reader_options *options, bool gzipped,
                     struct when when, int size)
{
    struct file file = {0};
    trail_error err;
    file_fill(&file, path, gzipped);
    trail_source *source = trail_source_open_path(file.path, &err);
    assert_non_null(source);
    if (when.step == BEFORE_READER)
        cut(&file, size);
    trail_reader *reader = trail_reader_open(source, options, &err);
    long count = 1;
    for (long i = 0; reader && count > 0; i++) {
        if (when.step == BEFORE_BATCH && i == when.batches)
            cut(&file, size);
        count = next(reader, options);
    }
    if (reader) {
        assert_int_equal(count, -1);
        err = *trail_reader_error(reader);
    }
    assert_int_equal(err.code, TRAIL_IO);
    assert_non_null(strstr(err.message, "shorter while it was being read"));
    trail_reader_close(reader);
    trail_source_close(source);
    file_drop(&file);
}

TEST(test_events_of_old_traces)
{
    static const trail_reader_options ways[] = {
        {0},
        {.ahead = true},
        {.partial = true},
        {.repair = true},
        {.partial = true, .repair = true},
        {.view = TRAIL_VIEW_V1},
        {.verdict = TRAIL_VERDICT_GO121},
    };
    for (int p = 0; p + 1 < path_count; p++)
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
            for (int when = 0; when < WHENS; when++)
                for (int size = 0; size < SIZES; size++)
                    read_cut(paths[p], &ways[way], false, whens[when], size);
}

TEST(test_verdicts_of_old_traces)
{
    const trail_reader_options options = {.verdict_only = true};
    for (int when = 0; whens[when].batches == 0; when++)
        for (int size = 0; size < SIZES; size++)
            read_cut(paths[0], &options, false, whens[when], size);
}

TEST(test_events_of_new_traces)
{
    static const trail_reader_options ways[] = {{0}, {.ahead = true}, {.from_ns = 3000000000}};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (int when = 0; whens[when].batches <= 1; when++)
            for (int size = 0; size < SIZES; size++)
                read_cut(paths[path_count - 1], &ways[way], false, whens[when], size);
}

TEST(test_compressed_traces)
{
    const trail_reader_options options = {0};
    for (int p = 0; p < path_count; p++)
        for (int size = 0; size < SIZES; size++)
            read_cut(paths[p], &options, true, (struct when){BEFORE_READER, 0}, size);
}

/* MARK: Records and batches */

static int records_all(trail_source *source, const struct file *file, long batches, int size,
                       trail_error *err)
{
    trail_records *records = trail_records_open(source, err);
    const trail_record *record;
    int result = -1;
    for (long i = 0; records && (i == 0 || result > 0); i++) {
        if (i == batches)
            cut(file, size);
        result = trail_records_next(records, &record);
    }
    if (records)
        *err = *trail_records_error(records);
    trail_records_close(records);
    return result;
}

static int walk_all(trail_source *source, const struct file *file, long batches, int size,
                    trail_error *err)
{
    trail_walk *walk = trail_walk_open(source, err);
    trail_batch batch;
    int result = -1;
    for (long i = 0; walk && (i == 0 || result > 0); i++) {
        if (i == batches)
            cut(file, size);
        result = trail_walk_next(walk, &batch);
        if (result > 0 && !trail_walk_data(walk))
            result = -1;
    }
    if (walk)
        *err = *trail_walk_error(walk);
    trail_walk_close(walk);
    return result;
}

TEST(test_records_and_batches)
{
    for (int p = 0; p < path_count; p++)
        for (int walks = 0; walks < 2; walks++)
            for (int when = 1; whens[when].batches <= 1; when++)
                for (int size = 0; size < SIZES; size++) {
                    struct file file = {0};
                    trail_error err;
                    file_fill(&file, paths[p], false);
                    trail_source *source = trail_source_open_path(file.path, &err);
                    assert_int_equal((walks ? walk_all : records_all)(
                                         source, &file, whens[when].batches, size, &err),
                                     -1);
                    assert_int_equal(err.code, TRAIL_IO);
                    trail_source_close(source);
                    file_drop(&file);
                }
}

static bool drop(void *context, const void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return true;
}

TEST(test_symbolizing)
{
    const trail_symbolize_options options = {0};
    const trail_sink sink = {.write = drop};
    for (int p = 0; p < path_count; p++)
        for (int size = 2; size < SIZES; size++) {
            struct file file = {0};
            trail_error err;
            file_fill(&file, paths[p], false);
            trail_source *source = trail_source_open_path(file.path, &err);
            cut(&file, size);
            assert_int_equal(trail_symbolize(source, &options, &sink, NULL, &err), -1);
            assert_int_equal(err.code, TRAIL_IO);
            trail_source_close(source);
            file_drop(&file);
        }
}

int main(int argc, char **argv)
{
    paths = argv + 1;
    path_count = argc - 1;
    return run_all_tests(NULL, NULL);
}
