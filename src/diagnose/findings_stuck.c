/* Findings: waits that had not ended when the trace did, and deadlocks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/findings.h"
#include "diagnose/stuck.h"
#include "diagnose/waits.h"
#include "words/function_name.h"

#define OPEN_LEAST INT64_C(100000000) /* a wait that has not ended */
#define PLACE_SHARE                                                                                \
    0.2 /* of the time, one that may be for work: of which only the place is known */
#define TICKS_SHARE 0.3 /* the same, while others still sleep from time to time */
#define WRITE_SHARE 0.5 /* the same, one to write, which a reader outside the program may delay */
#define MOST_OPEN   3
#define MORE_SIZE   32
#define LEAK_LEAST  20
#define MOST_NAMED  3 /* of a deadlock, in its heading */
#define CIRCLE_LEAST                                                                               \
    INT64_C(1000000) /* each wait of a deadlock: one with a time limit may still end */

enum { NAME_SIZE = 256 };

struct stuck_words {
    char text[NAME_SIZE + 8];
};

/* "thread forward (2)" */
static struct stuck_words task(const struct findings *findings, trail_name name, int64_t goroutine)
{
    struct stuck_words words;
    char buf[FUNCTION_NAME_SIZE];
    trail_string shown = function_name_short(text_of(findings, name), buf);
    (void)snprintf(words.text, NAME_SIZE, "%s %.*s (%" PRId64 ")", word(findings, TERM_task),
                   (int)(shown.size < 100 ? shown.size : 100), shown.data, goroutine);
    return words;
}

/* "mutex a_mu" */
static struct stuck_words lock_of(const struct findings *findings, const struct stuck_wait *wait)
{
    struct stuck_words words;
    trail_string kind = text_of(findings, wait->kind);
    trail_string object = names_text(&findings->analysis->names, wait->object);
    (void)snprintf(words.text, NAME_SIZE, "%.*s%s%.*s", (int)(kind.size < 40 ? kind.size : 40),
                   kind.data, object.size ? " " : "", (int)(object.size < 150 ? object.size : 150),
                   object.size ? object.data : "");
    return words;
}

/* "for mutex a_mu", or "for a lock at main.work (main.go:42)" where only the place is known. */
static struct stuck_words wanted_by(const struct findings *findings, const struct stuck_wait *wait)
{
    struct stuck_words words;
    char *text = words.text;
    size_t size = sizeof words.text;
    static const char *const wanted[] = {[STUCK_LOCK] = "for a lock",
                                         [STUCK_CONDITION] = "in sync.(*Cond).Wait",
                                         [STUCK_SEND] = "to send to a channel",
                                         [STUCK_JOIN] = "for the exit of",
                                         [STUCK_READ] = "to read from",
                                         [STUCK_WRITE] = "to write to",
                                         [STUCK_CHILD] = "for the exit of process"};
    trail_string object = names_text(&findings->analysis->names, wait->object),
                 place = names_text(&findings->analysis->names, wait->place);
    if (wait->wanted == STUCK_POOL)
        (void)snprintf(text, size, "for %.*s at %.*s", SHOWN(object),
                       (int)(place.size < 150 ? place.size : 150), place.data);
    else if (wait->kind == 0)
        (void)snprintf(text, size, "%s at %.*s", wanted[wait->wanted],
                       (int)(place.size < 200 ? place.size : 200), place.data);
    else if (wait->wanted == STUCK_LOCK)
        (void)snprintf(text, size, "for %.250s", lock_of(findings, wait).text);
    else
        (void)snprintf(text, size, "%s %.*s", wanted[wait->wanted], SHOWN(object));
    return words;
}

/* The wait in the cycle whose lock the goroutine of `wait` holds. */
static const struct stuck_wait *waits_for(const struct stuck *stuck, const struct stuck_wait *wait)
{
    const struct stuck_wait *other = wait;
    while (&stuck->waits[other->next] != wait)
        other = &stuck->waits[other->next];
    return other;
}

/* Whether the wait is at an end of a pipe or connection. */
static bool has_end(const struct stuck_wait *wait)
{
    return wait->wanted == STUCK_READ || wait->wanted == STUCK_WRITE;
}

/* "holds mutex a_mu", "has not ended": what a goroutine keeps from the one that waits for it. */
static struct stuck_words kept_by(const struct findings *findings, const struct stuck_wait *wait)
{
    struct stuck_words words = {.text = "has not ended"};
    trail_string object = names_text(&findings->analysis->names, wait->object);
    if (has_end(wait))
        (void)snprintf(words.text, sizeof words.text, "has the other end of %.*s", SHOWN(object));
    else if (wait->wanted != STUCK_JOIN && wait->wanted != STUCK_CHILD)
        (void)snprintf(words.text, sizeof words.text, "holds %.250s", lock_of(findings, wait).text);
    return words;
}

