/*
 * A question to the API and its answer in the making: parameters, each checked before it is used, and
 * JSON.
 *
 * What is wrong with a question is said once, by the first who finds it (question_refuse); who answers
 * asks for all parameters first and gives up if `status` is set.
 */
#ifndef TRAIL_SERVE_QUESTION_H
#define TRAIL_SERVE_QUESTION_H

#include <trail/lanes.h>

#include "base/out.h"
#include "serve/http.h"

struct question {
    const struct http_request *request;
    struct out *out;
    const char *type; /* of the answer; NULL: JSON */
    unsigned status;  /* of the refusal; 0: it is none */
    char wrong[256];
};

void question_refuse(struct question *question, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* MARK: What is asked */

/* The text, or NULL. */
const char *ask_text(const struct question *question, const char *name);

/* A number from `least` to `most`; `other` where it is not there. */
int64_t ask_number(struct question *question, const char *name, int64_t least, int64_t most,
                   int64_t other);

/* Which of the words, ended by NULL, it is; `other` where it is not there. */
int ask_word(struct question *question, const char *name, const char *const *words, int other);

trail_lane_kind ask_kind(struct question *question);

/* Times are less than 2^47: some 39 hours. */
#define MOST_TIME_NS ((INT64_C(1) << 47) - 1)

struct window {
    int64_t from_ns, to_ns; /* from < to */
    size_t width;           /* pixels */
};

/* from, to, width. What is not asked for is all of the trace, which ends at `end_ns`. */
struct window ask_window(struct question *question, int64_t end_ns);

/* Numbers "3,7,12" with commas between; `given` says whether there is such a list. */
enum { MOST_LANES = 2048 };
struct lane_set {
    bool given;
    size_t count;
    uint32_t lanes[MOST_LANES];
};
void ask_lanes(struct question *question, struct lane_set *set);

/* Whether it has the lane; that which is not given has all. */
bool lane_set_has(const struct lane_set *set, int64_t lane);

/* MARK: What is answered */

void put_number(struct out *out, const char *name, int64_t value);
void put_text(struct out *out, const char *name, trail_string value);

/* The same, after a comma. */
void more_number(struct out *out, const char *name, int64_t value);
void more_text(struct out *out, const char *name, trail_string value);
void more_bool(struct out *out, const char *name, bool value);

static inline trail_string c_string(const char *text)
{
    return (trail_string){text, strlen(text)};
}

/* Names that rows tell by their number in a list of their own. Zero-initialised is empty. */
struct name_list {
    uint32_t *number; /* of a name, + 1 */
    size_t number_capacity;
    trail_name *names;
    size_t count, capacity;
};

/* Its number in the list; -1 when memory is out. */
int64_t name_list_add(struct name_list *list, trail_name name);

/* "KEY":["text",...], and frees it. */
void name_list_put(struct out *out, const char *key, struct name_list *list,
                   const trail_lanes *lanes);

#endif
