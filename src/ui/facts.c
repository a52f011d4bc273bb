/* Facts with a state, as lines or JSON. */
#include "ui/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define LONGEST (16 * 1024)

static const char *const states[] = {
    [FACT_OK] = "ok", [FACT_NOTE] = "note", [FACT_PROBLEM] = "problem"};

void facts_begin(struct facts *facts, bool as_json)
{
    *facts = (struct facts){.as_json = as_json, .json = json_on_stdout()};
}

void facts_open(struct facts *facts, const char *title)
{
    if (facts->as_json)
        json_open(&facts->json, title, '[');
    else
        printf("%s\n", title);
}

void facts_close(struct facts *facts)
{
    if (facts->as_json)
        json_close(&facts->json, ']');
}

static void put_line(enum fact_state state, const char *name, const char *text, const char *todo)
{
    printf("  %-8s %-17s ", states[state], name);
    show_plain(text_from(text));
    if (todo) {
        printf("\n%29sto do: ", "");
        show_plain(text_from(todo));
    }
    putchar('\n');
}

static void put_object(struct json *json, enum fact_state state, const char *name, const char *text,
                       const char *todo)
{
    json_open(json, NULL, '{');
    json_string(json, "name", name);
    json_string(json, "state", states[state]);
    json_string(json, "text", text);
    if (todo)
        json_string(json, "todo", todo);
    json_close(json, '}');
}

void fact(struct facts *facts, enum fact_state state, const char *name, const char *todo,
          const char *format, ...)
{
    char text[LONGEST];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    facts->notes += state == FACT_NOTE;
    facts->problems += state == FACT_PROBLEM;
    if (facts->as_json)
        put_object(&facts->json, state, name, text, todo);
    else
        put_line(state, name, text, todo);
}