/* The number of waits of a circle from one on to another. */
static size_t waits_between(const struct stuck *stuck, const struct stuck_wait *from,
                            const struct stuck_wait *to)
{
    size_t count = 1;
    for (; &stuck->waits[from->next] != to; from = &stuck->waits[from->next])
        count++;
    return count;
}

/* "thread a (2) holds mutex a_mu and waits for mutex b_mu; ...", or "... has not ended and ...". */
static void put_circle(const struct findings *findings, const struct stuck_wait *first, char *text,
                       size_t size)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait *wait = first;
    size_t used = 0;
    do {
        const struct stuck_wait *other = waits_for(stuck, wait);
        int added = snprintf(
            text + used, size - used, "%s%s %s and waits %s", wait == first ? "" : "; ",
            task(findings, wait->name, wait->goroutine).text, kept_by(findings, other).text,
            wait->next == (size_t)(wait - stuck->waits) && !has_end(wait)
                ? "for it"
                : wanted_by(findings, wait).text);
        used += added > 0 && (size_t)added < size - used ? (size_t)added : 0;
        wait = &stuck->waits[wait->next];
    } while (wait != first && size - used > (size_t)3 * NAME_SIZE);
    if (wait != first)
        (void)snprintf(text + used, size - used, "; and %zu more",
                       waits_between(stuck, wait, first));
}

/* "thread a (2), thread b (3) and thread c (4)"; of more than three the first and how many more. */
static void put_members(const struct findings *findings, const struct stuck_wait *first, char *text,
                        size_t size)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait *wait = first;
    size_t count = waits_between(stuck, first, first), used = 0;
    for (size_t i = 0; i < count && i < MOST_NAMED; i++, wait = &stuck->waits[wait->next]) {
        const char *before = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", before,
                                 task(findings, wait->name, wait->goroutine).text);
    }
    if (count > MOST_NAMED)
        (void)snprintf(text + used, size - used, " and %zu more", count - MOST_NAMED);
}

/* What a list leaves out. */
static void put_more(char text[MORE_SIZE], size_t count)
{
    (void)snprintf(text, MORE_SIZE, " and %zu more", count);
}

static void explain_ticks(struct findings *findings)
{
    finding_explain(findings, "The %s that still run only sleep now and then, and have woken none.",
                    word(findings, TERM_tasks));
}

/* Explains where the first of a circle wait, unless that is not known of one. */
static void explain_places(struct findings *findings, const struct stuck_wait *first)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait *wait = first;
    char text[MOST_NAMED * NAME_SIZE] = "";
    trail_name last = 0;
    size_t count = 0, used = 0;
    do {
        trail_string place = names_text(&findings->analysis->names, wait->place);
        if (wait->place == 0)
            return;
        const char *before = &stuck->waits[wait->next] == first ? " and " : ", ";
        if (wait->place != last)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", used == 0 ? "" : before,
                                 (int)(place.size < 200 ? place.size : 200), place.data);
        last = wait->place;
        wait = &stuck->waits[wait->next];
    } while (++count < MOST_NAMED && wait != first);
    char more[MORE_SIZE] = "";
    if (wait != first)
        put_more(more, waits_between(stuck, wait, first));
    finding_explain(findings, "The wait%s at %s%s.", count == 1 ? " is" : "s are", text, more);
}

/* Returns the advice for a circle with these kinds of waits. */
static const char *remedy(const bool waits[STUCK_CHILD + 1], bool by_itself)
{
    bool exits = waits[STUCK_JOIN] || waits[STUCK_CHILD];
    if (waits[STUCK_LOCK])
        return by_itself ? "Release the lock before it is taken again."
               : exits   ? "Release the lock before waiting for the exit."
               : waits[STUCK_READ] || waits[STUCK_WRITE]
                   ? "Release the lock before reading or writing."
                   : "Take locks in the same order everywhere.";
    if (waits[STUCK_WRITE])
        return exits ? "Read what it writes before waiting for its exit."
                     : "Read and write at the same time.";
    if (waits[STUCK_READ])
        return exits       ? "Close the other end before waiting for the exit."
               : by_itself ? "Close the other end where it is not needed."
                           : "Let one of them write first, and close ends that are not needed.";
    return "Let one of them end without waiting for another one.";
}

