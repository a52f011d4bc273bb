/*
 * Find: follows each goroutine through the steps of a pattern.
 *
 * Of several partial hits that are equally far, the one that began last is kept: whatever can
 * follow an older one can follow it too, and gives a shorter hit. The exception is a state that
 * began before its last step, which cannot follow it but may follow an older one. So two are kept
 * per step: one for the current state and one for later states. Memory: these two, for each live
 * goroutine.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "analyze/pattern.h"
#include "base/grow.h"
#include "base/objects.h"
#include "base/text.h"

/* The steps of a pattern found so far. Followed in memory by one trail_hit_step per step of the
 * pattern. */
struct partial {
    bool set;
    int64_t begin_ns, after_ns; /* begin of the first step; end of the last */
    uint64_t place;             /* of the last step */
    trail_hit_step steps[];
};

/*
 * A goroutine alive. Its states are numbered: states have even places, and events between them odd
 * ones.
 */
struct seeker {
    uint64_t place; /* of the current state */
    bool known;     /* the start of the current state is in the window */
    uint8_t state;  /* trail_go_state */
    int64_t begin_ns;
    int64_t free_from_ns; /* end of the last hit: hits do not overlap */
    trail_name name;      /* start function */
    trail_name reason;
    trail_stack stack;
    char *partials; /* two per step but the last; NULL: none is set */
};

struct find {
    struct trail_analysis *analysis;
    const trail_find_options *options;
    struct objects seekers; /* of goroutines: struct seeker */
    struct slab partial_slab;
    size_t partial_size; /* size of one, in bytes */
    uint8_t *verdicts;   /* per stack: two per choice (in, by): 0 unknown, 1 no, 2 yes */
    size_t verdict_count, verdict_capacity;
    trail_hit_step *hit;
    bool stopped; /* the caller wants no more hits */
};

/* Something that a goroutine did, or a state it was in: a candidate for a step. */
struct item {
    enum thing thing;
    uint64_t place;
    bool before; /* it happened before the state that begins now, not within one */
    trail_hit_step step;
};

static bool is_sought(const struct find *find, enum thing thing)
{
    return (find->options->pattern->things >> thing & 1) != 0;
}

/* MARK: Matching of items and steps */

/* Whether a frame of the stack has a matching function. */
static bool is_in(const struct find *find, trail_stack stack, trail_string function)
{
    struct stack_row row = stacks_get(&find->analysis->stacks, stack);
    for (size_t i = 0; i < row.count; i++)
        if (pattern_glob(function, names_text(&find->analysis->names, row.places[i].function)))
            return true;
    return false;
}

/* The same, evaluated once per stack. `which` is 2 * the choice's number, + 1 for its waker. */
static bool passes(struct find *find, trail_stack stack, trail_string function, size_t which)
{
    size_t width = 2 * (size_t)find->options->pattern->choice_count;
    size_t known = find->verdict_count, wanted = ((size_t)stack + 1) * width;
    if (function.size == 0)
        return true;
    if (stack == 0)
        return false;
    if (wanted > known) {
        if (!GROW(find->verdicts, find->verdict_capacity, wanted))
            return is_in(find, stack, function);
        memset(find->verdicts + known, 0, wanted - known);
        find->verdict_count = wanted;
    }
    uint8_t *verdict = &find->verdicts[(size_t)stack * width + which];
    if (*verdict == 0)
        *verdict = is_in(find, stack, function) ? 2 : 1;
    return *verdict == 2;
}

/* Whether the wait matches one of the choice's texts: by its name, its kind, or Go's reason. */
static bool is_for(const struct find *find, const struct pattern_choice *choice, trail_name wait)
{
    const trail_pattern *pattern = find->options->pattern;
    const struct names *names = &find->analysis->names;
    const struct wait_facts *facts = wait_facts_of(names, wait);
    if (pattern_text(pattern, choice, names_text(names, wait)))
        return true;
    bool waits = choice->thing == THING_BLOCK || choice->thing == THING_WAKE;
    if (!facts || !waits)
        return false;
    const char *word = wire_wait_kinds[facts->kind].word;
    return pattern_text(pattern, choice, names_text(names, facts->reason)) ||
           pattern_text(pattern, choice, text_from(word));
}

static bool is_choice(struct find *find, size_t number, const struct item *item)
{
    const trail_pattern *pattern = find->options->pattern;
    const struct pattern_choice *choice = &pattern->choices[number];
    const trail_hit_step *step = &item->step;
    int64_t ns = ns_between(step->begin_ns, step->end_ns);
    if (choice->thing != item->thing || ns < choice->least_ns || ns > choice->most_ns ||
        (step->open && choice->most_ns < INT64_MAX))
        return false;
    return (choice->text_count == 0 || is_for(find, choice, step->reason)) &&
           passes(find, step->stack, choice->in, 2 * number) &&
           passes(find, step->waker_stack, choice->by, 2 * number + 1);
}

