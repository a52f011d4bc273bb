/* See trace_file.h. */
#include "ui/trace_file.h"

#include <errno.h>

int open_trace_file(struct trace_file *file, const char *path)
{
    int code = open_output_beside(&file->output, path);
    if (code != EXIT_GOOD)
        return code;
    if (packed_open(&file->packed, path, output_sink(&file->output)))
        return EXIT_GOOD;
    file->output.reason = errno;
    return close_output(&file->output, path, false, EXIT_INOUT);
}

int close_trace_file(struct trace_file *file, const char *path, bool made, int code)
{
    bool packed = packed_close(&file->packed);
    if (!packed && !file->output.reason)
        file->output.reason = errno;
    return close_output(&file->output, path, made && packed, code);
}
