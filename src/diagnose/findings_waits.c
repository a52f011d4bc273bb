/* Questions about waits: see findings_waits.h. */
#include "diagnose/findings_waits.h"

#include <string.h>

#include "diagnose/waits.h"
#include "words/place.h"

#define ABOUT_ALL  0.995 /* shown as 100 % */
#define AFTER      0.9   /* of the weight of what comes first */
#define MOST_LINKS 2     /* that wait for each other in turn, from the program's end on */

bool wait_is_own_barrier(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    bool may_be = facts
                      ? facts->kind == WIRE_WAIT_CONDITION ||
                            ((facts->kind == WIRE_WAIT_FUTEX || facts->kind == WIRE_WAIT_ATOMIC) &&
                             !row->lock)
                      : row->wait == findings->waits->condition;
    return may_be && !row->once && row->together * 4 >= row->waits &&
           share_of(row->alike_ns, row->direct_ns) >= ALIKE_SHARE;
}

bool wait_is_for_all(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    if (wait_is_own_barrier(findings, row))
        return true;
    if (!facts)
        return !row->lock && !row->once && text_is(text_of(findings, row->wait), "sync");
    return facts->kind == WIRE_WAIT_BARRIER || facts->kind == WIRE_WAIT_JOIN ||
           facts->kind == WIRE_WAIT_OMP_BARRIER;
}

bool wait_is_for_any(const struct wait_facts *facts)
{
    return facts && (facts->kind == WIRE_WAIT_POLL || facts->kind == WIRE_WAIT_SIGNAL);
}

bool wait_is_for_work(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    trail_string text = text_of(findings, row->wait);
    return facts ? facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_SEMAPHORE ||
                       facts->kind == WIRE_WAIT_READ || facts->kind == WIRE_WAIT_FUTURE ||
                       facts->kind == WIRE_WAIT_RECEIVE || facts->kind == WIRE_WAIT_ATOMIC ||
                       (facts->kind == WIRE_WAIT_FUTEX && !row->lock && !row->once) ||
                       wait_is_for_any(facts)
                 : text_is(text, "chan receive") || text_is(text, "sync.(*Cond).Wait");
}

bool wait_is_for_room(const struct findings *findings, const struct blame_row *row)
{
    const struct wait_facts *facts = facts_of(findings, row->wait);
    return facts ? facts->kind == WIRE_WAIT_WRITE || facts->kind == WIRE_WAIT_SEND
                 : text_is(text_of(findings, row->wait), "chan send");
}

const struct blame_pair *wait_pair(const struct findings *findings, trail_name waiter,
                                   trail_name waker)
{
    const struct blame *blame = &findings->waits->blame;
    uint64_t key = (uint64_t)waiter << 32 | waker;
    uintptr_t number = (uintptr_t)idmap_find(&blame->pair_numbers, key);
    return number ? &blame->pairs[number - 1] : NULL;
}

bool wait_is_lent(const struct findings *findings, trail_name waiter, trail_name waker)
{
    const struct blame_pair *there = wait_pair(findings, waiter, waker),
                            *back = wait_pair(findings, waker, waiter);
    const struct wait_facts *facts = there ? facts_of(findings, there->wait) : NULL;
    return facts && facts->kind == WIRE_WAIT_SEMAPHORE && back && back->wait == there->wait;
}

/* MARK: What is needed */

/* For how long others waited for all goroutines of a kind to end; and for how long the program's
 * end needed the kind, directly or through at most so many kinds that wait for its work. */
struct need {
    int64_t all_ns, ns[MOST_LINKS + 1];
};

/* The kind is needed for at least `ns`. */
static void note_need(struct finding_needs *needs, trail_name kind, unsigned links, int64_t ns,
                      bool all)
{
    struct need *need = objects_get(&needs->kinds, kind);
    if (!need) {
        needs->failed = true;
        return;
    }
    if (all && ns > need->all_ns)
        need->all_ns = ns;
    if (ns > need->ns[links])
        need->ns[links] = ns;
}