/* Whether an item can follow `last` as this step; NULL: as the first step. */
static bool is_step(struct find *find, const struct pattern_step *step, const struct partial *last,
                    const struct item *item)
{
    const trail_pattern *pattern = find->options->pattern;
    if (last && (item->step.begin_ns < last->after_ns ||
                 (step->directly && item->place > last->place + 2) ||
                 ns_between(last->after_ns, item->step.begin_ns) > step->within_ns))
        return false;
    int64_t begin = last ? last->begin_ns : item->step.begin_ns;
    if (ns_between(begin, item->step.end_ns) > pattern->within_ns)
        return false;
    for (unsigned i = 0; i < step->count; i++)
        if (is_choice(find, step->first + i, item))
            return true;
    return false;
}

/* MARK: Partial hits */

/* The partial hit with `level` steps; slot 1 is for those within the current state. */
static struct partial *partial_at(const struct find *find, const struct seeker *seeker,
                                  size_t level, unsigned slot)
{
    return (struct partial *)(void *)(seeker->partials + (2 * level + slot) * find->partial_size);
}

static void forget(struct find *find, struct seeker *seeker)
{
    if (seeker->partials)
        slab_put(&find->partial_slab, seeker->partials);
    seeker->partials = NULL;
}

/* Reports a hit: the last step of the pattern is found. */
static void found(struct find *find, struct seeker *seeker, int64_t id, const struct partial *last,
                  const struct item *item)
{
    size_t steps = find->options->pattern->step_count;
    if (last)
        memcpy(find->hit, last->steps, (steps - 1) * sizeof *find->hit);
    find->hit[steps - 1] = item->step;
    trail_hit hit = {
        .goroutine = id,
        .name = seeker->name,
        .begin_ns = find->hit[0].begin_ns,
        .end_ns = item->step.end_ns,
        .steps = find->hit,
        .step_count = steps,
    };
    seeker->free_from_ns = hit.end_ns;
    forget(find, seeker);
    if (analysis_asks_for(find->analysis, &find->options->filter, id, seeker->name))
        find->stopped = !find->options->visit(find->options->context, &hit);
}

/* Adds a step to a partial hit. Returns false if out of memory. */
static bool go_on(struct find *find, struct seeker *seeker, size_t level,
                  const struct partial *last, const struct item *item)
{
    if (!seeker->partials)
        seeker->partials = slab_get(&find->partial_slab);
    if (!seeker->partials)
        return false;
    struct partial *next = partial_at(find, seeker, level, !item->before);
    next->set = true;
    next->begin_ns = last ? last->begin_ns : item->step.begin_ns;
    next->after_ns = item->step.end_ns;
    next->place = item->place;
    if (last)
        memcpy(next->steps, last->steps, level * sizeof *next->steps);
    next->steps[level] = item->step;
    return true;
}

/*
 * Offers an item to all partial hits, longest first, so that none takes it twice. Returns false if
 * out of memory.
 */
static bool offer(struct find *find, struct seeker *seeker, int64_t id, const struct item *item)
{
    const trail_pattern *pattern = find->options->pattern;
    if (find->stopped)
        return true;
    for (size_t level = pattern->step_count - 1; seeker->partials && level > 0; level--) {
        for (unsigned slot = 2; slot-- > 0;) {
            const struct partial *last = partial_at(find, seeker, level - 1, slot);
            if (!last->set || !is_step(find, &pattern->steps[level], last, item))
                continue;
            if (level == pattern->step_count - 1) {
                found(find, seeker, id, last, item);
                return true;
            }
            if (!go_on(find, seeker, level, last, item))
                return false;
            break;
        }
    }
    if (item->step.begin_ns < seeker->free_from_ns ||
        !is_step(find, &pattern->steps[0], NULL, item))
        return true;
    if (pattern->step_count > 1)
        return go_on(find, seeker, 0, NULL, item);
    found(find, seeker, id, NULL, item);
    return true;
}

/* A new state begins: partial hits within the last one can continue with it. */
static void state_over(struct find *find, struct seeker *seeker)
{
    for (size_t level = 0; seeker->partials && level < find->options->pattern->step_count;
         level++) {
        struct partial *within = partial_at(find, seeker, level, 1);
        if (!within->set)
            continue;
        memcpy(partial_at(find, seeker, level, 0), within, find->partial_size);
        within->set = false;
    }
}

/* MARK: Items */

static struct seeker *seeker_get(struct find *find, int64_t goroutine)
{
    struct seeker *seeker = objects_find(&find->seekers, (uint64_t)goroutine);
    if (seeker)
        return seeker;
    seeker = objects_get(&find->seekers, (uint64_t)goroutine);
    if (seeker)
        seeker->free_from_ns = INT64_MIN;
    return seeker;
}

