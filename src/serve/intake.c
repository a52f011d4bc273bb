/* Reads the viewer's trace from a file, a growing file or a pipe. */
#include "serve/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/part_name.h"
#include "base/temporary.h"
#include "read/source.h"

/* Interval at which a followed file is checked. */
enum { FOLLOW_MS = 50 };

struct intake {
    trail_source *source;
    const char *path;
    int fd;       /* the input */
    int keep;     /* copy of the data from a pipe; -1: the input is a file */
    int stops[2]; /* a pipe; readable when reading is to stop */
    bool follow;
    bool writer_gone;   /* follow: stdin has ended */
    struct stat opened; /* of a file that is not followed, from when it was opened */
    bool complete;      /* atomic: the whole trace has been read; release pairs with is_complete */
    int64_t received;   /* atomic: bytes read from the input */
};

/* MARK: Reading */

/* Waits for input on `fd` (-1: for none). Returns 1 if there is some, 0 on time-out, -1 to stop. */
static int wait_for(const struct intake *intake, int fd, int ms)
{
    struct pollfd fds[2] = {{.fd = intake->stops[0], .events = POLLIN},
                            {.fd = fd, .events = POLLIN}};
    for (;;) {
        int n = poll(fds, 2, ms);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || fds[0].revents)
            return -1;
        return fds[1].revents != 0;
    }
}

