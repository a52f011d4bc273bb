/* The threads, names and events held by a reader of spans. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "import/spans.h"

/* MARK: Threads */

/* Returns the TID itself, if it is valid and no other process has it, else a free number. */
static int32_t take_tid(struct import_spans *spans, uint64_t tid)
{
    bool usable = tid > 0 && tid <= IMPORT_TID_MAX && !(spans->numbers[tid / 8] & 1u << tid % 8);
    if (!usable) {
        while (spans->next_number > 0 &&
               spans->numbers[spans->next_number / 8] & 1u << spans->next_number % 8)
            spans->next_number--;
        tid = (uint64_t)spans->next_number;
    }
    spans->numbers[tid / 8] |= (uint8_t)(1u << tid % 8);
    return (int32_t)tid;
}

static uint32_t add_thread(struct import_spans *spans, uint64_t pid, uint64_t tid, uint64_t hash)
{
    uintptr_t number = spans->thread_count + 1;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, never followed. */
    if (number >= IMPORT_TID_MAX || !GROW(spans->threads, spans->thread_room, number) ||
        !idmap_put(&spans->thread_map, hash, (void *)number)) {
        spans->failed = true;
        return 0;
    }
    spans->threads[spans->thread_count++] =
        (struct span_thread){.pid = pid, .tid = tid, .number = take_tid(spans, tid)};
    return (uint32_t)(number - 1);
}

/* Threads with equal hashes take the next place, as in open addressing. */
uint32_t import_spans_thread(struct import_spans *spans, uint64_t pid, uint64_t tid)
{
    uint64_t hash = hash_keyed_mix(hash_keyed_mix(0, pid), tid);
    for (;; hash++) {
        uintptr_t number = (uintptr_t)idmap_find(&spans->thread_map, hash);
        if (number == 0)
            return add_thread(spans, pid, tid, hash);
        const struct span_thread *thread = &spans->threads[number - 1];
        if (thread->pid == pid && thread->tid == tid)
            return (uint32_t)(number - 1);
    }
}

void import_spans_name_thread(struct import_spans *spans, uint32_t thread, trail_string name)
{
    if (!spans->failed)
        import_thread_name(&spans->model->threads, spans->threads[thread].number, name);
}

/* MARK: Events */

/* docs/importing.md has the same rows. */
static const struct phase_letter letters[] = {
    {'B', SPAN_BEGIN, false},       {'E', SPAN_END, false},       {'X', SPAN_COMPLETE, false},
    {'i', SPAN_INSTANT, false},     {'I', SPAN_INSTANT, false},   {'R', SPAN_INSTANT, false},
    {'b', SPAN_ASYNC_BEGIN, false}, {'e', SPAN_ASYNC_END, false}, {'S', SPAN_ASYNC_BEGIN, true},
    {'F', SPAN_ASYNC_END, true},    {'s', SPAN_FLOW_BEGIN, true}, {'t', SPAN_FLOW_STEP, true},
    {'f', SPAN_FLOW_END, true},
};

const struct phase_letter *phase_of_letter(uint64_t letter)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letter == (unsigned char)letters[i].letter)
            return &letters[i];
    return NULL;
}

const char *import_spans_keep(struct import_spans *spans, const char *text, size_t size)
{
    char *copy = arena_alloc(&spans->arena, size + 1);
    if (!copy) {
        spans->failed = true;
        return "";
    }
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void import_spans_add(struct import_spans *spans, const struct span_event *event)
{
    if (!GROW(spans->events, spans->event_room, spans->event_count + 1)) {
        spans->failed = true;
        return;
    }
    struct span_event *own = &spans->events[spans->event_count];
    *own = *event;
    own->time_ns += own->time_ns == 0;
    own->order = spans->event_count++;
    spans->stats->events++;
}

/* MARK: Begin and end */

bool import_spans_init(struct import_spans *spans, struct import_model *model)
{
    *spans = (struct import_spans){.model = model,
                                   .stats = model->threads.stats,
                                   .next_number = IMPORT_TID_MAX,
                                   .numbers = calloc(IMPORT_TID_MAX / 8 + 1, 1)};
    return spans->numbers != NULL;
}

void import_spans_free(struct import_spans *spans)
{
    for (size_t i = 0; i < spans->thread_count; i++) {
        free(spans->threads[i].spans);
        free(spans->threads[i].open);
    }
    free(spans->threads);
    free(spans->events);
    free(spans->numbers);
    idmap_free(&spans->thread_map);
    arena_free(&spans->arena);
}
