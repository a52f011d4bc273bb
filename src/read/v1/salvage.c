/* v1, salvage: tells records from chance bytes; see salvage.h. */
#include "read/v1/salvage.h"

#include "base/utf8.h"

/* Well-formed records that must follow: one of random bytes is well-formed in one of four cases. */
#define FOLLOWING 8

/* Of the records before damage, so many may be chance bytes. */
#define DOUBTED 4

/* Batches of a trace are not further apart: half an hour and more at 500 MHz. */
#define MOST_TICKS (UINT64_C(1) << 40)

/* How much earlier than the first batch of the file that of another P may begin: seconds. */
#define EARLIER_TICKS (UINT64_C(1) << 31)

/* Whether `a` is greater than `b` by more than `most`. */
static bool is_beyond(int64_t a, int64_t b, uint64_t most)
{
    return a > b && (uint64_t)a - (uint64_t)b > most;
}

static bool fits_batch(const struct v1_index *index, const struct v1_record *record)
{
    uint64_t proc = record->number[0];
    int64_t ticks = (int64_t)record->number[record->numbers - 1];
    if (is_beyond(index->first_ticks, ticks, EARLIER_TICKS) ||
        is_beyond(ticks, index->newest_ticks, MOST_TICKS))
        return false;
    size_t known = (size_t)(uintptr_t)idmap_find(&index->chain_ids, proc);
    if (known)
        return ticks > index->chains[known - 1].ticks;
    return proc < V1_MAX_LANES || proc == V1_NO_PROC;
}

static bool is_printable(trail_string text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return false;
    return utf8_valid(text);
}

static bool fits(const struct v1_index *index, const struct tables *tables,
                 const struct v1_record *record)
{
    uint32_t handle;
    switch (record->type) {
    case V1_Batch:
        return fits_batch(index, record);
    case V1_String:
        return is_printable(record->text) && !tables_string(tables, record->number[0], &handle);
    case V1_Stack:
        return record->number[0] != 0 && record->number[1] != 0 &&
               !tables_stack(tables, record->number[0], &handle);
    default:
        return false;
    }
}

bool v1_salvage_fits(const struct v1_index *index, const struct tables *tables, const uint8_t *at)
{
    const struct v1_bytes *bytes = &index->input.bytes;
    const uint8_t *end = bytes->data + bytes->size;
    struct v1_record record;
    unsigned type = *at & V1_TYPE_MASK;
    if ((type != V1_Batch && type != V1_String && type != V1_Stack) ||
        v1_record_read(index->format, bytes, at, &record, NULL) < 0 ||
        !fits(index, tables, &record))
        return false;
    at = record.end;
    for (unsigned i = 0; i < FOLLOWING && at < end; i++, at = record.end)
        if (v1_record_read(index->format, bytes, at, &record, NULL) < 0)
            return false;
    return true;
}

const uint8_t *v1_salvage_end(const struct v1_format *format, const struct v1_bytes *bytes,
                              const uint8_t *at, const uint8_t *end, const struct v1_hole *hole,
                              int64_t ticks)
{
    const uint8_t *recent[DOUBTED] = {at, at, at, at};
    struct v1_record record;
    for (unsigned i = 0; at < end; i++, at = record.end) {
        if (v1_record_read(format, bytes, at, &record, NULL) < 0)
            break;
        unsigned fields = v1_time_fields(record.type, format->version);
        if (fields > 0 && (record.type != V1_CPUSample || !format->newer_rules))
            ticks = (int64_t)((uint64_t)ticks + record.number[fields - 1]);
        if (ticks > hole->latest_ticks)
            break;
        if (fields > 0)
            recent[i % DOUBTED] = at;
        else /* a string, stack or frequency is not met by chance */
            recent[0] = recent[1] = recent[2] = recent[3] = record.end;
    }
    if (hole->exact)
        return at;
    const uint8_t *oldest = recent[0];
    for (unsigned i = 1; i < DOUBTED; i++)
        oldest = recent[i] < oldest ? recent[i] : oldest;
    return oldest;
}
