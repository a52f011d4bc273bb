/* Checks parameters; lists of names in answers. */
#include "serve/exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"

enum { MOST_WIDTH = 16384 };

void exchange_refuse(struct exchange *exchange, unsigned status, const char *format, ...)
{
    va_list arguments;
    if (exchange->status != 0)
        return;
    exchange->status = status;
    va_start(arguments, format);
    (void)vsnprintf(exchange->wrong, sizeof exchange->wrong, format, arguments);
    va_end(arguments);
}

/* MARK: Parameters */

const char *parameter_text(const struct exchange *exchange, const char *name)
{
    if (exchange->request)
        return http_query(exchange->request, name);
    for (const char *const *own = exchange->own; *own; own += 2)
        if (strcmp(own[0], name) == 0)
            return own[1];
    return NULL;
}

/* Accepts only digits with an optional -. */
static bool parse_number(const char *text, int64_t *value)
{
    char *end;
    const char *digits = text + (*text == '-');
    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0';
}

int64_t parameter_number(struct exchange *exchange, const char *name, int64_t least, int64_t most,
                         int64_t other)
{
    const char *text = parameter_text(exchange, name);
    int64_t value;
    if (!text)
        return other;
    if (parse_number(text, &value) && value >= least && value <= most)
        return value;
    exchange_refuse(exchange, 400, "%s is a number from %" PRId64 " to %" PRId64, name, least,
                    most);
    return other;
}

int parameter_word(struct exchange *exchange, const char *name, const char *const *words, int other)
{
    const char *text = parameter_text(exchange, name);
    char all[128] = "";
    if (!text)
        return other;
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
        size_t size = strlen(all);
        (void)snprintf(all + size, sizeof all - size, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    exchange_refuse(exchange, 400, "%s is one of: %s", name, all);
    return other;
}

const char *const kind_words[TRAIL_LANE_KINDS + 1] = {"goroutine", "proc", "thread", NULL};

trail_lane_kind parameter_kind(struct exchange *exchange)
{
    return (trail_lane_kind)parameter_word(exchange, "kind", kind_words, TRAIL_LANE_GOROUTINE);
}

struct window parameter_window(struct exchange *exchange, int64_t end_ns)
{
    struct window window;
    if (end_ns < 1)
        end_ns = 1;
    window.from_ns = parameter_number(exchange, "from", 0, MOST_TIME_NS, 0);
    window.to_ns = parameter_number(exchange, "to", 0, MOST_TIME_NS, end_ns);
    window.width = (size_t)parameter_number(exchange, "width", 1, MOST_WIDTH, 1000);
    if (!parameter_text(exchange, "to") && window.to_ns <= window.from_ns)
        window.to_ns = window.from_ns + 1;
    if (window.to_ns <= window.from_ns)
        exchange_refuse(exchange, 400, "from is less than to");
    return window;
}

void parameter_lanes(struct exchange *exchange, struct lane_set *set)
{
    const char *text = parameter_text(exchange, "lanes");
    set->given = text != NULL;
    set->count = 0;
    while (text && *text) {
        char *end;
        errno = 0;
        unsigned long long lane = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
        if (*text < '0' || *text > '9' || errno != 0 || lane > UINT32_MAX ||
            (*end != '\0' && (*end != ',' || end[1] == '\0'))) {
            exchange_refuse(exchange, 400, "lanes is numbers of lanes with commas between: 3,5,9");
            return;
        }
        if (set->count == MOST_LANES) {
            exchange_refuse(exchange, 400, "lanes is at most %d", MOST_LANES);
            return;
        }
        set->lanes[set->count++] = (uint32_t)lane;
        text = *end == ',' ? end + 1 : end;
    }
}

bool lane_set_has(const struct lane_set *set, int64_t lane)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->lanes[i] == lane)
            return true;
    return !set->given;
}

/* MARK: JSON */

int64_t name_list_add(struct name_list *list, trail_name name)
{
    if (!GROW_ZEROED(list->number, list->number_capacity, (size_t)name + 1))
        return -1;
    if (list->number[name] == 0) {
        if (!APPEND(list->names, list->capacity, list->count, name))
            return -1;
        list->number[name] = (uint32_t)list->count;
    }
    return (int64_t)list->number[name] - 1;
}

void name_list_put(struct json *json, struct name_list *list, const trail_lanes *lanes)
{
    json_open(json, "names", '[');
    for (size_t i = 0; i < list->count; i++)
        json_text(json, NULL, trail_lanes_text(lanes, list->names[i]));
    json_close(json, ']');
    free(list->number);
    free(list->names);
    *list = (struct name_list){0};
}
