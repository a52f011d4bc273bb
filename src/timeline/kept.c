/* Writes lanes to a file and reads them: see kept.h. */
#include "timeline/kept.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "timeline/lanes_inside.h"

/* The rest is hashed in pieces of this size; the last one may be shorter. */
#define PIECE ((size_t)1 << 20)

/* The last bytes of the file. */
struct kept_end {
    char magic[8];
    uint64_t layout; /* a hash of the sizes of what is written in its form in memory */
    uint64_t blocks; /* bytes of blocks, which the rest follows */
    uint64_t rest;   /* its bytes */
    uint64_t hash;
};

static const char magic[8] = {'l', 'a', 'n', 'e', 's', '1', '\n', '\0'};

/* The numbers of a trace's lanes, which the rest begins with. */
struct numbers {
    uint64_t spans, spans_between, bytes, events, goroutines;
    int64_t origin_ns, last_ns, wall_ns, main_tid;
    uint64_t bar_counts[3];
    bool has_wall, of_threads;
    unsigned bin_shift;
};

/* A chunk of a lane, in place of struct lane_chunk. */
struct kept_chunk {
    int64_t begin_ns;
    uint64_t position; /* of the times */
    uint64_t details;  /* bytes from there to the details */
};

static uint64_t layout(void)
{
    static const size_t sizes[] = {
        sizeof(struct numbers),    sizeof(struct lane),
        sizeof(struct kept_chunk), sizeof(trail_bar),
        sizeof(trail_mark),        sizeof(trail_metric_value),
        sizeof(struct wait_facts), sizeof(trail_place),
        sizeof(struct stack_row),  BINS,
        TRAIL_LANE_COUNTERS,       TRAIL_METRICS,
        TRAIL_LANE_KINDS,          TRAIL_SPAN_STATES,
    };
    return hash_bytes(sizes, sizeof sizes);
}

/* MARK: Pieces */

/* Writes or reads the rest. `failed` is sticky. */
struct pieces {
    int fd;
    uint8_t *piece;
    size_t used, size; /* bytes of the piece that were put or taken; of a piece that is read */
    int64_t at;        /* in the file, of the next piece */
    uint64_t left;     /* reading: bytes after this piece */
    uint64_t hash;
    bool failed;
};

static void flush(struct pieces *to)
{
    to->hash = hash_mix(to->hash, hash_bytes(to->piece, to->used));
    to->failed |= !file_write_at(to->fd, to->piece, to->used, to->at);
    to->at += (int64_t)to->used;
    to->used = 0;
}

static void put(struct pieces *to, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    while (size > 0 && !to->failed) {
        size_t part = size < PIECE - to->used ? size : PIECE - to->used;
        memcpy(to->piece + to->used, bytes, part);
        to->used += part;
        bytes += part;
        size -= part;
        if (to->used == PIECE)
            flush(to);
    }
}

static void put_number(struct pieces *to, uint64_t number)
{
    put(to, &number, sizeof number);
}

static void put_array(struct pieces *to, const void *items, size_t count, size_t size)
{
    put_number(to, count);
    if (count > 0)
        put(to, items, count * size);
}

static void fill(struct pieces *from)
{
    size_t wanted = from->left < PIECE ? (size_t)from->left : PIECE;
    ssize_t n = pread(from->fd, from->piece, wanted, from->at);
    if (wanted == 0 || n != (ssize_t)wanted) {
        from->failed = true;
        return;
    }
    from->hash = hash_mix(from->hash, hash_bytes(from->piece, wanted));
    from->at += n;
    from->left -= wanted;
    from->size = wanted;
    from->used = 0;
}

/* Fills `data` with zeros after the end. */
static void take(struct pieces *from, void *data, size_t size)
{
    uint8_t *bytes = data;
    while (size > 0 && !from->failed) {
        if (from->used == from->size)
            fill(from);
        size_t part = size < from->size - from->used ? size : from->size - from->used;
        if (from->failed)
            break;
        memcpy(bytes, from->piece + from->used, part);
        from->used += part;
        bytes += part;
        size -= part;
    }
    if (size > 0)
        memset(bytes, 0, size);
}

static uint64_t take_number(struct pieces *from)
{
    uint64_t number;
    take(from, &number, sizeof number);
    return number;
}

