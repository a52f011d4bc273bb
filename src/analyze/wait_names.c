#include "analyze/wait_names.h"

#include <string.h>

#include "base/duration.h"
#include "base/text.h"

/* No count has more of them. */
#define COUNT_DIGITS 18

/* MARK: Texts */

struct wait_text wait_text_of_wait(trail_string text)
{
    size_t words;
    struct wait_text found = {.kind = wire_wait_parse(text.data, text.size, &words),
                              .by = TRAIL_NONE};
    size_t skip = words < text.size ? words + 1 : words;
    found.object = (trail_string){text.data + skip, text.size - skip};
    return found;
}

/* Parses "110ms", or "~110ms". Returns nanoseconds, or -1 if it is not a length. */
static int64_t parse_length(const char *at, const char *end)
{
    return duration_parse(at + (at < end && *at == '~'), end);
}

/* Takes " by 7" off the end of a text. Returns 7; TRAIL_NONE: it does not end so. */
static int64_t take_holder(trail_string *text)
{
    const char *last = text->size ? memrchr(text->data, ' ', text->size) : NULL;
    trail_string before = {text->data, last ? (size_t)(last + 1 - text->data) : 0};
    const char *end = text->data + text->size;
    uint64_t number = 0;
    if (!last || !text_ends(before, WIRE_HELD_BY) || last + 1 == end)
        return TRAIL_NONE;
    for (const char *at = last + 1; at < end; at++) {
        if (!is_digit(*at) || number >= ID_BLOCK)
            return TRAIL_NONE;
        number = 10 * number + (uint64_t)(*at - '0');
    }
    text->size = before.size - strlen(WIRE_HELD_BY);
    return (int64_t)number;
}

struct wait_text wait_text_of_hold(trail_string text)
{
    int64_t by = take_holder(&text);
    const char *last = text.size ? memrchr(text.data, ' ', text.size) : NULL;
    int64_t ns = last ? parse_length(last + 1, text.data + text.size) : -1;
    if (ns < 0)
        return (struct wait_text){0};
    struct wait_text found =
        wait_text_of_wait((trail_string){text.data, (size_t)(last - text.data)});
    found.held_ns = ns;
    found.by = by;
    return found;
}

struct wait_count wait_text_of_count(trail_string text)
{
    struct wait_text hold = wait_text_of_hold(text);
    struct wait_count found = {.kind = hold.kind, .ns = hold.held_ns};
    if (text_begins(text, WIRE_YIELD " ")) {
        const char *last = memrchr(text.data, ' ', text.size);
        const char *count = text.data + strlen(WIRE_YIELD " ");
        hold.object = (trail_string){count, last > count ? (size_t)(last - count) : 0};
        found.ns = parse_length(last + 1, text.data + text.size);
    } else if (hold.kind == WIRE_WAIT_NONE) {
        return found;
    }
    for (size_t i = 0; i < hold.object.size && i < COUNT_DIGITS; i++) {
        char digit = hold.object.data[i];
        if (!is_digit(digit))
            return (struct wait_count){0};
        found.count = 10 * found.count + (uint64_t)(digit - '0');
    }
    return found.ns >= 0 ? found : (struct wait_count){0};
}

bool log_is_recorders(trail_string category, trail_string message)
{
    static const char *const about_waits[] = {WIRE_WAIT_CATEGORY, WIRE_HOLDS_CATEGORY,
                                              WIRE_HOLDS_INFERRED, WIRE_HOLDS_OWNER,
                                              WIRE_HOLDS_ENDED};
    static const char *const after_waits[] = {WIRE_WAIT_TIMED_OUT, WIRE_WAIT_UNTIL};
    static const char *const readiness[] = {WIRE_READINESS_KERNEL, WIRE_READINESS_INFERRED};
    if (text_is(category, WIRE_HELD_CATEGORY))
        return wait_text_of_hold(message).kind != WIRE_WAIT_NONE;
    if (text_is(category, WIRE_COUNTED))
        return wait_text_of_count(message).count > 0;
    if (text_is(category, WIRE_READINESS))
        return text_is_one_of(message, readiness, sizeof readiness / sizeof *readiness);
    if (text_is(category, WIRE_SIGNALLED)) /* a place: "main (app.c:12)" */
        return message.size > 0 && message.data[message.size - 1] == ')';
    return text_is_one_of(category, about_waits, sizeof about_waits / sizeof *about_waits) &&
           (wait_text_of_wait(message).kind != WIRE_WAIT_NONE ||
            text_is_one_of(message, after_waits, sizeof after_waits / sizeof *after_waits));
}