static void find_direct(const struct findings *findings, struct finding_needs *needs)
{
    BLAME_EACH(row, &findings->waits->blame)
        if (wait_is_for_all(findings, row))
            note_need(needs, row->start, 0, blame_union_ns(&row->held), true);
    /* Another process waits for the exit of this one. */
    OUTSIDE_EACH(row, &findings->waits->outside)
        if (row->kind == WIRE_WAIT_CHILD)
            note_need(needs, row->peer.start, 0, blame_union_ns(&row->at_least_one), false);
}

/* Those that wait for the work of a kind need it for as long as they are needed. */
static void find_through(const struct findings *findings, struct finding_needs *needs,
                         unsigned links)
{
    IDMAP_VALUES(struct need, need, &needs->kinds.map) {
        need->ns[links] = need->ns[links - 1];
    }
    PAIRS_EACH(pair, &findings->waits->blame) {
        const struct need *waiter = objects_find(&needs->kinds, pair->waiter);
        int64_t ns = blame_union_ns(&pair->waiting), most = pair->longest.goroutine == 1 ? ns
                                                            : waiter ? waiter->ns[links - 1]
                                                                     : 0;
        if (pair->waiter != pair->waker)
            note_need(needs, pair->waker, links, ns < most ? ns : most, false);
    }
}

static struct need need_for(const struct findings *findings, trail_name kind)
{
    struct finding_needs *needs = findings->needs;
    if (!needs->known) {
        needs->known = true;
        needs->kinds = OBJECTS_OF(struct need);
        find_direct(findings, needs);
        for (unsigned links = 1; links <= MOST_LINKS; links++)
            find_through(findings, needs, links);
    }
    const struct need *need = objects_find(&needs->kinds, kind);
    return need ? *need : (struct need){0};
}

bool finding_all_awaited(const struct findings *findings, trail_name start, double share)
{
    return time_share(findings, need_for(findings, start).all_ns) >= share;
}

bool wait_is_needed(const struct findings *findings, const trail_longest *longest, trail_name start,
                    double share)
{
    return longest->goroutine == 1 ||
           time_share(findings, need_for(findings, start).ns[MOST_LINKS]) >= share;
}

int64_t finding_exit_awaited_ns(const struct findings *findings, trail_name start)
{
    int64_t most = 0;
    BLAME_EACH(row, &findings->waits->blame) {
        const struct wait_facts *facts = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->held);
        if (facts && facts->kind == WIRE_WAIT_JOIN && row->start == start && ns > most)
            most = ns;
    }
    return most;
}

int64_t wait_time_but(const struct findings *findings, int64_t ready_ns)
{
    int64_t length = length_of(findings);
    return ready_ns < length / 2 ? length - ready_ns : length / 2;
}

bool wait_wants_all_cpus(const struct findings *findings)
{
    const trail_activity *sums = &findings->activity->sums;
    int64_t work = sums->running_ns;
    ns_add(&work, sums->runnable_ns);
    /* In Go, those that are ready while a P is idle are only woken late. */
    if (findings->waits->is_go)
        ns_add(&work, -findings->activity->unused_ns);
    return sums->procs > 1 && time_share(findings, work) > ALL_CPUS * (double)sums->procs;
}

struct group_time wait_time_of(const struct findings *findings, const struct wait_group *group)
{
    struct group_time time = {.all = group->exec_ns};
    EACH(const trail_wait, wait, group->waits, group->row.wait_count) {
        const struct wait_facts *facts = facts_of(findings, wait->reason);
        unsigned traits = facts ? wire_wait_kinds[facts->kind].traits : 0;
        ns_add(&time.all, wait->spread.sum_ns);
        if (waits_hands_over(findings->waits, wait->reason)) {
            ns_add(&time.work, wait->spread.sum_ns);
            time.work_waits += wait->spread.count;
        } else if (!(traits & (WIRE_WAIT_LOCK | WIRE_WAIT_IDLE)) &&
                   !text_is(text_of(findings, wait->reason), "sync") &&
                   !text_is(text_of(findings, wait->reason), "network")) {
            ns_add(&time.others, wait->spread.sum_ns);
            time.most =
                time.most && time.most->spread.sum_ns >= wait->spread.sum_ns ? time.most : wait;
        }
    }
    return time;
}