void finding_deadlock(struct findings *findings)
{
    const struct stuck *stuck = findings->stuck;
    for (size_t circle = 1; circle <= stuck->circles; circle++) {
        const struct stuck_wait *first = NULL;
        char text[4 * NAME_SIZE], members[MOST_NAMED * (NAME_SIZE + 8) + 40];
        int64_t ns = INT64_MAX;
        bool inferred = false, by_use = false, waits[STUCK_CHILD + 1] = {false};
        EACH(const struct stuck_wait, wait, stuck->waits, stuck->count) {
            if (wait->circle != circle)
                continue;
            inferred = inferred || wait->inferred;
            by_use = by_use || wait->by_use;
            waits[wait->wanted] = true;
            first = first ? first : wait;
            ns = wait->ns < ns ? wait->ns : ns;
        }
        if (!first || ns < CIRCLE_LEAST)
            continue;
        trail_longest moment = {first->ns, first->begin_ns, first->goroutine};
        put_circle(findings, first, text, sizeof text);
        put_members(findings, first, members, sizeof members);
        bool by_itself = &stuck->waits[first->next] == first;
        const struct finding_of of = {
            "deadlock",        FINDING_DEADLOCK,        ns,
            .moment = &moment, .function = first->name, .object = first->object};
        finding_say(findings, &of, "Deadlock of %s for %s when the trace ended", members,
                    duration(ns).text);
        finding_explain(findings, "%s%s.", text, inferred ? " (holders inferred from stacks)" : "");
        if (by_use)
            finding_explain(findings, "No other %s was seen to use that end of the pipe.",
                            word(findings, TERM_task));
        explain_places(findings, first);
        if (stuck->ticks_beside)
            explain_ticks(findings);
        finding_advise(findings, "%s", remedy(waits, by_itself));
    }
}

/* Longest first. */
static int by_length(const void *a, const void *b)
{
    const struct stuck_wait *x = *(const struct stuck_wait *const *)a;
    const struct stuck_wait *y = *(const struct stuck_wait *const *)b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->goroutine < y->goroutine ? -1 : 1;
}

/* Explains what is known of the end of a wait that did not end; and where it is, unless the heading
 * has that. */
static void explain_open(struct findings *findings, const struct stuck_wait *wait)
{
    trail_string place = names_text(&findings->analysis->names, wait->place),
                 woke_other = names_text(&findings->analysis->names, wait->woke_other),
                 readers = names_text(&findings->analysis->names, wait->read_since);
    if (wait->read_since != 0)
        finding_explain(findings,
                        "Readers kept it out: others took it to read meanwhile, last at %.*s, and "
                        "their holds overlap.",
                        SHOWN(readers));
    else if (wait->holder != TRAIL_NONE)
        finding_explain(
            findings, "It is held by %s%s.", task(findings, wait->holder_name, wait->holder).text,
            wait->ended      ? ", which has ended without releasing it"
            : wait->inferred ? ", inferred from its stack"
            : wait->by_owner ? ", which took it before the recording or without a record"
                             : "");
    else if (wait->can_be_held && woke_other.size > 0)
        finding_explain(findings, "It went to others meanwhile: %.*s released it last.",
                        SHOWN(woke_other));
    else if (wait->can_be_held)
        finding_explain(findings, "Its holder is not recorded.");
    else if (wait->kind == 0 && wait->wanted == STUCK_CONDITION)
        finding_explain(findings,
                        "No wait there has ended: either the wake-up came before the wait "
                        "and was lost, or nothing wakes it.");
    else if (wait->wanted == STUCK_POOL)
        finding_explain(findings, "Nothing was given back to it meanwhile: look for rows that are "
                                  "not closed, permits that are not released, and functions that "
                                  "ask for one while they have another.");
    else if (wait->kind == 0)
        finding_explain(findings, "Nothing has received it.");
    if (wait->kind != 0 && place.size > 0)
        finding_explain(findings, "The wait is at %.*s.", SHOWN(place));
}

/* Whether both wait for the same; where only the place is known, whether both wait there. */
static bool same_awaited(const struct stuck_wait *a, const struct stuck_wait *b)
{
    return a->wanted == b->wanted && a->kind == b->kind && a->object == b->object &&
           (a->kind != 0 || a->place == b->place);
}

