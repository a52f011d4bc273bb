/* See trace_file.h. */
#include "ui/trace_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int check_trace_output(const struct options *options, const char *source, const char *output)
{
    const struct command *command = options->command;
    if (options->word_count == 0)
        return usage_error(command, "which %s? (- is stdin)", source);
    if (options->word_count != 1)
        return usage_error(command, "one %s at a time", source);
    if (!output)
        return usage_error(command, "no output given: --output=FILE (- is stdout)");
    if (strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
        return usage_error(command, NO_BINARY_ON_TERMINAL);
    if (overwrites(output, options->words[0]))
        return usage_error(command, "the new trace would overwrite the %s, '%s'", source, output);
    return EXIT_GOOD;
}

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
