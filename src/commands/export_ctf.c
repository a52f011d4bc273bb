/*
 * trail export --to=ctf: a folder with two files, written under a temporary name beside it.
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

/* A folder with two files, written under a temporary name. */
struct folder {
    char *beside, *stream_path, *metadata_path;
    bool there; /* `beside` exists */
    struct output stream, metadata;
};

static bool folder_names(struct folder *folder, const char *path)
{
    folder->beside = output_hidden(path, "XXXXXX");
    folder->there = folder->beside && mkdtemp(folder->beside);
    return folder->there && asprintf(&folder->stream_path, "%s" STREAM, folder->beside) >= 0 &&
           asprintf(&folder->metadata_path, "%s" METADATA, folder->beside) >= 0;
}

static int folder_open(struct folder *folder, const char *path)
{
    if (!folder_names(folder, path))
        return print_output_error(path, errno);
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)chmod(folder->beside, 0777 & ~mask);
    int code = open_output(&folder->stream, folder->stream_path);
    return code == EXIT_GOOD ? open_output(&folder->metadata, folder->metadata_path) : code;
}

/* Gives the folder its name if it is complete. */
static int folder_close(struct folder *folder, const char *path, bool made, int code)
{
    bool lost = folder->stream.reason || folder->metadata.reason;
    if (folder->stream.fd >= 0)
        code = worse_exit(code, close_output(&folder->stream, folder->stream_path, made, code));
    if (folder->metadata.fd >= 0)
        code = worse_exit(code, close_output(&folder->metadata, folder->metadata_path, made, code));
    if (made && !lost && code < EXIT_INOUT) {
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
