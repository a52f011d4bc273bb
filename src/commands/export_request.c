/* Reads the trace of an export, and reports the result. */
#include "commands/export_request.h"

#include <inttypes.h>

#include "ui/input.h"
#include "ui/progress.h"
#include "words/vocabulary.h"

int export_result(const struct export_request *request, int result, bool lost,
                  const trail_export_stats *stats, const trail_error *err, bool *made)
{
    const char *title = source_title(request->word);
    bool filtered = request->options.name || request->goroutines.count > 0;
    int code = result < 0 && !lost ? print_error(request->word, err) : EXIT_GOOD;
    *made = false;
    if (lost || code > EXIT_BAD)
        return code;
    if (stats->events == 0) {
        print_message("%s: no event in %s", title,
                      request->window.has_from || request->window.has_to ? "that window" : "it");
        return EXIT_BAD;
    }
    if (filtered && stats->goroutines == 0)
        return usage_error(request->command, "no such goroutine %s; 'trail goroutines' lists them",
                           request->window.has_from ? "in the window" : "in the trace");
    if (code == EXIT_BAD)
        print_message("%s: the good part was exported: %" PRIu64 " event%s", title, stats->events,
                      plural_s(stats->events));
    *made = true;
    return code;
}

static int use_reader(struct export_request *request, trail_source *source,
                      const trail_reader_options *options,
                      int (*use)(struct export_request *request, trail_reader *reader))
{
    struct progress progress;
    trail_error err;
    trail_reader *reader = trail_reader_open(source, options, &err);
    if (!reader)
        return print_error(request->word, &err);
    progress_begin(&progress, source, PROGRESS_OUTPUT_MEANWHILE);
    request->options.progress = progress_step;
    request->options.progress_context = &progress;
    int code = use(request, reader);
    progress_end(&progress);
    request->options.progress = NULL;
    request->options.progress_context = NULL;
    print_repairs(request->word, reader);
    trail_reader_close(reader);
    return code;
}

int export_with_reader(struct export_request *request,
                       int (*use)(struct export_request *request, trail_reader *reader))
{
    trail_error err;
    trail_reader_options options = {
        .partial = true, .repair = request->repair, .ahead = true, .threads = input_limits.threads};
    struct symbols *symbols = NULL;
    int code = open_binary(request->binary, &symbols, &options);
    if (code != EXIT_GOOD)
        return code;
    trail_source *source =
        request->input ? input_open(request->input, &err) : open_source(request->word, &err);
    code = source ? use_reader(request, source, &options, use) : print_error(request->word, &err);
    trail_source_close(source);
    close_binary(symbols);
    return code;
}