trail_name wait_own_place(const struct findings *findings, const struct blame_row *row)
{
    /* It has at least three quarters of the time then. */
    bool known = row->outside_at.ns >= row->outside_ns / 2;
    return known ? waits_sleep_place(findings->waits, (trail_name)row->outside_at.key) : 0;
}

double wait_own_share(const struct blame_row *row)
{
    return share_of(row->outside_ns, row->own_ns);
}

const char *wait_own_least(const struct blame_row *row)
{
    return row->outside_least && wait_own_share(row) < ABOUT_ALL ? "at least " : "";
}

int64_t wait_own_ns(const struct blame_row *row, int64_t ns)
{
    int64_t own = blame_union_ns(&row->outside_held);
    return own < ns ? own : ns;
}

bool wait_of_holder(const struct findings *findings, const struct blame_row *row)
{
    return row->outside.ns > 0 && wait_own_share(row) >= BUSY_SHARE &&
           (trail_name)row->outside.key != findings->waits->ready;
}

const struct outside_row *wait_mostly_in(const struct findings *findings,
                                         const struct wait_group *group, const trail_wait *wait)
{
    const struct outside_row *most = NULL;
    int64_t all_ns = 0, half_ns = wait->spread.sum_ns / 2;
    OUTSIDE_EACH(row, &findings->waits->outside) {
        bool of_others = row->waiter != group->row.name && !row->waiters_differ;
        if (of_others || wait_kind_name(&findings->analysis->names, row->wait) != wait->reason)
            continue;
        ns_add(&all_ns, row->spread.sum_ns);
        if (!most || row->spread.sum_ns > most->spread.sum_ns)
            most = row;
    }
    bool sure = most && most->function != 0 && most->waiter == group->row.name &&
                most->spread.sum_ns >= half_ns && all_ns - most->spread.sum_ns < half_ns;
    return sure ? most : NULL;
}

trail_string wait_put_at(const struct findings *findings, const struct blame_row *row, char *text,
                         size_t size)
{
    const struct names *names = &findings->analysis->names;
    struct stack_row stack = stacks_get(&findings->analysis->stacks, row->waited_in);
    const trail_place *own = stack.count > 0 ? &stack.places[stack.own] : NULL;
    if (!own || own->function == 0)
        return text_of(findings, row->at);
    (void)place_of_frame(names_text(names, own->function), names_text(names, own->file), own->line,
                         PLACE_PARENTHESES, text, size);
    return (trail_string){text, strlen(text)};
}

struct finding_words wait_own(const struct findings *findings, const struct blame_row *row)
{
    struct finding_words words;
    trail_name for_what = row->outside.key > 0 ? (trail_name)row->outside.key : 0;
    trail_name place = wait_own_place(findings, row);
    trail_string at = text_of(findings, place);
    (void)snprintf(words.text, sizeof words.text, "%.*s%s%.*s", NAMED(findings, for_what),
                   place ? " at " : "", place ? SHOWN_SIZE(at) : 0, at.data);
    return words;
}

void wait_explain_own_of(struct findings *findings, const struct blame_row *row,
                         const char *subject)
{
    double share = wait_own_share(row);
    if (wait_of_holder(findings, row))
        finding_explain(findings, "For %s%.0f %% of that time %s was itself waiting (%s).",
                        wait_own_least(row), 100 * (share < 1 ? share : 1), subject,
                        wait_own(findings, row).text);
}

void wait_put_before_locks(struct findings *findings, trail_name wait)
{
    double weight = finding_last(findings)->weight;
    EACH(trail_finding, of, findings->rows, findings->count) {
        if (strncmp(of->kind, "lock-", strlen("lock-")) != 0 || of->weight > 2 * weight)
            continue;
        BLAME_EACH(row, &findings->waits->blame)
            if (row->lock && row->wait == of->object && row->function == of->function &&
                (trail_name)row->outside.key == wait && wait_own_share(row) >= BUSY_SHARE &&
                of->weight > weight * AFTER)
                of->weight = weight * AFTER;
    }
}