/* Returns how many items of at least `size` bytes follow: no more than there can be. */
static size_t take_count(struct pieces *from, size_t size)
{
    uint64_t count = take_number(from);
    if (count > (from->left + from->size - from->used) / size) {
        from->failed = true;
        return 0;
    }
    return (size_t)count;
}

/* Returns allocated items; NULL if there are none, or on an error. */
static void *take_array(struct pieces *from, size_t *count, size_t size)
{
    *count = take_count(from, size);
    void *items = *count > 0 ? malloc(*count * size) : NULL;
    if (!items) {
        from->failed |= *count > 0;
        *count = 0;
        return NULL;
    }
    take(from, items, *count * size);
    return items;
}

/* MARK: Lanes */

static void put_lane(struct pieces *to, const struct lane *lane, const struct store *store)
{
    struct lane plain = *lane;
    size_t block = 0;
    plain.chunks = NULL;
    put(to, &plain, sizeof plain);
    for (size_t i = 0; i < lane->chunk_count; i++) {
        const struct lane_chunk *chunk = &lane->chunks[i];
        struct kept_chunk kept = {.begin_ns = chunk->begin_ns};
        if (chunk->details)
            kept.details = (uint64_t)(chunk->details - chunk->times);
        to->failed |= !store_position(store, chunk->times, &block, &kept.position);
        put(to, &kept, sizeof kept);
    }
}

static void take_lane(struct pieces *from, struct lane *lane, const struct store *store)
{
    take(from, lane, sizeof *lane);
    uint32_t count = lane->chunk_count;
    lane->chunks = NULL;
    lane->chunk_count = lane->chunk_capacity = 0;
    lane->times_room = lane->details_room = 0;
    if (from->failed || count == 0)
        return;
    from->failed = count > (from->left + from->size) / sizeof(struct kept_chunk);
    lane->chunks = from->failed ? NULL : calloc(count, sizeof *lane->chunks);
    from->failed |= !lane->chunks;
    for (; !from->failed && lane->chunk_count < count; lane->chunk_count++) {
        struct kept_chunk kept;
        take(from, &kept, sizeof kept);
        struct lane_chunk *chunk = &lane->chunks[lane->chunk_count];
        *chunk = (struct lane_chunk){.begin_ns = kept.begin_ns,
                                     .times = store_at(store, kept.position),
                                     .details = store_at(store, kept.position + kept.details)};
        from->failed |= !chunk->times || kept.details > UINT16_MAX;
    }
    lane->chunk_capacity = lane->chunk_count;
}

/* MARK: Names and stacks */

static void put_names(struct pieces *to, const struct names *names)
{
    put_number(to, names->count);
    for (size_t i = 0; i < names->count; i++)
        put_array(to, names->texts[i].data, names->texts[i].size, 1);
    put_number(to, names->waits.count);
    for (const struct idmap_slot *slot = NULL; (slot = idmap_next(&names->waits, slot)) != NULL;) {
        put_number(to, slot->id);
        put(to, slot->value, sizeof(struct wait_facts));
    }
}

static void take_text(struct pieces *from, struct names *names, trail_string *text)
{
    size_t size = take_count(from, 1);
    char *data = size > 0 ? arena_alloc(&names->arena, size) : NULL;
    from->failed |= size > 0 && !data;
    if (data)
        take(from, data, size);
    *text = (trail_string){data ? data : "", data ? size : 0};
}

static void take_names(struct pieces *from, struct names *names)
{
    size_t count = take_count(from, sizeof(uint64_t));
    free(names->texts);
    names->texts = calloc(count + 1, sizeof *names->texts);
    from->failed |= !names->texts;
    for (names->count = 0; !from->failed && names->count < count; names->count++)
        take_text(from, names, &names->texts[names->count]);
    names->capacity = names->count;
    for (size_t waits = take_count(from, sizeof(struct wait_facts)); !from->failed && waits > 0;
         waits--) {
        struct wait_facts *facts = arena_alloc(&names->arena, sizeof *facts);
        uint64_t name = take_number(from);
        from->failed |= !facts || !idmap_put(&names->waits, name, facts);
        if (facts)
            take(from, facts, sizeof *facts);
    }
}

static void put_stacks(struct pieces *to, const struct stacks *stacks)
{
    put_number(to, stacks->count);
    for (size_t i = 0; i < stacks->count; i++) {
        const struct stack_row *row = &stacks->rows[i];
        put_number(to, row->own);
        put_number(to, row->function);
        put_array(to, row->places, row->count, sizeof *row->places);
    }
}