static void seeker_drop(struct find *find, int64_t goroutine)
{
    struct seeker *seeker = objects_find(&find->seekers, (uint64_t)goroutine);
    if (!seeker)
        return;
    forget(find, seeker);
    objects_drop(&find->seekers, (uint64_t)goroutine);
}

/* THINGS: not a state that patterns can name. */
static enum thing thing_of_state(unsigned state)
{
    static const uint8_t things[TRAIL_GO_STATES] = {
        [TRAIL_GO_UNDETERMINED] = THINGS,  [TRAIL_GO_NOT_EXIST] = THINGS,
        [TRAIL_GO_RUNNABLE] = THING_READY, [TRAIL_GO_RUNNING] = THING_RUN,
        [TRAIL_GO_WAITING] = THING_BLOCK,  [TRAIL_GO_SYSCALL] = THING_SYSCALL,
    };
    return state < TRAIL_GO_STATES ? (enum thing)things[state] : THINGS;
}

/* The current state ends, at the event or with the trace (NULL). */
static bool offer_state(struct find *find, struct seeker *seeker, int64_t id,
                        const trail_event *event, int64_t now)
{
    enum thing thing = thing_of_state(seeker->state);
    if (!seeker->known || thing == THINGS || !is_sought(find, thing))
        return true;
    struct item item = {
        .thing = thing,
        .place = seeker->place,
        .step = {.what = thing_word(thing),
                 .begin_ns = seeker->begin_ns,
                 .end_ns = now,
                 .lasts = true,
                 .open = event == NULL,
                 .reason = thing == THING_BLOCK || thing == THING_SYSCALL ? seeker->reason : 0,
                 .stack = seeker->stack,
                 .waker = TRAIL_NONE},
    };
    if (thing == THING_RUN)
        item.step.stack = event ? stacks_of(&find->analysis->stacks, event->transition.stack) : 0;
    if (thing == THING_BLOCK && event && event->transition.to == TRAIL_GO_RUNNABLE &&
        event->goroutine >= 0 && event->goroutine != id) {
        item.step.waker = event->goroutine;
        item.step.waker_stack = stacks_of(&find->analysis->stacks, event->stack);
    }
    return offer(find, seeker, id, &item) && !find->analysis->stacks.failed;
}

/* Offers a point in time: something happened to the goroutine, or the goroutine did it. */
static bool offer_moment(struct find *find, struct seeker *seeker, int64_t id, enum thing thing,
                         const trail_event *event, trail_name reason)
{
    bool moves = thing <= THING_END;
    if (!find->analysis->counting || !is_sought(find, thing))
        return true;
    struct item item = {
        .thing = thing,
        .place = seeker->place + moves,
        .before = moves,
        .step = {.what = thing_word(thing),
                 .begin_ns = event->time_ns,
                 .end_ns = event->time_ns,
                 .reason = reason,
                 .stack = stacks_of(&find->analysis->stacks, event->stack),
                 .waker = TRAIL_NONE},
    };
    if ((thing == THING_WAKE || thing == THING_CREATE) && event->goroutine >= 0 &&
        event->goroutine != id) {
        item.step.waker = event->goroutine;
        item.step.waker_stack = item.step.stack;
        item.step.stack = stacks_of(&find->analysis->stacks, event->transition.stack);
    }
    if (thing == THING_WAKE)
        item.step.stack = seeker->stack;
    return offer(find, seeker, id, &item) && !find->analysis->stacks.failed;
}

/* What happens between two states of a goroutine. THINGS: nothing that patterns can name. */
static enum thing thing_between(unsigned from, unsigned to)
{
    if (to == TRAIL_GO_NOT_EXIST)
        return THING_END;
    if (from == TRAIL_GO_NOT_EXIST)
        return THING_CREATE;
    if (from == TRAIL_GO_WAITING && to == TRAIL_GO_RUNNABLE)
        return THING_WAKE;
    if (from == TRAIL_GO_RUNNABLE && to == TRAIL_GO_RUNNING)
        return THING_START;
    if (from == TRAIL_GO_RUNNING && to == TRAIL_GO_RUNNABLE)
        return THING_STOP;
    return THINGS;
}

/* Offers what the goroutine in whose context the event happened did with it. */
static bool offer_action(struct find *find, const struct goroutine *g, const trail_event *event,
                         enum thing between)
{
    enum thing deed = between == THING_CREATE ? THING_CREATES
                      : between == THING_WAKE ? THING_WAKES
                                              : THINGS;
    if (deed == THINGS || event->goroutine < 0 || event->goroutine == g->id ||
        !is_sought(find, deed))
        return true;
    struct seeker *actor = seeker_get(find, event->goroutine);
    return actor && offer_moment(find, actor, event->goroutine, deed, event, 0);
}

