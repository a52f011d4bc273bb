/* See cfi_table.h. cfi_find reads this layout (LSB Core, "The .eh_frame_hdr section"). */
#include "collect/cfi_table.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FUNCTIONS (1u << 20)

/*
 * Encodings: 4 bytes relative to where they are, 4 bytes unsigned, 4 bytes relative to the table.
 */
struct head {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frames; /* unused */
    uint32_t count;
};

struct row {
    int32_t start, fde; /* relative to the table */
};

/* Sets *row; false: too far from the table. */
static bool row_of(uintptr_t table, uintptr_t start, uintptr_t fde, struct row *row)
{
    int64_t to_start = (int64_t)(start - table), to_fde = (int64_t)(fde - table);
    *row = (struct row){(int32_t)to_start, (int32_t)to_fde};
    return row->start == to_start && row->fde == to_fde;
}

size_t cfi_table_size(const struct cfi_module *module, uintptr_t frames)
{
    uintptr_t at = frames, start;
    size_t count = 0;
    while (count < MOST_FUNCTIONS && cfi_next(module, &at, &start))
        count += start != 0;
    return count ? sizeof(struct head) + count * sizeof(struct row) : 0;
}

static int by_start(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

void cfi_table_make(struct cfi_module *module, uintptr_t frames, uintptr_t to, size_t size)
{
    struct head head = {
        .version = 1, .frame_encoding = 0x1b, .count_encoding = 0x03, .table_encoding = 0x3b};
    uintptr_t rows = to + sizeof head, at = frames, entry = frames, start;
    size_t most = (size - sizeof head) / sizeof(struct row);
    while (head.count < most && cfi_next(module, &at, &start)) {
        struct row row;
        if (start != 0 && row_of(to, start, entry, &row))
            memcpy((void *)(rows + head.count++ * sizeof row), &row, sizeof row);
        entry = at;
    }
    qsort((void *)rows, head.count, sizeof(struct row), by_start);
    memcpy((void *)to, &head, sizeof head);
    module->header = (struct cfi_range){to, to + size};
}
