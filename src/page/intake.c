/*
 * The intake of the page: the trace is a file that the page provides, complete from the start.
 */
#include "serve/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

struct intake {
    trail_source *source;
    const char *path;
    int fd;
};

static ssize_t take(void *context, void *buf, size_t size)
{
    const struct intake *intake = context;
    return read(intake->fd, buf, size);
}

struct intake *intake_open(const struct intake_options *options, trail_error *err)
{
    struct intake *intake = calloc(1, sizeof *intake);
    if (!intake) {
        (void)error_no_memory(err);
        return NULL;
    }
    intake->path = options->path;
    intake->fd = open(options->path, O_RDONLY);
    if (intake->fd >= 0)
        return intake;
    (void)error_set(err, TRAIL_IO, "cannot open %s: %s", options->path, strerror(errno));
    free(intake);
    return NULL;
}

trail_source *intake_begin(struct intake *intake, trail_error *err)
{
    intake->source = trail_source_open_callback(take, intake, err);
    return intake->source;
}

void intake_stop(struct intake *intake)
{
    (void)intake; /* reading never blocks */
}

bool intake_is_changed(const struct intake *intake)
{
    (void)intake;
    return false;
}

bool intake_is_live(const struct intake *intake)
{
    (void)intake;
    return false;
}

int64_t intake_received(const struct intake *intake)
{
    return intake_size(intake);
}

int64_t intake_size(const struct intake *intake)
{
    struct stat status;
    return fstat(intake->fd, &status) == 0 ? status.st_size : -1;
}

bool intake_path(const struct intake *intake, char path[INTAKE_PATH])
{
    (void)snprintf(path, INTAKE_PATH, "%s", intake->path);
    return true;
}
