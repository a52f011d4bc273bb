/* The threads, names and events that a reader of spans holds. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "import/chrome.h"

/* MARK: Threads */

/* The TID itself, if it is one and no other process has it, else a free number. */
static int32_t take_tid(struct chrome *chrome, uint64_t tid)
{
    bool usable = tid > 0 && tid <= IMPORT_TID_MAX && !(chrome->numbers[tid / 8] & 1u << tid % 8);
    if (!usable) {
        while (chrome->next_number > 0 &&
               chrome->numbers[chrome->next_number / 8] & 1u << chrome->next_number % 8)
            chrome->next_number--;
        tid = (uint64_t)chrome->next_number;
    }
    chrome->numbers[tid / 8] |= (uint8_t)(1u << tid % 8);
    return (int32_t)tid;
}

static uint32_t add_thread(struct chrome *chrome, uint64_t pid, uint64_t tid, uint64_t hash)
{
    uintptr_t number = chrome->thread_count + 1;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, never followed. */
    if (number >= IMPORT_TID_MAX || !GROW(chrome->threads, chrome->thread_room, number) ||
        !idmap_put(&chrome->thread_map, hash, (void *)number)) {
        chrome->failed = true;
        return 0;
    }
    chrome->threads[chrome->thread_count++] =
        (struct chrome_thread){.pid = pid, .tid = tid, .number = take_tid(chrome, tid)};
    return (uint32_t)(number - 1);
}

/* Threads of equal hash take the next place, as in open addressing. */
uint32_t chrome_thread(struct chrome *chrome, uint64_t pid, uint64_t tid)
{
    uint64_t hash = hash_mix(pid, tid);
    for (;; hash++) {
        uintptr_t number = (uintptr_t)idmap_find(&chrome->thread_map, hash);
        if (number == 0)
            return add_thread(chrome, pid, tid, hash);
        const struct chrome_thread *thread = &chrome->threads[number - 1];
        if (thread->pid == pid && thread->tid == tid)
            return (uint32_t)(number - 1);
    }
}

void chrome_name(struct chrome *chrome, uint32_t thread, trail_string name)
{
    if (!chrome->failed)
        import_thread_name(&chrome->model->threads, chrome->threads[thread].number, name);
}

/* MARK: Events */

/* docs/importing.md has the same rows. */
static const struct chrome_letter letters[] = {
    {'B', CHROME_BEGIN, false},       {'E', CHROME_END, false},
    {'X', CHROME_COMPLETE, false},    {'i', CHROME_INSTANT, false},
    {'I', CHROME_INSTANT, false},     {'R', CHROME_INSTANT, false},
    {'b', CHROME_ASYNC_BEGIN, false}, {'e', CHROME_ASYNC_END, false},
    {'S', CHROME_ASYNC_BEGIN, true},  {'F', CHROME_ASYNC_END, true},
    {'s', CHROME_FLOW_BEGIN, true},   {'t', CHROME_FLOW_STEP, true},
    {'f', CHROME_FLOW_END, true},
};

const struct chrome_letter *chrome_letter(uint64_t letter)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letter == (unsigned char)letters[i].letter)
            return &letters[i];
    return NULL;
}

const char *chrome_keep(struct chrome *chrome, const char *text, size_t size)
{
    char *copy = arena_alloc(&chrome->arena, size + 1);
    if (!copy) {
        chrome->failed = true;
        return "";
    }
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void chrome_add(struct chrome *chrome, const struct chrome_event *event)
{
    if (!GROW(chrome->events, chrome->event_room, chrome->event_count + 1)) {
        chrome->failed = true;
        return;
    }
    struct chrome_event *own = &chrome->events[chrome->event_count];
    *own = *event;
    own->time_ns += own->time_ns == 0;
    own->order = chrome->event_count++;
    chrome->stats->events++;
}

/* MARK: Begin and end */

bool chrome_init(struct chrome *chrome, struct import_model *model)
{
    *chrome = (struct chrome){.model = model,
                              .stats = model->threads.stats,
                              .next_number = IMPORT_TID_MAX,
                              .numbers = calloc(IMPORT_TID_MAX / 8 + 1, 1)};
    return chrome->numbers != NULL;
}

void chrome_free(struct chrome *chrome)
{
    for (size_t i = 0; i < chrome->thread_count; i++) {
        free(chrome->threads[i].spans);
        free(chrome->threads[i].open);
    }
    free(chrome->threads);
    free(chrome->events);
    free(chrome->numbers);
    idmap_free(&chrome->thread_map);
    arena_free(&chrome->arena);
}
