/*
 * A request to the API and its answer under construction: parameters, each checked before it is
 * used, and JSON.
 *
 * The first error found is reported (exchange_refuse). A function that answers reads all its
 * parameters first, and returns if `status` is set.
 */
#pragma once

#include <trail/lanes.h>

#include "base/json.h"
#include "base/text.h"
#include "serve/http.h"

struct model;

struct exchange {
    const struct http_request
        *request;           /* NULL: made by the server itself, with the parameters `own` */
    const char *const *own; /* alternating names and values, then NULL */
    struct model *model;    /* what is drawn from */
    struct json json;       /* the answer */
    const char *type;       /* of the answer; NULL: JSON */
    unsigned status;        /* HTTP status of the refusal; 0: not refused */
    char wrong[256];
};

/* Refuses the request with an HTTP status and a message, unless it has been refused already. */
void exchange_refuse(struct exchange *exchange, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* MARK: Parameters */

/* Returns the value of a parameter, or NULL. */
const char *parameter_text(const struct exchange *exchange, const char *name);

/* Returns a number from `least` to `most`; `other` if the parameter is missing. */
int64_t parameter_number(struct exchange *exchange, const char *name, int64_t least, int64_t most,
                         int64_t other);

/* Returns the index of the value in `words`, NULL-terminated; `other` if the parameter is
 * missing. */
int parameter_word(struct exchange *exchange, const char *name, const char *const *words,
                   int other);

extern const char *const kind_words[TRAIL_LANE_KINDS + 1];

/* Returns the parameter kind: goroutine (the default), proc or thread. */
trail_lane_kind parameter_kind(struct exchange *exchange);

/* Times are less than 2^47 ns: about 39 hours. */
#define MOST_TIME_NS ((INT64_C(1) << 47) - 1)

struct window {
    int64_t from_ns, to_ns; /* from < to */
    size_t width;           /* pixels */
};

/* Returns the parameters from, to and width. The default is the whole trace, which ends at
 * `end_ns`. */
struct window parameter_window(struct exchange *exchange, int64_t end_ns);

/* Lane numbers as in "3,7,12"; `given` is false if the parameter is missing. */
enum { MOST_LANES = 2048 };
struct lane_set {
    bool given;
    size_t count;
    uint32_t lanes[MOST_LANES];
};
void parameter_lanes(struct exchange *exchange, struct lane_set *set);

/* Whether the set contains the lane. A set that was not given contains all lanes. */
bool lane_set_has(const struct lane_set *set, int64_t lane);

/* MARK: JSON */

/* A list of names that rows refer to by index. Zero-initialised: empty. */
struct name_list {
    uint32_t *number; /* index + 1, by name; 0: not in the list */
    size_t number_capacity;
    trail_name *names;
    size_t count, capacity;
};

/* Returns the index of the name in the list; -1 if out of memory. */
int64_t name_list_add(struct name_list *list, trail_name name);

/* Writes the member "names", an array of the texts, and frees the list. */
void name_list_put(struct json *json, struct name_list *list, const trail_lanes *lanes);