/* `others`: as many wait for the same, for a shorter time. */
static void say_open(struct findings *findings, const struct stuck_wait *wait, size_t others)
{
    trail_longest moment = {wait->ns, wait->begin_ns, wait->goroutine};
    const struct finding_of of = {"open-wait",
                                  FINDING_HANGS,
                                  wait->ns,
                                  .moment = &moment,
                                  .function =
                                      wait->holder != TRAIL_NONE ? wait->holder_name : wait->name,
                                  .object = wait->object};
    finding_say(findings, &of, "%s had waited %s for %s when the trace ended",
                task(findings, wait->name, wait->goroutine).text, wanted_by(findings, wait).text,
                duration(wait->ns).text);
    explain_open(findings, wait);
    if (others > 0)
        finding_explain(findings, "%zu other %s waited %s as well.", others,
                        word(findings, others == 1 ? TERM_task : TERM_tasks),
                        wait->kind ? "for it" : "there");
    if (others > 0 && stuck_is_at_lock_of_go(wait))
        finding_explain(findings,
                        "No wait there has ended since: the lock was not released, or they "
                        "hold each other's (a deadlock).");
    if (wait->creator != TRAIL_NONE) {
        finding_explain(findings, "Meanwhile %s, which created it, waits for a WaitGroup at %.*s.",
                        task(findings, wait->creator_name, wait->creator).text,
                        NAMED(findings, wait->creator_place));
    }
}

/* Adds a finding for each of the first that are waited for. `waits` are sorted by length. */
static void say_each_open(struct findings *findings, const struct stuck_wait **waits, size_t count)
{
    for (size_t i = 0, said = 0; i < count && said < MOST_OPEN; i++) {
        size_t others = 0;
        for (size_t n = i + 1; n < count && waits[i]; n++)
            if (waits[n] && same_awaited(waits[i], waits[n])) {
                waits[n] = NULL;
                others++;
            }
        if (!waits[i])
            continue;
        say_open(findings, waits[i], others);
        said++;
    }
}

/* Adds "goroutine main.work (7) at main.work (main.go:42)" to a list. */
static void put_open(const struct findings *findings, const struct stuck_wait *wait, char *text,
                     size_t size)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s%s at %.*s", used > 0 ? ", " : "",
                   task(findings, wait->name, wait->goroutine).text, NAMED(findings, wait->place));
}

/*
 * A goroutine waits for a lock, and another one at a channel for what the first kind did so far: it
 * may hold the lock.
 */
static void say_asked(struct findings *findings, const struct stuck_wait *wait)
{
    trail_longest moment = {wait->ns, wait->begin_ns, wait->goroutine};
    trail_string at = text_of(findings, wait->asks_place);
    int64_t ns = wait->ns < wait->asks_ns ? wait->ns : wait->asks_ns;
    struct stuck_words wanted = wanted_by(findings, wait);
    const struct finding_of of = {
        "maybe-deadlock",     FINDING_DEADLOCK, ns, .moment = &moment, .function = wait->asks_name,
        .object = wait->place};
    finding_say(findings, &of,
                "Possibly a deadlock of %s and %s: when the trace ended, they had waited for %s",
                task(findings, wait->asks_name, wait->asks).text,
                task(findings, wait->name, wait->goroutine).text, duration(ns).text);
    if (wait->asks_unseen)
        finding_explain(findings,
                        "The former waits to send to a channel at %.*s; the latter, which ended "
                        "its wait before, waits %s. The trace does not record whether the former "
                        "holds that lock.",
                        SHOWN(at), wanted.text);
    else
        finding_explain(findings,
                        "The former waits to %s a channel at %.*s, at the other end of which only "
                        "%.*s was seen; the latter waits %s. The trace does not record whether "
                        "the former holds that lock.",
                        wait->asks_sends ? "send to" : "receive from", SHOWN(at),
                        NAMED(findings, wait->name), wanted.text);
    finding_advise(findings, "If it does, release it before that.");
}

/* Says that these waits for locks may be a deadlock: the longest first, after which the others may
 * have begun to wait. */
static void say_maybe_deadlock(struct findings *findings, const struct stuck_wait **waits,
                               size_t count)
{
    char text[MOST_OPEN * 2 * NAME_SIZE] = "";
    for (size_t i = 0; i < count && i < MOST_OPEN; i++)
        put_open(findings, waits[i], text, sizeof text);
    int64_t shortest_ns = waits[count - 1]->ns;
    char more[MORE_SIZE] = "";
    if (count > MOST_OPEN)
        put_more(more, count - MOST_OPEN);
    trail_longest moment = {waits[0]->ns, waits[0]->begin_ns, waits[0]->goroutine};
    const struct finding_of of = {
        "maybe-deadlock",  FINDING_DEADLOCK,           shortest_ns,
        .moment = &moment, .function = waits[0]->name, .object = waits[0]->place};
    finding_say(
        findings, &of,
        "Possibly a deadlock: when the trace ended, %zu %s had waited for locks at several places",
        count, word(findings, TERM_tasks));
    finding_explain(findings,
                    "They had waited %s to %s, and no wait there had ended meanwhile: %s%s. The "
                    "trace does not record which locks they hold.",
                    duration(shortest_ns).text, duration(waits[0]->ns).text, text, more);
}

