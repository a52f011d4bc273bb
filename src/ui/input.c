/* An input that is read several times, even from stdin. */
#include "ui/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/part_name.h"
#include "symbols/symbols.h"
#include "ui/cli.h"
#include "ui/refused_file.h"
#include "ui/show.h"
#include "words/vocabulary.h"

static int input_fail(trail_error *err, trail_code code, const char *message)
{
    *err = no_error();
    err->code = code;
    (void)snprintf(err->message, sizeof err->message, "%s", message);
    return -1;
}

/* Reads everything from the descriptor into memory. */
static int take_all(struct input *input, int fd, trail_error *err)
{
    size_t capacity = 0;
    for (;;) {
        if (input->size == capacity) {
            capacity = capacity ? capacity * 2 : (size_t)1 << 20;
            char *grown = realloc(input->data, capacity);
            if (!grown)
                return input_fail(err, TRAIL_NO_MEMORY, "no memory for all of the input");
            input->data = grown;
        }
        ssize_t n = read(fd, input->data + input->size, capacity - input->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return input_fail(err, TRAIL_IO, strerror(errno));
        if (n == 0)
            return 0;
        input->size += (size_t)n;
    }
}

int input_init(struct input *input, const char *word, bool again, trail_error *err)
{
    struct stat file;
    *input = (struct input){.word = word};
    if (!again)
        return 0;
    if (strcmp(word, "-") == 0)
        return take_all(input, STDIN_FILENO, err);
    if (getenv(OPENED_VARIABLE) || stat(word, &file) != 0 || !S_ISFIFO(file.st_mode))
        return 0;
    int fd = open(word, O_RDONLY | O_CLOEXEC);
    int result = fd >= 0 ? take_all(input, fd, err) : input_fail(err, TRAIL_IO, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return result;
}

trail_source *input_open(struct input *input, trail_error *err)
{
    return input->data ? limit_source(trail_source_open_memory(input->data, input->size, err))
                       : open_source(input->word, err);
}

void input_trace_id(struct input *input, const char *host, char id[TRACE_ID_SIZE])
{
    trail_error err = no_error();
    uint64_t hash = 0;
    trail_source *source = input_open(input, &err);
    if (source)
        (void)trail_source_hash(source, &hash, &err);
    if (hash == 0 && err.code == TRAIL_NO_MEMORY)
        show_lacks();
    trail_source_close(source);
    (void)snprintf(id, TRACE_ID_SIZE, "%016" PRIx64,
                   hash_mix(hash, hash_bytes(host, strlen(host))));
}

void input_free(struct input *input)
{
    free(input->data);
}

int open_binary(const char *path, struct symbols **symbols, trail_reader_options *options)
{
    trail_error err;
    if (!path)
        return EXIT_GOOD;
    *symbols = symbols_open(NULL, path, NULL, SYMBOLS_LINES, &err);
    if (!*symbols)
        return print_error(path, &err);
    options->symbolize = symbols_find;
    options->symbolize_context = *symbols;
    return EXIT_GOOD;
}

void close_binary(struct symbols *symbols)
{
    if (symbols)
        print_refused_file();
    symbols_close(symbols);
}

/* With the number of a part, the others are known. */
static void print_next_trace(const char *word, const trail_reader_stats *stats)
{
    struct part_name part;
    if (stats->next_trace < 0 || part_name_parse(word, &part))
        return;
    if (strcmp(word, "-") == 0)
        print_message(
            "stdin: this is the first of several traces; of a file, FILE#2 names the second");
    else
        print_message("%s: this is the first of several traces: %s#2 names the second, and 'trail "
                      "info' lists them",
                      word, word);
}

void print_repairs(const char *word, const trail_reader *reader)
{
    trail_reader_stats stats;
    trail_reader_get_stats(reader, &stats);
    print_next_trace(word, &stats);
    if (stats.repairs > 0 && trail_version_is_v2(trail_reader_version(reader)))
        print_message(
            "%s: %" PRIu64
            " state%s inferred where events are lost; sums leave out what is uncertain there",
            source_title(word), stats.repairs, plural_s(stats.repairs));
    else if (stats.repairs > 0)
        print_message("%s: %" PRIu64 " repair%s; 'trail check --repair --list' lists them",
                      source_title(word), stats.repairs, plural_s(stats.repairs));
    if (stats.frequency_assumed)
        print_message("%s: the speed of the clock is not in the trace: durations are right in "
                      "proportion only",
                      source_title(word));
}