static bool keep(struct intake *intake, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(intake->keep, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

static ssize_t read_some(int fd, void *buf, size_t size)
{
    ssize_t n;
    do
        n = read(fd, buf, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t read_pipe(struct intake *intake, void *buf, size_t size)
{
    if (wait_for(intake, intake->fd, -1) < 0)
        return 0;
    ssize_t n = read_some(intake->fd, buf, size);
    if (n > 0 && !keep(intake, buf, (size_t)n))
        return -1;
    if (n == 0)
        __atomic_store_n(&intake->complete, true, __ATOMIC_RELEASE);
    return n;
}

/* The program that writes the file has the writing end of stdin. */
static bool is_writer_gone(void)
{
    char ignored[256];
    return read_some(STDIN_FILENO, ignored, sizeof ignored) <= 0;
}

static ssize_t read_growing(struct intake *intake, void *buf, size_t size)
{
    for (;;) {
        bool last = intake->writer_gone;
        ssize_t n = read_some(intake->fd, buf, size);
        if (n != 0)
            return n;
        if (last) {
            __atomic_store_n(&intake->complete, true, __ATOMIC_RELEASE);
            return 0;
        }
        int ready = wait_for(intake, STDIN_FILENO, FOLLOW_MS);
        if (ready < 0)
            return 0;
        if (ready > 0)
            intake->writer_gone = is_writer_gone();
    }
}

static ssize_t read_input(struct intake *intake, void *buf, size_t size)
{
    if (intake->keep >= 0)
        return read_pipe(intake, buf, size);
    if (intake->follow)
        return read_growing(intake, buf, size);
    return wait_for(intake, -1, 0) < 0 ? 0 : read_some(intake->fd, buf, size);
}

static ssize_t take(void *context, void *buf, size_t size)
{
    struct intake *intake = context;
    ssize_t n = read_input(intake, buf, size);
    if (n > 0)
        (void)__atomic_add_fetch(&intake->received, n, __ATOMIC_RELAXED);
    return n;
}

/* MARK: Life */

static bool open_stdin(struct intake *intake, const struct intake_options *options,
                       trail_error *err)
{
    const char *name = options->save ? options->save : "a temporary file";
    intake->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (intake->fd < 0)
        return error_set(err, TRAIL_IO, "cannot read stdin: %s", strerror(errno)) == 0;
    intake->keep = options->save ? open(options->save, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666)
                                 : temporary_file();
    if (intake->keep < 0)
        return error_set(err, TRAIL_IO, "cannot write %s: %s", name, strerror(errno)) == 0;
    return true;
}

/* Returns a descriptor of a copy of the part; -1 on an error. */
static int copy_part(const struct part_name *part, trail_error *err)
{
    uint8_t data[65536];
    int64_t size = 0;
    ssize_t n;
    trail_source *source = trail_source_open_part(part->file, part->number, 0, 0, err);
    int fd = source ? temporary_file() : -1;
    if (source && fd < 0)
        (void)error_set(err, TRAIL_IO, "cannot write a temporary file: %s", strerror(errno));
    for (; fd >= 0 && (n = source_read(source, data, sizeof data, err)) != 0; size += n) {
        if (n > 0 && file_write_at(fd, data, (size_t)n, size))
            continue;
        if (n > 0)
            (void)error_set(err, TRAIL_IO, "cannot write a temporary file: %s", strerror(errno));
        (void)close(fd);
        fd = -1;
        break;
    }
    trail_source_close(source);
    return fd;
}

static bool open_part(struct intake *intake, const struct part_name *part,
                      const struct intake_options *options, trail_error *err)
{
    if (options->follow)
        return error_set(err, TRAIL_USAGE, "a part of a file cannot be followed") == 0;
    intake->fd = copy_part(part, err);
    intake->complete = true;
    return intake->fd >= 0 && fstat(intake->fd, &intake->opened) == 0;
}

static bool open_path(struct intake *intake, const struct intake_options *options, trail_error *err)
{
    struct stat status;
    struct part_name part;
    if (part_name_parse(options->path, &part))
        return open_part(intake, &part, options, err);
    intake->fd = open(options->path, O_RDONLY | O_CLOEXEC);
    if (intake->fd < 0 || fstat(intake->fd, &status) != 0)
        return error_set(err, TRAIL_IO, "cannot open %s: %s", options->path, strerror(errno)) == 0;
    if (S_ISDIR(status.st_mode))
        return error_set(err, TRAIL_IO, "cannot read %s: %s", options->path, strerror(EISDIR)) == 0;
    intake->opened = status;
    intake->follow = options->follow;
    intake->complete = !options->follow;
    if (S_ISREG(status.st_mode))
        return true;
    /* For example, a FIFO's data can be read only once. */
    intake->complete = false;
    intake->keep = temporary_file();
    if (intake->keep < 0)
        return error_set(err, TRAIL_IO, "cannot write a temporary file: %s", strerror(errno)) == 0;
    return true;
}

struct intake *intake_open(const struct intake_options *options, trail_error *err)
{
    struct intake *intake = calloc(1, sizeof *intake);
    if (!intake) {
        (void)error_no_memory(err);
        return NULL;
    }
    *intake = (struct intake){.path = options->path, .fd = -1, .keep = -1, .stops = {-1, -1}};
    bool is_stdin = strcmp(options->path, "-") == 0;
    if (pipe2(intake->stops, O_CLOEXEC) != 0)
        (void)error_set(err, TRAIL_IO, "no pipe: %s", strerror(errno));
    else if (is_stdin ? open_stdin(intake, options, err) : open_path(intake, options, err))
        return intake;
    intake_close(intake);
    return NULL;
}

trail_source *intake_begin(struct intake *intake, trail_error *err)
{
    intake->source = trail_source_open_callback(take, intake, err);
    return intake->source;
}

void intake_stop(struct intake *intake)
{
    (void)!write(intake->stops[1], "", 1);
}

static void close_if(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

void intake_close(struct intake *intake)
{
    if (!intake)
        return;
    trail_source_close(intake->source);
    close_if(intake->fd);
    close_if(intake->keep);
    close_if(intake->stops[0]);
    close_if(intake->stops[1]);
    free(intake);
}

/* MARK: State */

bool intake_is_live(const struct intake *intake)
{
    return intake->keep >= 0 || intake->follow;
}

static bool is_complete(const struct intake *intake)
{
    return __atomic_load_n(&intake->complete, __ATOMIC_ACQUIRE);
}

int64_t intake_received(const struct intake *intake)
{
    return __atomic_load_n(&intake->received, __ATOMIC_RELAXED);
}

int64_t intake_size(const struct intake *intake)
{
    struct stat status;
    if (intake->keep >= 0)
        return is_complete(intake) ? intake_received(intake) : -1;
    if (!is_complete(intake) || fstat(intake->fd, &status) != 0)
        return -1;
    return status.st_size;
}

/* A pipe has been copied, and a followed file is expected to grow. */
static bool can_change(const struct intake *intake)
{
    return intake->keep < 0 && !intake->follow;
}

static bool is_written(const struct intake *intake, const struct stat *now)
{
    const struct stat *then = &intake->opened;
    return now->st_size != then->st_size || now->st_mtim.tv_sec != then->st_mtim.tv_sec ||
           now->st_mtim.tv_nsec != then->st_mtim.tv_nsec;
}

bool intake_is_changed(const struct intake *intake)
{
    const struct stat *then = &intake->opened;
    struct stat now;
    if (!can_change(intake) || stat(intake->path, &now) != 0)
        return false;
    return now.st_dev != then->st_dev || now.st_ino != then->st_ino || is_written(intake, &now);
}

bool intake_is_overwritten(const struct intake *intake)
{
    struct stat now;
    return can_change(intake) && fstat(intake->fd, &now) == 0 && is_written(intake, &now);
}

/* Whether the path still names the open file. */
static bool has_name(const struct intake *intake)
{
    struct stat now, ours;
    return stat(intake->path, &now) == 0 && fstat(intake->fd, &ours) == 0 &&
           now.st_dev == ours.st_dev && now.st_ino == ours.st_ino;
}

bool intake_identity(const struct intake *intake, uint64_t *identity)
{
    const struct stat *file = &intake->opened;
    const uint64_t words[] = {
        file->st_dev,
        file->st_ino,
        (uint64_t)file->st_size,
        (uint64_t)file->st_mtim.tv_sec,
        (uint64_t)file->st_mtim.tv_nsec,
        (uint64_t)file->st_ctim.tv_sec,
        (uint64_t)file->st_ctim.tv_nsec,
    };
    *identity = hash_bytes(words, sizeof words);
    return can_change(intake) && has_name(intake) && !intake_is_changed(intake);
}

bool intake_path(const struct intake *intake, char path[INTAKE_PATH])
{
    int fd = intake->keep >= 0 ? intake->keep : intake->fd;
    if (!is_complete(intake))
        return false;
    if (intake->keep < 0 && strlen(intake->path) < INTAKE_PATH && has_name(intake))
        (void)snprintf(path, INTAKE_PATH, "%s", intake->path);
    else
        (void)snprintf(path, INTAKE_PATH, "/proc/%ld/fd/%d", (long)getpid(), fd);
    return true;
}