/*
 * Several goroutines have waited for locks for long at several places, and none of these waits
 * ended meanwhile: without holders that is all that can be known of a deadlock. Writes these waits,
 * longest first, to `waits`, or only the one for a lock that a goroutine at a channel may hold.
 * Returns their number, 0: there is no such deadlock.
 */
static size_t maybe_deadlock(const struct stuck *stuck, const struct stuck_wait **waits)
{
    size_t count = 0;
    bool several = false;
    for (size_t i = 0; i < stuck->count; i++) {
        const struct stuck_wait *wait = &stuck->waits[i];
        if (wait->kind != 0 || wait->wanted != STUCK_LOCK || !wait->unmoved ||
            wait->ns < OPEN_LEAST)
            continue;
        if (wait->asks != TRAIL_NONE && wait->asks_ns >= OPEN_LEAST) {
            waits[0] = wait;
            return 1;
        }
        waits[count++] = wait;
        several |= wait->place != waits[0]->place;
    }
    qsort((void *)waits, count, sizeof(void *), by_length);
    return several ? count : 0;
}

void finding_maybe_deadlock(struct findings *findings)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait **waits = calloc(stuck->count + 1, sizeof(void *));
    size_t count = waits ? maybe_deadlock(stuck, waits) : 0;
    if (!waits)
        findings->failed = true;
    else if (count == 1)
        say_asked(findings, waits[0]);
    else if (count > 1)
        say_maybe_deadlock(findings, waits, count);
    free((void *)waits);
}

/* Whether a possible deadlock of these waits names the place. */
static bool names_place(const struct stuck_wait **waits, size_t count, trail_name place)
{
    for (size_t i = 0; i < count && i < MOST_OPEN; i++)
        if (waits[i]->place == place)
            return true;
    return false;
}

/* Whether a wait that has not ended is worth a finding by its length. */
static bool is_long(const struct findings *findings, const struct stuck_wait *wait)
{
    double share = wait->wanted == STUCK_WRITE             ? WRITE_SHARE
                   : wait->kind == 0 && !wait->can_be_held ? PLACE_SHARE
                                                           : 0;
    return wait->ns >= OPEN_LEAST && time_share(findings, wait->ns) >= share;
}

/* Whether that goroutine waits for a lock in Go, and no wait there has ended since. */
static bool waits_for_lock(const struct stuck *stuck, int64_t goroutine)
{
    const struct stuck_wait key = {.goroutine = goroutine};
    const struct stuck_wait *wait =
        bsearch(&key, stuck->waits, stuck->count, sizeof key, stuck_by_goroutine);
    return wait && stuck_is_at_lock_of_go(wait);
}

/* Explains why the goroutines that a WaitGroup is for do not end the wait. */
static void explain_group(struct findings *findings, const struct stuck_group *group)
{
    char at[NAME_SIZE] = "";
    trail_string start = text_of(findings, group->start),
                 created = text_of(findings, group->created_at);
    if (group->left == TRAIL_NONE) {
        finding_explain(findings,
                        "All %s %s of %.*s created at %.*s have ended, so Done was called "
                        "less often than Add asked for.",
                        counted(group->created).text, word(findings, TERM_tasks), SHOWN(start),
                        SHOWN(created));
        finding_advise(findings, "Call it with defer.");
        return;
    }
    trail_string left_place = text_of(findings, group->left_place);
    if (group->receive && group->left_reason == findings->waits->condition) {
        trail_string name = text_of(findings, group->name);
        finding_explain(findings,
                        "%s of the %s %s of %.*s created at %.*s %s ended, the other%s in "
                        "sync.(*Cond).Wait at %.*s, where only %.*s was seen to wake one.",
                        counted(group->ended).text, counted(group->created).text,
                        word(findings, TERM_tasks), SHOWN(start), SHOWN(created),
                        group->ended == 1 ? "has" : "have",
                        group->created - group->ended == 1 ? " one waits" : "s wait",
                        SHOWN(left_place), SHOWN(name));
        finding_advise(findings,
                       "Wake all that wait (Broadcast) if the change is for all of them.");
        return;
    }
    if (group->receive) {
        trail_string place = left_place,
                     name = text_of(findings, group->own ? group->start : group->name);
        finding_explain(findings,
                        "None of the %s %s of %.*s created at %.*s has ended: they wait at %.*s to "
                        "receive from a channel, to which only %.*s was seen to send.",
                        counted(group->created).text, word(findings, TERM_tasks), SHOWN(start),
                        SHOWN(created), SHOWN(place), SHOWN(name));
        finding_advise(findings,
                       group->own
                           ? "Give back what each takes on every path, or close the channel."
                           : "Close the channel when all is sent: their loops never end else.");
        return;
    }
    if (group->left_place)
        (void)snprintf(at, sizeof at, " at %.*s", SHOWN(left_place));
    finding_explain(findings, "%s of the %s %s of %.*s created at %.*s %s ended, %s has not.",
                    counted(group->ended).text, counted(group->created).text,
                    word(findings, TERM_tasks), SHOWN(start), SHOWN(created),
                    group->ended == 1 ? "has" : "have",
                    task(findings, group->left_name, group->left).text);
    if (group->stay > 0)
        finding_explain(findings, "It waits for ever, for a nil channel or in an empty select.");
    else if (group->sleeps)
        finding_explain(findings, "It sleeps%s.", at);
    else
        finding_explain(findings, "It has waited (%.*s)%s for %s.",
                        NAMED(findings, group->left_reason), at, duration(group->left_ns).text);
    if (!waits_for_lock(findings->stuck, group->left))
        return;
    finding_explain(
        findings,
        "That is for a lock. The trace does not record whether %s holds it, which would "
        "be a deadlock.",
        task(findings, group->name, group->goroutine).text);
    finding_advise(findings, "If it does, release the lock before the wait.");
}

