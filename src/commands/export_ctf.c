/*
 * trail export --to=ctf: a folder with two files, which appears when they are complete.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/export_request.h"

#define STREAM   "/stream"
#define METADATA "/metadata"

/* A folder with two files, which are written outside of it, if possible without names. */
struct folder {
    char *beside, *stream_path, *metadata_path;
    bool there; /* `beside` exists */
    struct output stream, metadata;
};

static int folder_open(struct folder *folder, const char *path)
{
    trail_error err;
    folder->beside = output_hidden(path, "XXXXXX");
    if (!folder->beside || !output_open_beside(&folder->stream, folder->beside, &err) ||
        !output_open_beside(&folder->metadata, folder->beside, &err))
        return print_output_error(path, errno);
    return EXIT_GOOD;
}

/* Makes the folder under its temporary name. */
static bool folder_make(struct folder *folder)
{
    folder->there = mkdtemp(folder->beside);
    mode_t mask = umask(0);
    (void)umask(mask);
    return folder->there && chmod(folder->beside, 0777 & ~mask) == 0 &&
           asprintf(&folder->stream_path, "%s" STREAM, folder->beside) >= 0 &&
           asprintf(&folder->metadata_path, "%s" METADATA, folder->beside) >= 0;
}

static int close_file(struct output *output, const char *path, bool made, int code)
{
    return output->fd < 0 ? code : worse_exit(code, close_output(output, path, made, code));
}

/* Gives the folder its name if it is complete. */
static int folder_close(struct folder *folder, const char *path, bool made, int code)
{
    made &= !folder->stream.reason && !folder->metadata.reason && code < EXIT_INOUT;
    if (made && !folder_make(folder)) {
        code = print_output_error(path, errno);
        made = false;
    }
    code = close_file(&folder->stream, made ? folder->stream_path : path, made, code);
    code = close_file(&folder->metadata, made ? folder->metadata_path : path, made, code);
    if (made && code < EXIT_INOUT) {
        /* Replaces an empty folder of that name. */
        if (rename(folder->beside, path) == 0)
            return code;
        code = print_output_error(path, errno);
    }
    if (folder->stream_path)
        (void)unlink(folder->stream_path);
    if (folder->metadata_path)
        (void)unlink(folder->metadata_path);
    if (folder->there)
        (void)rmdir(folder->beside);
    return code;
}

static int ctf_to(struct export_request *request, trail_reader *reader)
{
    struct folder folder = {.stream.fd = -1, .metadata.fd = -1};
    trail_export_stats stats;
    trail_error err = no_error();
    bool made = false;
    int code = folder_open(&folder, request->output);
    if (code == EXIT_GOOD) {
        trail_sink stream = output_sink(&folder.stream), metadata = output_sink(&folder.metadata);
        int result = trail_export_ctf(reader, &request->options, &stream, &metadata, &stats, &err);
        bool lost = folder.stream.reason || folder.metadata.reason;
        code = export_result(request, result, lost, &stats, &err, &made);
    }
    code = folder_close(&folder, request->output, made, code);
    free(folder.beside);
    free(folder.stream_path);
    free(folder.metadata_path);
    return code;
}

/* Whether something exists at `path` that must not be replaced. */
static bool is_taken(const char *path)
{
    struct stat there;
    if (lstat(path, &there) < 0)
        return false;
    DIR *folder = S_ISDIR(there.st_mode) ? opendir(path) : NULL;
    size_t entries = 0;
    while (folder && readdir(folder))
        entries++;
    if (folder)
        (void)closedir(folder);
    return !folder || entries > 2; /* . and .. */
}

int export_ctf(struct export_request *request)
{
    if (is_taken(request->output))
        return usage_error(request->command, "%s is there already", request->output);
    return export_with_reader(request, ctf_to);
}
