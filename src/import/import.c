/* Recognises the form of a recording and gives its reader the model that writes the trace. */
#include "import/import.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "import/forms.h"
#include "read/source.h"

#define PEEK 64 /* number of bytes that identify a form */

struct form {
    const char *name;
    import_reader *read;
    bool whole; /* events are unordered: all are held */
};

static const struct form sched_text = {"text of perf script or ftrace", import_sched_text, false};
static const struct form ctf_text = {"text of babeltrace2", import_ctf_text, false};
static const struct form perfetto = {"a Perfetto trace", import_perfetto, true};

bool import_is_perf_data(trail_source *source)
{
    char magic[8];
    ssize_t size = source_peek(source, magic, sizeof magic, NULL);
    return size == sizeof magic &&
           (memcmp(magic, "PERFILE2", 8) == 0 || memcmp(magic, "2ELIFREP", 8) == 0);
}

/* Returns the form of an input that begins with these bytes; anything unrecognised is text. */
static const struct form *form_of(const char *begin, size_t size)
{
    size_t i = 0;
    if (import_is_perfetto(begin, size))
        return &perfetto;
    while (i < size && isspace((unsigned char)begin[i]))
        i++;
    return i < size && begin[i] == '[' ? &ctf_text : &sched_text;
}

/* Reads everything, and writes its meaning. */
static int read_all(const struct form *form, trail_source *source, struct import_model *model,
                    trail_error *err)
{
    model->window.size = form->whole ? SIZE_MAX : IMPORT_WINDOW;
    int result = form->read(source, model, err);
    if (!import_model_end(model) && result == 0)
        result = error_no_memory(err);
    if (result == 0 && model->threads.out.generation == 0)
        result = error_set(err, TRAIL_NOT_A_TRACE, "no known scheduling event or span");
    return result;
}

static int import_form(const struct form *form, trail_source *source, const trail_sink *sink,
                       struct import_model *model, struct import_stats *stats, trail_error *err)
{
    struct v2_writer *writer = v2_writer_open(IMPORT_VERSION, sink, err);
    int result = -1;
    if (!writer)
        return -1;
    if (import_threads_init(&model->threads, writer, stats))
        result = read_all(form, source, model, err);
    else
        (void)error_no_memory(err);
    stats->late = model->window.late;
    import_threads_dispose(&model->threads);
    import_window_free(&model->window);
    return v2_writer_close(writer, result == 0 ? err : NULL) ? result : -1;
}

int import_trace(trail_source *source, const trail_sink *sink, void (*progress)(void *context),
                 void *context, struct import_stats *stats, trail_error *err)
{
    char begin[PEEK];
    *stats = (struct import_stats){0};
    ssize_t size = source_peek(source, begin, sizeof begin, err);
    if (size < 0)
        return -1;
    const struct form *form = form_of(begin, (size_t)size);
    stats->form = form->name;
    struct import_model model = {.progress = progress, .progress_context = context};
    return import_form(form, source, sink, &model, stats, err);
}