/* A WaitGroup is waited for, and nothing goes on that would end that. */
void finding_group_never_done(struct findings *findings)
{
    const struct stuck_group *group = &findings->stuck->group;
    if (!findings->stuck->has_group || group->quiet_ns < OPEN_LEAST ||
        time_share(findings, group->quiet_ns) < PLACE_SHARE)
        return;
    trail_longest moment = {group->ns, group->begin_ns, group->goroutine};
    const struct finding_of of = {"never-done",
                                  FINDING_HANGS,
                                  group->ns,
                                  .moment = &moment,
                                  .function = group->start,
                                  .object = group->place};
    finding_say(findings, &of, "%s had waited for a WaitGroup at %.*s for %s when the trace ended",
                task(findings, group->name, group->goroutine).text, NAMED(findings, group->place),
                duration(group->ns).text);
    explain_group(findings, group);
}

/* Whether the wait of the goroutine is reported as what keeps another one waiting. */
static bool keeps_group(const struct findings *findings, int64_t goroutine)
{
    return finding_was_said(findings, "never-done") && findings->stuck->group.left == goroutine;
}

/* A goroutine of Go waits for a nil channel. */
void finding_nil_channel(struct findings *findings)
{
    const struct at_nil_channel *at = &findings->waits->at_nil_channel;
    int64_t ns = ns_between(at->begin_ns, findings->analysis->span.end_ns);
    bool all_said =
        keeps_group(findings, at->goroutine) && at->count <= findings->stuck->group.stay;
    if (at->count == 0 || ns < OPEN_LEAST || all_said)
        return;
    trail_longest moment = {ns, at->begin_ns, at->goroutine};
    const struct finding_of of = {"open-wait",       FINDING_HANGS,        ns,
                                  .moment = &moment, .function = at->name, .object = at->place};
    finding_say(
        findings, &of, "%s had waited to %s a nil channel at %.*s for %s when the trace ended",
        task(findings, at->name, at->goroutine).text, at->sends ? "send to" : "receive from",
        NAMED(findings, at->place), duration(ns).text);
    finding_explain(findings, "Nothing ends such a wait.");
    if (at->count > 1)
        finding_explain(findings, "%s %s wait for a nil channel.", counted(at->count).text,
                        word(findings, TERM_tasks));
    finding_advise(findings, "Make the channel before it is used.");
}

/* Whether it is a wait that only counts if it never ends. */
static bool may_be_for_work(const struct stuck_wait *wait)
{
    return wait->can_go && (wait->wanted == STUCK_READ || wait->wanted == STUCK_CHILD);
}

/* Whether the holder waits to accept: processes of a server take turns, and a turn lasts until the
 * next connection. */
static bool takes_turns(const struct findings *findings, const struct stuck_wait *wait)
{
    const struct idmap *alive = &findings->analysis->goroutines.follow.alive;
    const struct goroutine *holder =
        wait->holder >= 0 ? idmap_find(alive, (uint64_t)wait->holder) : NULL;
    const struct wait_facts *its =
        holder ? wait_facts_of(&findings->analysis->names, holder->reason) : NULL;
    return its && its->kind == WIRE_WAIT_ACCEPT;
}

