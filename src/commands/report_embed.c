#include "commands/report_embed.h"

#include "base/text.h"
#include "serve/embed.h"
#include "ui/cli.h"

int report_embed(const char *word, const char *title, const char *path)
{
    const char *name = path_name(source_title(word));
    struct embed embed = {.title = title ? title : name, .name = name};
    struct output output;
    trail_error err = no_error();
    embed.source = open_source(word, &err);
    if (!embed.source)
        return print_error(word, &err);
    int code = open_output_beside(&output, path);
    if (code == EXIT_GOOD) {
        trail_sink sink = output_sink(&output);
        bool made = embed_write(&embed, &sink, &err) == 0;
        if (!made && !output.reason)
            code = print_error(word, &err);
        code = close_output(&output, path, made, code);
    }
    trail_source_close(embed.source);
    return code;
}