/* MARK: Facts */

/* Adds the parts of a name. Returns NULL if out of memory. */
static const struct wait_facts *facts_put(struct names *names, trail_name wait,
                                          const struct wait_facts *facts)
{
    struct wait_facts *own = arena_alloc(&names->arena, sizeof *own);
    if (!own || wait == 0 || !idmap_put(&names->waits, wait, own)) {
        names->failed = true;
        return NULL;
    }
    *own = *facts;
    return own;
}

/* A sleep has no log: its reason is sufficient. */
static void put_sleep(struct names *names)
{
    trail_name name = names_of_text(names, wire_wait_kinds[WIRE_WAIT_SLEEP].title);
    (void)facts_put(
        names, name,
        &(struct wait_facts){.kind = WIRE_WAIT_SLEEP, .reason = name, .kind_name = name});
}

void wait_names_begin_batch(struct names *names)
{
    names_begin_batch(names);
    if (names->waits.count == 0 &&
        trail_reader_maker(names->reader)->made_by == TRAIL_MADE_BY_RECORD)
        put_sleep(names);
}

trail_name wait_kind_put(struct names *names, enum wire_wait kind, trail_name reason)
{
    trail_name name = names_of_text(names, wire_wait_kinds[kind].title);
    struct wait_facts *known = idmap_find(&names->waits, name);
    struct wait_facts facts = {.kind = kind, .reason = reason, .kind_name = name};
    if (known && known->reason == 0)
        known->reason = reason;
    return known || facts_put(names, name, &facts) ? name : 0;
}

/* The first wait with this text. Returns NULL if out of memory. */
static const struct wait_facts *facts_make(struct names *names, trail_name reason, trail_name wait)
{
    if (names->waits.count == 0)
        put_sleep(names);
    struct wait_text text = wait_text_of_wait(names_text(names, wait));
    trail_name kind = wait_kind_put(names, text.kind, reason);
    const struct wait_facts *known = wait_facts_of(names, wait);
    struct wait_facts facts = {
        .kind = text.kind,
        .reason = reason,
        .kind_name = kind,
        .object = names_put(names, text.object.data, text.object.size),
    };
    return known ? known : facts_put(names, wait, &facts);
}

/* MARK: Logs */

static bool is_wait_log(const struct names *names, const trail_event *log, const char *message)
{
    return log->goroutine >= 0 &&
           text_is(trail_reader_string(names->reader, log->log.category), WIRE_WAIT_CATEGORY) &&
           text_is(trail_reader_string(names->reader, log->log.message), message);
}

bool wait_log_timed_out(const struct names *names, const trail_event *log)
{
    return is_wait_log(names, log, WIRE_WAIT_TIMED_OUT);
}

bool wait_log_until(const struct names *names, const trail_event *log)
{
    return is_wait_log(names, log, WIRE_WAIT_UNTIL);
}

bool announced_log(struct announced *announced, struct names *names, const trail_event *log)
{
    trail_string text = trail_reader_string(names->reader, log->log.message);
    if (log->goroutine < 0 ||
        !text_is(trail_reader_string(names->reader, log->log.category), WIRE_WAIT_CATEGORY) ||
        wait_text_of_wait(text).kind == WIRE_WAIT_NONE)
        return true;
    trail_name name = names_of(names, log->log.message);
    announced->heard = true;
    return name != 0 &&
           idmap_put(&announced->texts, (uint64_t)log->goroutine, (void *)(uintptr_t)name);
}

void announced_take(struct announced *announced, int64_t goroutine)
{
    announced->text = (trail_name)(uintptr_t)idmap_remove(&announced->texts, (uint64_t)goroutine);
    announced->heard = announced->text != 0 || announced->texts.count > 0;
}

trail_name announced_name_of(const struct announced *announced, struct names *names,
                             trail_name reason)
{
    trail_name wait = announced->text;
    if (wait == 0)
        return reason;
    const struct wait_facts *facts = wait_facts_of(names, wait);
    if (!facts)
        facts = facts_make(names, reason, wait);
    /* A name belongs to one reason; another reason, in a damaged trace, is shown itself. */
    return facts && facts->reason == reason ? wait : reason;
}