static void take_stack(struct pieces *from, struct stacks *stacks, struct stack_row *row)
{
    size_t own = (size_t)take_number(from);
    trail_name function = (trail_name)take_number(from);
    size_t count = take_count(from, sizeof *row->places);
    trail_place *places = count > 0 ? arena_alloc(&stacks->arena, count * sizeof *places) : NULL;
    from->failed |= count > 0 && (!places || own >= count);
    if (places)
        take(from, places, count * sizeof *places);
    *row = (struct stack_row){
        .places = places,
        .count = places ? count : 0,
        .own = own,
        .function = function,
    };
}

static void take_stacks(struct pieces *from, struct stacks *stacks)
{
    size_t count = take_count(from, 3 * sizeof(uint64_t));
    free(stacks->rows);
    stacks->rows = calloc(count + 1, sizeof *stacks->rows);
    from->failed |= !stacks->rows;
    for (stacks->count = 0; !from->failed && stacks->count < count; stacks->count++)
        take_stack(from, stacks, &stacks->rows[stacks->count]);
    stacks->capacity = stacks->count;
}

/* MARK: All */

static void put_all(struct pieces *to, const struct trail_lanes *lanes)
{
    const struct timeline *t = &lanes->timeline;
    struct numbers numbers = {
        .spans = lanes->spans,
        .spans_between = lanes->spans_between,
        .bytes = lanes->store.bytes,
        .events = t->stats.events,
        .goroutines = t->stats.goroutines,
        .origin_ns = t->origin_ns,
        .last_ns = t->last_ns,
        .wall_ns = lanes->wall_ns,
        .main_tid = t->main_tid,
        .bar_counts = {lanes->bar_counts[0], lanes->bar_counts[1], lanes->bar_counts[2]},
        .has_wall = lanes->has_wall,
        .of_threads = t->of_threads,
        .bin_shift = lanes->bins.shift,
    };
    put(to, &numbers, sizeof numbers);
    put(to, lanes->bins.ns, BINS * sizeof *lanes->bins.ns);
    put_array(to, lanes->bars, lanes->bar_count, sizeof *lanes->bars);
    put_array(to, lanes->logs.items, lanes->logs.count, sizeof *lanes->logs.items);
    put_array(to, lanes->samples.items, lanes->samples.count, sizeof *lanes->samples.items);
    for (int i = 0; i < TRAIL_METRICS; i++)
        put_array(to, lanes->metrics[i], lanes->metric_count[i], sizeof *lanes->metrics[i]);
    put_names(to, &t->names);
    put_stacks(to, &t->stacks);
    for (int kind = 0; kind < TRAIL_LANE_KINDS; kind++) {
        put_number(to, lanes->lists[kind].count);
        for (size_t i = 0; i < lanes->lists[kind].count; i++)
            put_lane(to, &lanes->lists[kind].items[i], &lanes->store);
    }
}

static void take_all(struct pieces *from, struct trail_lanes *lanes)
{
    struct timeline *t = &lanes->timeline;
    struct numbers numbers;
    take(from, &numbers, sizeof numbers);
    lanes->spans = numbers.spans;
    lanes->spans_between = numbers.spans_between;
    lanes->store.bytes = (size_t)numbers.bytes;
    t->stats.events = numbers.events;
    t->stats.goroutines = numbers.goroutines;
    t->origin_ns = numbers.origin_ns;
    t->last_ns = numbers.last_ns;
    lanes->wall_ns = numbers.wall_ns;
    t->main_tid = numbers.main_tid;
    for (int kind = 0; kind < 3; kind++)
        lanes->bar_counts[kind] = (size_t)numbers.bar_counts[kind];
    lanes->has_wall = numbers.has_wall;
    t->of_threads = numbers.of_threads;
    lanes->bins.shift = numbers.bin_shift < 48 ? numbers.bin_shift : 0;
    take(from, lanes->bins.ns, BINS * sizeof *lanes->bins.ns);
    lanes->bars = take_array(from, &lanes->bar_count, sizeof *lanes->bars);
    lanes->logs.items = take_array(from, &lanes->logs.count, sizeof *lanes->logs.items);
    lanes->samples.items = take_array(from, &lanes->samples.count, sizeof *lanes->samples.items);
    for (int i = 0; i < TRAIL_METRICS; i++)
        lanes->metrics[i] = take_array(from, &lanes->metric_count[i], sizeof *lanes->metrics[i]);
    take_names(from, &t->names);
    take_stacks(from, &t->stacks);
    for (int kind = 0; kind < TRAIL_LANE_KINDS; kind++) {
        struct lane_list *list = &lanes->lists[kind];
        size_t count = take_count(from, sizeof(struct lane));
        list->items = count > 0 ? calloc(count, sizeof *list->items) : NULL;
        from->failed |= count > 0 && !list->items;
        for (; !from->failed && list->count < count; list->count++)
            take_lane(from, &list->items[list->count], &lanes->store);
        list->capacity = list->count;
    }
}