/* Waits of a deadlock are reported with it, and those of a program in which none is woken. */
void finding_open_waits(struct findings *findings)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait **longest = calloc(stuck->count + 1, sizeof(void *));
    const struct stuck_wait **said = calloc(stuck->count + 1, sizeof(void *));
    size_t count = 0, all_said = said ? maybe_deadlock(stuck, said) : 0;
    bool never_woken = finding_was_said(findings, "never-woken");
    findings->failed |= !longest || !said;
    for (size_t i = 0; longest && said && i < stuck->count; i++)
        if (!stuck->waits[i].circle && stuck->waits[i].wanted != STUCK_JOIN &&
            !may_be_for_work(&stuck->waits[i]) && !takes_turns(findings, &stuck->waits[i]) &&
            (stuck->waits[i].wanted == STUCK_POOL ||
             !finding_names(findings, "leak", stuck->waits[i].name)) &&
            !keeps_group(findings, stuck->waits[i].goroutine) &&
            !(stuck_is_at_lock_of_go(&stuck->waits[i]) &&
              names_place(said, all_said, stuck->waits[i].place)) &&
            is_long(findings, &stuck->waits[i]) && (stuck->waits[i].can_be_held || !never_woken))
            longest[count++] = &stuck->waits[i];
    if (longest)
        qsort((void *)longest, count, sizeof(void *), by_length);
    say_each_open(findings, longest, count);
    free((void *)longest);
    free((void *)said);
}

/* Another wait at the end, for a lock that the goroutine of `wait` holds; NULL: none is known. */
static const struct stuck_wait *kept_waiting(const struct stuck *stuck,
                                             const struct stuck_wait *wait)
{
    for (size_t i = 0; i < stuck->count; i++)
        if (stuck->waits[i].wanted == STUCK_LOCK && stuck->waits[i].holder == wait->goroutine)
            return &stuck->waits[i];
    return NULL;
}

/* Explains that it holds what another one waits for, which may be what would wake it. */
static void explain_kept(struct findings *findings, const struct stuck_wait *kept)
{
    finding_explain(findings, "It holds %s, for which %s waits.", lock_of(findings, kept).text,
                    task(findings, kept->name, kept->goroutine).text);
    finding_advise(findings, "Release the lock before that wait.");
}

/* Why a wait never ends. Only a condition variable, and what is like it, forgets a wake-up that
 * comes before the wait. */
struct never {
    const char *kind, *nothing, *remedy;
};

static const struct never *never_of(trail_string kind)
{
    static const struct never reasons[] = {
        {"semaphore", "Nothing posts it any more: fewer posts came than waits",
         "Post it on each path, also where the work fails."},
        {"future", "Nothing sets it",
         "Set each promise, or destroy it, also where its work fails."},
        {"barrier", "Fewer threads arrive than it waits for",
         "Initialise it with the number of threads that arrive."},
        {"latch", "Fewer count it down than it waits for",
         "Count it down on each path, also where the work fails."},
        {"channel receive", "Nothing sends any more, and nothing closes the channel",
         "Close the channel after the last value."},
        {"channel send", "Nothing receives any more",
         "Receive until the channel is closed, or do not send what nothing receives."},
        {NULL, "Either the wake-up came before the wait and was lost, or nothing wakes it",
         "Check the condition before the wait, and wake at each change of it."},
    };
    const struct never *never = reasons;
    while (never->kind && !text_is(kind, never->kind))
        never++;
    return never;
}

/* Explains why nothing wakes it. */
static void explain_never_woken(struct findings *findings, const struct stuck_wait *wait)
{
    trail_string signalled = names_text(&findings->analysis->names, wait->signalled),
                 woke_other = names_text(&findings->analysis->names, wait->woke_other);
    if (signalled.size == 0 && wait->wanted == STUCK_READ) {
        bool both = text_is(names_text(&findings->analysis->names, wait->object), "[eventfd]");
        finding_explain(findings, "Unless another process has %s too, nothing will come.",
                        both ? "it" : "the other end");
        finding_advise(findings, "%s it, or end the wait before waiting for the exit of its %s.",
                       both ? "Write to" : "Close", word(findings, TERM_task));
        return;
    }
    trail_string other = names_text(&findings->analysis->names, wait->other_place);
    if (other.size > 0) {
        finding_explain(findings,
                        "Others wait for it at %.*s: a signal may have woken one of these instead.",
                        SHOWN(other));
        finding_advise(findings,
                       "Wake all that wait, or use a condition variable for each of them.");
        return;
    }
    if (signalled.size == 0 && woke_other.size > 0) {
        finding_explain(findings,
                        "%.*s ended another %s's wait for it meanwhile, but not this one.",
                        SHOWN(woke_other), word(findings, TERM_task));
        finding_advise(findings, "Wake all that wait if the change is for all of them.");
        return;
    }
    if (signalled.size == 0 && wait->for_own) {
        finding_explain(findings, "Such waits were ended by %s of %.*s so far, all of which wait.",
                        word(findings, TERM_tasks), NAMED(findings, wait->name));
        finding_advise(findings, "Do not wait in a task for another task of the same pool.");
        return;
    }
    const struct stuck_wait *kept = kept_waiting(findings->stuck, wait);
    if (signalled.size == 0 && kept) {
        explain_kept(findings, kept);
        return;
    }
    const struct never *never = never_of(text_of(findings, wait->kind));
    if (signalled.size)
        finding_explain(findings, "%.*s signalled it before the wait, when no %s waited.",
                        SHOWN(signalled), word(findings, TERM_task));
    else
        finding_explain(findings, "%s.", never->nothing);
    finding_advise(findings, "%s", never->remedy);
}

