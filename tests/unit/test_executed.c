/* A process that executes another program: its one thread keeps its TID, and therefore its M. */
#include "area_by_hand.h"

/* The memory of the executed program. Its thread is in the same slot, with the same TID. */
struct second {
    struct world of; /* only its memory, chunks and last are used */
    struct area *area;
};

static void claims(struct second *second, struct world *w, uint64_t ms)
{
    const struct area_options options = {.groups = UINT32_MAX, .stacks = SHM_STACKS_UNWIND};
    struct shm_area *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    memory->header.threads_used = 16;
    *second = (struct second){.of.memory = memory,
                              .area = area_over(memory, &options, &w->ticks, OPENED)};
    assert_non_null(second->area);
    memory->header.claimed_at = OPENED + ms * MS;
}

/* Adds the thread's first record, at that time. */
static void begins(struct second *second, struct world *w, uint64_t ms)
{
    trail_error err;
    struct shm_record record = {.kind = SHM_STARTED, .time = OPENED + ms * MS, .object = 1};
    second->of.memory->threads[1].state = SHM_LIVE;
    second->of.memory->threads[1].serial = 1;
    second->of.memory->threads[1].tid = 101;
    put(&second->of, 1, record);
    w->next = collect_open(
        &(struct collect_options){
            .trace = w->to, .area = second->area, .ticks = &w->ticks, .former = w->collect},
        &err);
    assert_non_null(w->next);
}

static void ends(struct second *second, struct world *w)
{
    finish(w);
    munmap(second->of.memory, sizeof *second->of.memory);
}

/* At 600 ms it was noticed that the program was gone. */
TEST(the_former_program_ends_where_the_next_begins)
{
    struct world w;
    struct second second;
    begin(&w);
    put_thread(&w, 1);
    step(&w);
    now = OPENED + 600 * MS;
    collect_end(w.collect, NULL);
    claims(&second, &w, 300);
    collect_end(w.collect, second.area);
    begins(&second, &w, 301);
    ends(&second, &w);
    assert_int_equal(w.threads, 1);
}