/* MARK: Files */

trail_lanes *kept_open(trail_reader *reader, int folder)
{
    struct trail_lanes *lanes = lanes_make(reader);
    if (lanes && !store_use_file(&lanes->store, folder)) {
        trail_lanes_close(lanes);
        lanes = NULL;
    }
    return lanes;
}

bool kept_finish(trail_lanes *lanes, const void *own, size_t own_size)
{
    struct store *store = &lanes->store;
    struct kept_end end = {.layout = layout()};
    struct pieces to = {.fd = store->file - 1};
    for (int kind = 0; kind < TRAIL_LANE_KINDS; kind++)
        for (size_t i = 0; i < lanes->lists[kind].count; i++)
            lane_trim(&lanes->lists[kind].items[i], store);
    memcpy(end.magic, magic, sizeof magic);
    if (store->file <= 0 || store->kept > 0 || lanes->timeline.failed ||
        !(to.piece = malloc(PIECE)))
        return false;
    if (store->block_count > 0)
        end.blocks = (store->block_count - 1) * STORE_BLOCK + store->used;
    to.at = (int64_t)end.blocks;
    put(&to, own, own_size);
    put_all(&to, lanes);
    flush(&to);
    end.rest = (uint64_t)to.at - end.blocks;
    end.hash = to.hash;
    free(to.piece);
    return !to.failed && file_write_at(to.fd, (const uint8_t *)&end, sizeof end, to.at) &&
           ftruncate(to.fd, to.at + (int64_t)sizeof end) == 0;
}

bool kept_name(const trail_lanes *lanes, int folder, const char *name)
{
    char opened[64], fresh[NAME_MAX + 1];
    int fd = lanes->store.file - 1;
    (void)snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
    int size = snprintf(fresh, sizeof fresh, ".%ld-%s", (long)getpid(), name);
    if (size < 0 || (size_t)size >= sizeof fresh || fdatasync(fd) != 0 ||
        linkat(AT_FDCWD, opened, folder, fresh, AT_SYMLINK_FOLLOW) != 0)
        return false;
    if (renameat(folder, fresh, folder, name) == 0)
        return true;
    (void)unlinkat(folder, fresh, 0);
    return false;
}

/* Whether the file ends as the files of this build do. */
static bool read_end(int fd, struct kept_end *end)
{
    struct stat file;
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size < (off_t)sizeof *end ||
        pread(fd, end, sizeof *end, file.st_size - (off_t)sizeof *end) != (ssize_t)sizeof *end)
        return false;
    uint64_t size = (uint64_t)file.st_size - sizeof *end;
    return memcmp(end->magic, magic, sizeof magic) == 0 && end->layout == layout() &&
           end->blocks <= size && end->rest == size - end->blocks;
}

trail_lanes *kept_read(int fd, void *own, size_t own_size)
{
    struct kept_end end;
    struct pieces from = {.fd = fd};
    if (!read_end(fd, &end))
        return NULL;
    struct trail_lanes *lanes = lanes_make(NULL);
    from.piece = malloc(PIECE);
    from.at = (int64_t)end.blocks;
    from.left = end.rest;
    bool good = lanes && from.piece && store_map(&lanes->store, fd, end.blocks);
    if (good) {
        take(&from, own, own_size);
        take_all(&from, lanes);
        good = !from.failed && from.left == 0 && from.used == from.size && from.hash == end.hash;
    }
    free(from.piece);
    if (good)
        return lanes;
    trail_lanes_close(lanes);
    return NULL;
}