/* Every goroutine waits for another one, and at least one of them for what none holds. */
void finding_never_woken(struct findings *findings)
{
    const struct stuck *stuck = findings->stuck;
    const struct stuck_wait *wait = &stuck->still;
    if (!stuck->has_still || stuck->still_ns < OPEN_LEAST || stuck->circles > 0 ||
        (stuck->ticks && time_share(findings, stuck->still_ns) < TICKS_SHARE))
        return;
    trail_longest moment = {wait->ns, wait->begin_ns, wait->goroutine};
    const struct finding_of of = {
        "never-woken",     FINDING_DEADLOCK,       wait->ns,
        .moment = &moment, .function = wait->name, .object = wait->object};
    struct stuck_words lock = wanted_by(findings, wait);
    trail_string place = text_of(findings, wait->place);
    bool placed = memmem(lock.text, strlen(lock.text), place.data, place.size) != NULL;
    finding_say(findings, &of, "%s had waited %s%s%.*s for %s when the trace ended",
                task(findings, wait->name, wait->goroutine).text, lock.text, placed ? "" : " at ",
                placed ? 0 : SHOWN_SIZE(place), place.data, duration(wait->ns).text);
    finding_explain(
        findings, "No other %s was left to wake it%s%s%s.", word(findings, TERM_task),
        stuck->has_joiner ? " (" : "",
        stuck->has_joiner ? task(findings, stuck->joiner.name, stuck->joiner.goroutine).text : "",
        stuck->has_joiner ? " waits for a thread to exit)" : "");
    if (stuck->ticks)
        explain_ticks(findings);
    explain_never_woken(findings, wait);
}

/* MARK: Leaks */

/* Created throughout, hardly any ended, and most blocked for long. The runtime keeps its own. */
void finding_leaks(struct findings *findings)
{
    GROUPS_EACH(group, findings->waits) {
        uint64_t late = group->stuck - group->stuck_early;
        /* Those that wait to send serve no other any more, however many have ended. */
        bool few_end = group->row.ended * 10 <= group->row.created ||
                       group->stuck_sends * 10 >= group->stuck * 9;
        if (group->stuck < LEAK_LEAST || !few_end || group->stuck_early * 4 < group->stuck ||
            late * 8 < group->stuck || finding_is_runtime(findings, group->row.name))
            continue;
        trail_string at = names_text(&findings->analysis->names, group->created_at);
        trail_longest moment = {ns_between(group->stuck_since_ns, findings->analysis->span.end_ns),
                                group->stuck_since_ns, group->stuck_goroutine};
        const struct finding_of of = {"leak", .gain_ns = length_of(findings) / 2, .moment = &moment,
                                      .function = group->row.name};
        finding_say(findings, &of, "%s of %.*s look leaked", word(findings, TERM_tasks),
                    NAMED(findings, group->row.name));
        finding_explain(findings,
                        "%s were created throughout%s%.*s, %s ended, and %s have been waiting for "
                        "a tenth of the time or longer%s; the first is %s %" PRId64 ".",
                        counted(group->row.created).text, group->created_at ? " at " : "",
                        SHOWN(at), counted(group->row.ended).text, counted(group->stuck).text,
                        group->stuck_sends * 10 >= group->stuck * 9
                            ? " (chan send: nothing receives what they send)"
                            : "",
                        word(findings, TERM_task), group->stuck_goroutine);
        if (group->stuck_for != 0 && group->stuck_at != 0)
            finding_explain(findings, "All of these wait (%.*s) at %.*s.",
                            NAMED(findings, group->stuck_for), NAMED(findings, group->stuck_at));
        /* It costs memory: the share that ranks it is no time that would be saved. */
        finding_last(findings)->gain_ns = 0;
    }
}