/* The new state begins here. */
static bool state_begins(struct find *find, struct seeker *seeker, const trail_event *event)
{
    enum thing thing = thing_of_state(event->transition.to);
    bool blocks = thing == THING_BLOCK;
    seeker->place += 2;
    seeker->state = event->transition.to;
    seeker->begin_ns = event->time_ns;
    seeker->known = find->analysis->counting && event->transition.from != TRAIL_GO_UNDETERMINED;
    if (thing == THINGS || !(is_sought(find, thing) || (blocks && is_sought(find, THING_WAKE))))
        return true;
    seeker->reason = blocks ? follow_wait(&find->analysis->goroutines.follow, event)
                            : announced_name(&find->analysis->goroutines.follow.announced,
                                             &find->analysis->names, 0);
    seeker->stack = stacks_of(&find->analysis->stacks, event->transition.stack);
    return !find->analysis->stacks.failed;
}

static bool take_transition(void *part, struct goroutine *g, const trail_event *event)
{
    struct find *find = part;
    unsigned from = event->transition.from, to = event->transition.to;
    enum thing between = thing_between(from, to);
    if (find->stopped)
        return true;
    if (from <= TRAIL_GO_NOT_EXIST)
        seeker_drop(find, g->id); /* another goroutine with the same ID */
    struct seeker *seeker = seeker_get(find, g->id);
    if (!seeker)
        return false;
    seeker->name = g->name;
    if (!offer_state(find, seeker, g->id, event, event->time_ns))
        return false;
    state_over(find, seeker);
    trail_name reason = between == THING_WAKE ? seeker->reason
                        : between == THING_STOP
                            ? names_of(&find->analysis->names, event->transition.reason)
                            : 0;
    if (between != THINGS && !offer_moment(find, seeker, g->id, between, event, reason))
        return false;
    if (!offer_action(find, g, event, between))
        return false;
    if (to == TRAIL_GO_NOT_EXIST) {
        seeker_drop(find, g->id);
        return true;
    }
    return state_begins(find, seeker, event);
}

static bool take_event(void *part, const trail_event *event)
{
    struct find *find = part;
    enum thing thing;
    trail_string_handle text = 0;
    switch (event->kind) {
    case TRAIL_LOG:
        thing = THING_LOG;
        text = event->log.category;
        break;
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        thing = event->kind == TRAIL_REGION_BEGIN ? THING_REGION : THING_REGION_END;
        text = event->region.type;
        break;
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        thing = event->kind == TRAIL_TASK_BEGIN ? THING_TASK : THING_TASK_END;
        text = event->task.type;
        break;
    case TRAIL_STACK_SAMPLE:
        thing = THING_SAMPLE;
        break;
    default:
        return true;
    }
    if (find->stopped || event->goroutine < 0 || !is_sought(find, thing))
        return true;
    struct seeker *seeker = seeker_get(find, event->goroutine);
    return seeker && offer_moment(find, seeker, event->goroutine, thing, event,
                                  names_of(&find->analysis->names, text));
}

/* MARK: The end */

/* Offers states that have not ended. */
static bool window_ends(void *part, int64_t now)
{
    struct find *find = part;
    if (find->stopped)
        return true;
    struct idmap_slot *seekers = idmap_sorted(&find->seekers.map);
    bool good = seekers != NULL;
    for (size_t i = 0; good && i < find->seekers.map.count; i++)
        good = offer_state(find, seekers[i].value, (int64_t)seekers[i].id, NULL, now);
    free(seekers);
    return good;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct find *find = part;
    find->analysis = analysis;
    find->options = &analysis->options.find;
    size_t steps = find->options->pattern->step_count;
    find->partial_size = sizeof(struct partial) + steps * sizeof(trail_hit_step);
    find->seekers = OBJECTS_OF(struct seeker);
    find->partial_slab.object_size = 2 * steps * find->partial_size;
    find->hit = calloc(steps, sizeof *find->hit);
    return find->hit != NULL;
}

static bool is_done(const void *part)
{
    const struct find *find = part;
    return find->stopped;
}

static void drop(void *part)
{
    struct find *find = part;
    objects_free(&find->seekers);
    slab_free(&find->partial_slab);
    free(find->verdicts);
    free(find->hit);
}

const struct analysis_part find_part = {
    .what = TRAIL_ANALYZE_FIND,
    .size = sizeof(struct find),
    .uses_goroutines = true,
    .uses_stacks = true,
    .init = init,
    .free = drop,
    .window_ends = window_ends,
    .is_done = is_done,
    .kinds = PART_TASKS | PART_REGIONS | PART_KIND(LOG) | PART_KIND(STACK_SAMPLE),
    .event = take_event,
    .leaves = take_transition,
};
