#include "page/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/api.h"
#include "serve/command_line.h"
#include "serve/runs.h"
#include "serve/source.h"
#include "ui/cli.h"

#define EXPORT(name) __attribute__((export_name(#name), used))

enum { MOST_PARAMETERS = 32, RESERVE = 1 << 20 };

static struct page {
    char *room;
    char *name;
    struct intake *intake;
    struct model *model;
    /* RESERVE bytes, freed once the trace is read, so that answers have memory if the trace used it
     * up. */
    void *reserve;
    struct page_answer answer;
    trail_error error;
} page;

EXPORT(page_room) char *page_room(size_t size)
{
    free(page.room);
    page.room = malloc(size);
    return page.room;
}

/* MARK: The query */

struct asked {
    size_t count;
    struct {
        const char *name, *value;
    } items[MOST_PARAMETERS];
};

const char *http_query(const struct http_request *request, const char *name)
{
    const struct asked *asked = request->connection;
    for (size_t i = 0; i < asked->count; i++)
        if (strcmp(asked->items[i].name, name) == 0)
            return asked->items[i].value;
    return NULL;
}

void http_each_query(const struct http_request *request,
                     bool (*each)(void *context, const char *name), void *context)
{
    const struct asked *asked = request->connection;
    for (size_t i = 0; i < asked->count && each(context, asked->items[i].name); i++)
        ;
}

/* Decodes in place: %20 and + are a space. */
static char *decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at;) {
        bool space = *at == '+';
        char c = url_next(&at);
        *to++ = space ? ' ' : c;
    }
    *to = '\0';
    return text;
}

/* Splits "a=1&b=2" in place. */
static void parse_query(struct asked *asked, char *query)
{
    for (char *item; (item = strsep(&query, "&")) != NULL;) {
        char *value = strchr(item, '=');
        if (!value || asked->count == MOST_PARAMETERS)
            continue;
        *value++ = '\0';
        asked->items[asked->count].name = decode(item);
        asked->items[asked->count++].value = decode(value);
    }
}

/* MARK: Analyses */

bool runs_can_run(const struct runs *runs)
{
    (void)runs;
    return true;
}

bool runs_are_stale(const struct runs *runs)
{
    (void)runs;
    return false;
}

bool runs_can_sql(const struct runs *runs)
{
    (void)runs;
    return false;
}

/* Returns the command line; the page runs it in a separate instance. */
void runs_answer_command(struct runs *runs, struct exchange *exchange)
{
    struct words words = {0};
    (void)runs;
    const struct command_files files = {.path = page.name};
    if (command_line(exchange, &files, &words)) {
        for (size_t i = 0; i < words.count; i++)
            out_bytes(exchange->json.out, words.items[i], strlen(words.items[i]) + 1);
        exchange->type = COMMAND_TYPE;
    }
    words_free(&words);
}

void runs_answer_embed(struct runs *runs, struct exchange *exchange, const char *title)
{
    (void)runs;
    (void)title;
    exchange_refuse(exchange, 501, "one file for all needs the command: trail report --embed");
}

void runs_answer_sql(struct runs *runs, struct exchange *exchange)
{
    (void)runs;
    exchange_refuse(exchange, 501, "SQL needs the command: trail sql");
}

void source_answer(struct exchange *exchange, struct model *model, const char *folder)
{
    (void)model, (void)folder;
    exchange_refuse(exchange, 501, "a page cannot read source files: trail view --source=DIR");
}

#define HIDDEN(command)
#define TERMINAL(command)
#define VIEWER(command)
#define PAGE(command) command,
static const struct command *const analyses[] = {
#define COMMAND(name, group, where, ...) where(&command_##name)
#include "commands.def"
};

static const struct command *find_analysis(const char *name)
{
    for (size_t i = 0; i < sizeof analyses / sizeof *analyses; i++)
        if (strcmp(analyses[i]->name, name) == 0)
            return analyses[i];
    return NULL;
}

EXPORT(page_run) int page_run(size_t size)
{
    char *argv[MOST_WORDS + 1] = {0};
    int argc = 0;
    for (size_t at = 0; at < size && argc < MOST_WORDS; at += strlen(page.room + at) + 1)
        argv[argc++] = page.room + at;
    const struct command *command = argc >= 2 ? find_analysis(argv[1]) : NULL;
    if (!command)
        return EXIT_USAGE;
    return finish_stdout(command_run(command, argc - 2, argv + 2));
}

/* MARK: The trace */

EXPORT(page_open) const char *page_open(void)
{
    page.name = strdup(page.room);
    if (!page.name)
        return "no memory";
    page.intake = intake_open(&(struct intake_options){.path = page.name}, &page.error);
    page.reserve = malloc(RESERVE);
    page.model = page.intake ? model_open(page.intake, NULL, &page.error) : NULL;
    return page.model ? NULL : page.error.message;
}

EXPORT(page_read) int page_read(void)
{
    if (model_read(page.model))
        return 1;
    free(page.reserve);
    page.reserve = NULL;
    return 0;
}

EXPORT(page_ask) const struct page_answer *page_ask(void)
{
    static const char refused[] = "{\"error\":\"no memory\"}";
    const struct api api = {.traces = {{.model = page.model, .title = page.name}}, .count = 1};
    struct asked asked = {0};
    struct http_answer answer = {0};
    char *query = strchr(page.room, '?'), *path = NULL;
    if (query)
        *query++ = '\0';
    parse_query(&asked, query);
    if (asprintf(&path, "/api/%s", page.room) < 0)
        path = NULL;
    const struct http_request request = {.path = path, .connection = &asked};
    if (path)
        api_answer(&api, &request, &answer);
    free(path);
    if (page.answer.data != refused)
        free((void *)(uintptr_t)page.answer.data);
    page.answer = answer.data
                      ? (struct page_answer){answer.status ? answer.status : 200, answer.type,
                                             answer.data, answer.size}
                      : (struct page_answer){500, "application/json", refused, sizeof refused - 1};
    return &page.answer;
}
