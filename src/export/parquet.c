/* Writes Parquet files: see parquet.h. */
#include "export/parquet.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/intern.h"
#include "base/out.h"
#include "base/text.h"
#include "export/parquet_ids.h"
#include "export/parquet_page.h"
#include "export/thrift.h"

#define MAGIC "PAR1"

/* One thread reads a row group; this is the default size of DuckDB's. */
#define GROUP_ROWS ((size_t)122880)

/* A group whose texts have this many bytes gets no more rows. */
#define GROUP_TEXT ((size_t)64 << 20)

/* Rows of one word of trail_values.valid, and those that are added at a time, column by column. */
#define WORD ((size_t)64)
#define STEP (8 * WORD)

/* Longer texts are not recorded as the minimum or maximum of a column. */
#define EXTREME_SIZE ((size_t)64)

enum { RECENT = 64 };

/* Bytes at the end of a page that decide whether it is compressed: random differences are not. */
#define SAMPLE ((size_t)16 << 10)

/* The numbers of the format. */
enum { VERSION = 1, DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { CODEC_NONE = 0, CODEC_ZSTD = 6 };
enum { TYPE_BOOLEAN = 0, TYPE_INT32 = 1, TYPE_INT64 = 2, TYPE_BYTE_ARRAY = 6 };
enum { REQUIRED = 0, OPTIONAL = 1 };

/* Types, and their meanings: as a converted type, for old readers, and as a member of a union. */
enum { NO_MEANING = -1 };
static const struct kind {
    int type, converted, logical;
} kinds[] = {
    [TRAIL_CELL_I64] = {TYPE_INT64, NO_MEANING, NO_MEANING},
    [TRAIL_CELL_I32] = {TYPE_INT32, NO_MEANING, NO_MEANING},
    [TRAIL_CELL_BOOL] = {TYPE_BOOLEAN, NO_MEANING, NO_MEANING},
    [TRAIL_CELL_ENUM] = {TYPE_BYTE_ARRAY, 0, 1}, /* UTF8, STRING */
    [TRAIL_CELL_TEXT] = {TYPE_BYTE_ARRAY, 0, 1},
    [TRAIL_CELL_DATE] = {TYPE_INT32, 6, 6},
};

/* A text that was just added; number + 1, 0: none. */
struct recent {
    trail_string text;
    int64_t number;
};

/* The distinct texts of a column in a row group; texts[i] has the number i. */
struct dictionary {
    struct intern intern; /* owns the texts; its numbers are from 1 */
    trail_string *texts;
    size_t count, capacity;
    uint32_t words[256];          /* of an enumeration: the number of a word plus 1; 0: none yet */
    struct recent recent[RECENT]; /* of the rows being added, by address: most repeat */
};

struct column {
    const trail_table_column *definition;
    size_t index;                          /* in the table */
    size_t count;                          /* of values that are not NULL */
    uint64_t valid[GROUP_ROWS / WORD + 1]; /* one bit per row */
    struct parquet_deltas deltas;          /* numbers */
    uint32_t *indices;                     /* truth values; texts and words by their number */
    size_t capacity;                       /* of indices */
    struct dictionary *dictionary;         /* of texts and words; else NULL */
    /* Once it is in `out` of the rows: */
    size_t begin, data, end; /* places in it: of all pages, of the data page */
    size_t plain_size;       /* before compression */
    int codec;
};

struct parquet_rows {
    struct parquet *parquet;
    size_t count, text_size;
    bool failed;                  /* rows are incomplete: nothing more is written */
    struct protobuf out;          /* the finished pages */
    struct protobuf page, packed; /* the content of one, before and after compression */
    ZSTD_CCtx *zstd;
    struct column columns[]; /* those wanted */
};

struct parquet {
    const trail_table *table;
    size_t wanted[8 * sizeof(uint32_t)]; /* columns of the table */
    size_t column_count;
    pthread_mutex_t lock; /* protects the members below */
    struct out out;
    uint64_t size; /* of what was written */
    uint64_t row_count;
    struct protobuf groups; /* as in the footer */
    size_t group_count;
    struct protobuf ids; /* see parquet_ids.h */
};

/* MARK: Dictionaries */

/* Returns the number of a new text; -1: out of memory. */
static int64_t add_text(struct parquet_rows *rows, struct dictionary *to, trail_string text)
{
    const char *copy = intern_text(&to->intern, text.data, text.size);
    if (!copy || !APPEND(to->texts, to->capacity, to->count, (trail_string){copy, text.size}))
        return -1;
    rows->text_size += text.size;
    return (int64_t)to->count - 1;
}

/* Returns the number of a text that is not recent. Sets `failed` if out of memory. */
static __attribute__((noinline)) int64_t look_up(struct parquet_rows *rows, struct dictionary *of,
                                                 trail_string text)
{
    bool fresh;
    int64_t number = (int64_t)intern_put(&of->intern, text.data, text.size, &fresh) - 1;
    if (number >= 0 && fresh)
        number = add_text(rows, of, text);
    if (number < 0)
        rows->failed = true;
    return number;
}

static inline uint32_t number_of_text(struct parquet_rows *rows, struct dictionary *of,
                                      trail_string text)
{
    struct recent *recent = &of->recent[((uintptr_t)text.data / 8 ^ text.size) % RECENT];
    if (recent->number == 0 || recent->text.data != text.data || recent->text.size != text.size)
        *recent = (struct recent){text, look_up(rows, of, text) + 1};
    return (uint32_t)(recent->number - 1);
}

static inline uint32_t number_of_word(struct parquet_rows *rows, const struct column *column,
                                      uint8_t word)
{
    uint32_t *known = &column->dictionary->words[word];
    const char *text = column->definition->words[word];
    if (*known == 0)
        *known =
            (uint32_t)look_up(rows, column->dictionary, (trail_string){text, strlen(text)}) + 1;
    return *known - 1;
}

/* Other rows may have other texts at the same addresses. */
static void forget_recent(struct dictionary *dictionary)
{
    memset(dictionary->recent, 0, sizeof dictionary->recent);
}

static void dictionary_clear(struct dictionary *dictionary)
{
    intern_clear(&dictionary->intern);
    dictionary->count = 0;
    memset(dictionary->words, 0, sizeof dictionary->words);
    forget_recent(dictionary);
}

static void dictionary_free(struct dictionary *dictionary)
{
    if (!dictionary)
        return;
    intern_free(&dictionary->intern);
    free(dictionary->texts);
    free(dictionary);
}

/* MARK: Collecting */

/* Whether values are numbers, which are encoded as they arrive. */
static bool has_numbers(const struct column *column)
{
    return !column->dictionary && column->definition->cell != TRAIL_CELL_BOOL;
}

/* Of each row in `valid`, from `from` on, the value at `row` goes to *to. */
#define EACH_VALUE(value)                                                                          \
    if (valid == UINT64_MAX)                                                                       \
        for (size_t row = from; row < from + WORD; row++)                                          \
            *to++ = (value);                                                                       \
    else                                                                                           \
        for (uint64_t left = valid; left != 0; left &= left - 1) {                                 \
            size_t row = from + (size_t)__builtin_ctzll(left);                                     \
            *to++ = (value);                                                                       \
        }

static void add_numbers(struct column *column, const trail_values *values, size_t from,
                        uint64_t valid)
{
    bool wide = column->definition->cell == TRAIL_CELL_I64;
    int64_t some[WORD], *to = some;
    if (wide) {
        EACH_VALUE(values->i64[row])
    } else {
        EACH_VALUE(values->i32[row])
    }
    parquet_add_deltas(&column->deltas, some, (size_t)(to - some), wide);
}

/* Adds the values of one word of rows. */
static void add_word(struct parquet_rows *rows, struct column *column, const trail_values *values,
                     size_t from, uint64_t valid)
{
    uint32_t *to = column->indices + column->count;
    switch (column->definition->cell) {
    case TRAIL_CELL_I64:
    case TRAIL_CELL_I32:
    case TRAIL_CELL_DATE:
        add_numbers(column, values, from, valid);
        break;
    case TRAIL_CELL_BOOL:
        EACH_VALUE(values->u8[row])
        break;
    case TRAIL_CELL_ENUM:
        EACH_VALUE(number_of_word(rows, column, values->u8[row]))
        break;
    case TRAIL_CELL_TEXT:
        EACH_VALUE(number_of_text(rows, column->dictionary, values->text[row]))
        break;
    }
    column->count += (size_t)__builtin_popcountll(valid);
}

/* Adds rows of a column, from a multiple of WORD on. Returns false if out of memory. */
static bool add_values(struct parquet_rows *rows, struct column *column, const trail_values *values,
                       size_t from, size_t count)
{
    if (!has_numbers(column) && !GROW(column->indices, column->capacity, column->count + count))
        return false;
    for (size_t at = 0; at < count; at += WORD) {
        size_t row = rows->count + at, shift = row % WORD;
        uint64_t valid = count - at < WORD ? UINT64_MAX >> (WORD - (count - at)) : UINT64_MAX;
        if (values->valid)
            valid &= values->valid[(from + at) / WORD];
        if (valid == 0)
            continue;
        column->valid[row / WORD] |= valid << shift;
        if (shift > 0)
            column->valid[row / WORD + 1] |= valid >> (WORD - shift);
        add_word(rows, column, values, from + at, valid);
    }
    return !rows->failed;
}

/* Adds at most STEP rows. */
static bool add_step(struct parquet_rows *rows, const trail_rows *more, size_t from, size_t count)
{
    for (size_t i = 0; i < rows->parquet->column_count; i++) {
        struct column *column = &rows->columns[i];
        if (!add_values(rows, column, &more->columns[column->index], from, count))
            return false;
    }
    rows->count += count;
    return true;
}

static void rows_clear(struct parquet_rows *rows)
{
    for (size_t i = 0; i < rows->parquet->column_count; i++) {
        struct column *column = &rows->columns[i];
        memset(column->valid, 0, (rows->count / WORD + 1) * sizeof *column->valid);
        column->count = 0;
        parquet_clear_deltas(&column->deltas);
        if (column->dictionary)
            dictionary_clear(column->dictionary);
    }
    rows->count = rows->text_size = 0;
    rows->out.size = 0;
}

/* MARK: Pages */

/* Compresses the page, from `from` on, into `packed`. */
static bool pack(struct parquet_rows *rows, size_t from)
{
    struct protobuf *packed = &rows->packed;
    size_t size = rows->page.size - from, bound = ZSTD_compressBound(size);
    if (rows->page.failed || rows->page.size > INT32_MAX / 2 ||
        !GROW(packed->data, packed->capacity, bound))
        return false;
    packed->size =
        ZSTD_compressCCtx(rows->zstd, packed->data, bound, rows->page.data + from, size, 1);
    return !ZSTD_isError(packed->size);
}

/* Returns how to compress a column of one page: not if that saves less than a tenth. */
static int codec_of_page(struct parquet_rows *rows)
{
    bool saves = rows->page.size <= SAMPLE || !pack(rows, rows->page.size - SAMPLE) ||
                 rows->packed.size < SAMPLE - SAMPLE / 10;
    return saves ? CODEC_ZSTD : CODEC_NONE;
}

/* Moves the page to `out`, after its header. */
static void put_page(struct parquet_rows *rows, struct column *column, bool data, size_t count,
                     enum parquet_encoding encoding)
{
    struct thrift thrift = {.to = &rows->out};
    size_t begin = rows->out.size;
    const struct protobuf *stored = column->codec == CODEC_NONE ? &rows->page : &rows->packed;
    if (column->codec != CODEC_NONE && !pack(rows, 0)) {
        rows->out.failed = true;
        return;
    }
    thrift_i32(&thrift, 1, data ? DATA_PAGE : DICTIONARY_PAGE);
    thrift_i32(&thrift, 2, (int32_t)rows->page.size);
    thrift_i32(&thrift, 3, (int32_t)stored->size);
    thrift_begin(&thrift, data ? 5 : 7);
    thrift_i32(&thrift, 1, (int32_t)count);
    thrift_i32(&thrift, 2, (int32_t)encoding);
    if (data) {
        thrift_i32(&thrift, 3, PARQUET_RLE); /* of definition and repetition levels */
        thrift_i32(&thrift, 4, PARQUET_RLE);
    }
    thrift_end(&thrift);
    thrift_end(&thrift);
    column->plain_size += rows->out.size - begin + rows->page.size;
    protobuf_raw(&rows->out, stored->data, stored->size);
    rows->page.size = 0;
}

static void put_dictionary(struct parquet_rows *rows, struct column *column)
{
    const struct dictionary *dictionary = column->dictionary;
    for (size_t i = 0; i < dictionary->count; i++) {
        parquet_put_fixed(&rows->page, dictionary->texts[i].size, 4);
        protobuf_raw(&rows->page, dictionary->texts[i].data, dictionary->texts[i].size);
    }
    put_page(rows, column, false, dictionary->count, PARQUET_PLAIN);
}

/* Some readers accept no page of differences, and none with a dictionary, that is empty. */
static enum parquet_encoding encoding_of(const struct column *column)
{
    if (column->count > 0 && column->dictionary)
        return PARQUET_DICTIONARY;
    return column->count > 0 && has_numbers(column) ? PARQUET_DELTA : PARQUET_PLAIN;
}

static void put_values(struct protobuf *to, const struct column *column)
{
    if (has_numbers(column))
        parquet_put_deltas(to, &column->deltas);
    else if (column->dictionary)
        parquet_put_indices(to, column->indices, column->count, column->dictionary->count);
    else
        parquet_put_bits(to, column->indices, column->count);
}

static void put_column(struct parquet_rows *rows, struct column *column)
{
    column->begin = rows->out.size;
    column->plain_size = 0;
    column->codec = CODEC_ZSTD;
    if (encoding_of(column) == PARQUET_DICTIONARY)
        put_dictionary(rows, column);
    column->data = rows->out.size;
    if (column->definition->nullable)
        parquet_put_levels(&rows->page, column->valid, rows->count, column->count);
    if (column->count > 0)
        put_values(&rows->page, column);
    if (encoding_of(column) == PARQUET_DELTA)
        column->codec = codec_of_page(rows);
    put_page(rows, column, true, rows->count, encoding_of(column));
    column->end = rows->out.size;
}

/* MARK: What the footer says of a row group */

static int compare(trail_string a, trail_string b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static void put_text_range(struct thrift *to, const struct dictionary *dictionary)
{
    trail_string least = dictionary->texts[0], greatest = least;
    for (size_t i = 1; i < dictionary->count; i++) {
        trail_string text = dictionary->texts[i];
        least = compare(text, least) < 0 ? text : least;
        greatest = compare(text, greatest) > 0 ? text : greatest;
    }
    if (least.size > EXTREME_SIZE || greatest.size > EXTREME_SIZE)
        return;
    thrift_binary(to, 5, greatest.data, greatest.size);
    thrift_binary(to, 6, least.data, least.size);
}

static void put_number(struct thrift *to, unsigned field, int64_t value, unsigned size)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> (8 * i));
    thrift_binary(to, field, bytes, size);
}

static void put_number_range(struct thrift *to, const struct column *column)
{
    unsigned size = column->definition->cell == TRAIL_CELL_I64 ? 8 : 4;
    put_number(to, 5, column->deltas.greatest, size);
    put_number(to, 6, column->deltas.least, size);
}

static void put_statistics(struct thrift *to, const struct parquet_rows *rows,
                           const struct column *column)
{
    thrift_begin(to, 12);
    thrift_i64(to, 3, (int64_t)(rows->count - column->count));
    if (column->count > 0 && column->dictionary)
        put_text_range(to, column->dictionary);
    else if (column->count > 0 && has_numbers(column))
        put_number_range(to, column);
    thrift_end(to);
}

/* `base`: where the row group begins in the file. */
static void put_chunk(struct thrift *to, const struct parquet_rows *rows,
                      const struct column *column, int64_t base)
{
    enum parquet_encoding encoding = encoding_of(column);
    bool has_dictionary = encoding == PARQUET_DICTIONARY;
    thrift_element(to);
    thrift_i64(to, 2, base + (int64_t)column->begin);
    thrift_begin(to, 3);
    thrift_i32(to, 1, kinds[column->definition->cell].type);
    thrift_list(to, 2, THRIFT_I32, has_dictionary ? 3 : 2);
    thrift_i32(to, 0, (int32_t)encoding);
    thrift_i32(to, 0, PARQUET_RLE);
    if (has_dictionary)
        thrift_i32(to, 0, PARQUET_PLAIN);
    thrift_list(to, 3, THRIFT_BINARY, 1);
    thrift_word(to, 0, column->definition->name);
    thrift_i32(to, 4, column->codec);
    thrift_i64(to, 5, (int64_t)rows->count);
    thrift_i64(to, 6, (int64_t)column->plain_size);
    thrift_i64(to, 7, (int64_t)(column->end - column->begin));
    thrift_i64(to, 9, base + (int64_t)column->data);
    if (has_dictionary)
        thrift_i64(to, 11, base + (int64_t)column->begin);
    put_statistics(to, rows, column);
    thrift_end(to);
    thrift_end(to);
}

static void put_group(struct parquet *parquet, const struct parquet_rows *rows)
{
    struct thrift thrift = {.to = &parquet->groups};
    uint64_t plain_size = 0;
    thrift_list(&thrift, 1, THRIFT_STRUCT, parquet->column_count);
    for (size_t i = 0; i < parquet->column_count; i++) {
        put_chunk(&thrift, rows, &rows->columns[i], (int64_t)parquet->size);
        plain_size += rows->columns[i].plain_size;
    }
    thrift_i64(&thrift, 2, (int64_t)plain_size);
    thrift_i64(&thrift, 3, (int64_t)rows->count);
    thrift_i64(&thrift, 5, (int64_t)parquet->size);
    thrift_i64(&thrift, 6, (int64_t)rows->out.size);
    thrift_end(&thrift);
}

/* Of the table `traces`. */
static void put_ids(struct parquet *parquet, const struct parquet_rows *rows)
{
    for (size_t i = 0; i < parquet->column_count; i++) {
        const struct column *column = &rows->columns[i];
        if (strcmp(column->definition->name, "trace") != 0)
            continue;
        for (size_t j = 0; j < column->count; j++) {
            trail_string id = column->dictionary->texts[column->indices[j]];
            protobuf_raw(&parquet->ids, ",", parquet->ids.size > 0);
            protobuf_raw(&parquet->ids, id.data, id.size);
        }
    }
}

/* MARK: The file */

static void write_bytes(struct parquet *parquet, const void *data, size_t size)
{
    out_bytes(&parquet->out, data, size);
    parquet->size += size;
}

/* Returns false if out of memory, or if the sink has failed. */
static bool write_rows(struct parquet_rows *rows)
{
    struct parquet *parquet = rows->parquet;
    for (size_t i = 0; i < parquet->column_count; i++)
        put_column(rows, &rows->columns[i]);
    if (rows->out.failed)
        return false;
    pthread_mutex_lock(&parquet->lock);
    put_group(parquet, rows);
    if (parquet->table == trail_table_get(TRAIL_TABLE_TRACES))
        put_ids(parquet, rows);
    write_bytes(parquet, rows->out.data, rows->out.size);
    parquet->group_count++;
    parquet->row_count += rows->count;
    bool good = !parquet->groups.failed && !parquet->out.failed;
    pthread_mutex_unlock(&parquet->lock);
    rows_clear(rows);
    return good;
}

static void put_meaning(struct thrift *to, const struct kind *kind)
{
    if (kind->converted == NO_MEANING)
        return;
    thrift_i32(to, 6, kind->converted);
    thrift_begin(to, 10);
    thrift_begin(to, (unsigned)kind->logical);
    thrift_end(to);
    thrift_end(to);
}

static void put_schema(struct thrift *to, const struct parquet *parquet)
{
    thrift_list(to, 2, THRIFT_STRUCT, parquet->column_count + 1);
    thrift_element(to);
    thrift_word(to, 4, parquet->table->name);
    thrift_i32(to, 5, (int32_t)parquet->column_count);
    thrift_end(to);
    for (size_t i = 0; i < parquet->column_count; i++) {
        const trail_table_column *column = &parquet->table->columns[parquet->wanted[i]];
        thrift_element(to);
        thrift_i32(to, 1, kinds[column->cell].type);
        thrift_i32(to, 3, column->nullable ? OPTIONAL : REQUIRED);
        thrift_word(to, 4, column->name);
        put_meaning(to, &kinds[column->cell]);
        thrift_end(to);
    }
}

static void put_note(struct thrift *to, const struct protobuf *ids)
{
    if (ids->size == 0)
        return;
    thrift_list(to, 5, THRIFT_STRUCT, 1);
    thrift_element(to);
    thrift_word(to, 1, PARQUET_IDS);
    thrift_binary(to, 2, ids->data, ids->size);
    thrift_end(to);
}

/* Readers ignore minimum and maximum unless the footer states their order. */
static void put_orders(struct thrift *to, const struct parquet *parquet)
{
    thrift_list(to, 7, THRIFT_STRUCT, parquet->column_count);
    for (size_t i = 0; i < parquet->column_count; i++) {
        thrift_element(to);
        thrift_begin(to, 1);
        thrift_end(to);
        thrift_end(to);
    }
}

static bool put_footer(struct parquet *parquet, struct protobuf *footer)
{
    struct thrift thrift = {.to = footer};
    thrift_i32(&thrift, 1, VERSION);
    put_schema(&thrift, parquet);
    thrift_i64(&thrift, 3, (int64_t)parquet->row_count);
    thrift_list(&thrift, 4, THRIFT_STRUCT, parquet->group_count);
    protobuf_raw(footer, parquet->groups.data, parquet->groups.size);
    put_note(&thrift, &parquet->ids);
    thrift_word(&thrift, 6, "trail");
    put_orders(&thrift, parquet);
    thrift_end(&thrift);
    parquet_put_fixed(footer, footer->size, 4);
    return !footer->failed && !parquet->groups.failed && !parquet->ids.failed;
}

struct parquet *parquet_open(const trail_table *table, uint32_t wanted, const trail_sink *sink)
{
    struct parquet *parquet = calloc(1, sizeof *parquet);
    if (!parquet || !out_init(&parquet->out, sink->write, sink->context)) {
        free(parquet);
        return NULL;
    }
    parquet->table = table;
    for (size_t i = 0; i < table->column_count; i++)
        if ((wanted >> i & 1) != 0)
            parquet->wanted[parquet->column_count++] = i;
    pthread_mutex_init(&parquet->lock, NULL);
    write_bytes(parquet, MAGIC, strlen(MAGIC));
    return parquet;
}

int parquet_close(struct parquet *parquet, bool keep, trail_error *err)
{
    struct protobuf footer = {0};
    int result = 0;
    bool made = keep && put_footer(parquet, &footer);
    if (keep && !made)
        result = error_no_memory(err);
    if (made) {
        write_bytes(parquet, footer.data, footer.size);
        write_bytes(parquet, MAGIC, strlen(MAGIC));
        result = out_finish(&parquet->out, err);
    } else {
        out_drop(&parquet->out);
    }
    protobuf_free(&footer);
    protobuf_free(&parquet->groups);
    protobuf_free(&parquet->ids);
    pthread_mutex_destroy(&parquet->lock);
    free(parquet);
    return result;
}

/* MARK: Rows */

static void rows_free(struct parquet_rows *rows)
{
    for (size_t i = 0; i < rows->parquet->column_count; i++) {
        protobuf_free(&rows->columns[i].deltas.blocks);
        free(rows->columns[i].indices);
        dictionary_free(rows->columns[i].dictionary);
    }
    protobuf_free(&rows->out);
    protobuf_free(&rows->page);
    protobuf_free(&rows->packed);
    (void)ZSTD_freeCCtx(rows->zstd);
    free(rows);
}

struct parquet_rows *parquet_rows_new(struct parquet *parquet)
{
    struct parquet_rows *rows =
        calloc(1, sizeof *rows + parquet->column_count * sizeof *rows->columns);
    if (!rows)
        return NULL;
    rows->parquet = parquet;
    rows->zstd = ZSTD_createCCtx();
    bool good = rows->zstd != NULL;
    for (size_t i = 0; i < parquet->column_count; i++) {
        struct column *column = &rows->columns[i];
        column->index = parquet->wanted[i];
        column->definition = &parquet->table->columns[column->index];
        if (kinds[column->definition->cell].type != TYPE_BYTE_ARRAY)
            continue;
        column->dictionary = calloc(1, sizeof *column->dictionary);
        good = good && column->dictionary;
    }
    if (good)
        return rows;
    rows_free(rows);
    return NULL;
}

static bool add_rows(struct parquet_rows *rows, const trail_rows *more)
{
    for (size_t from = 0; from < more->count; from += STEP) {
        size_t count = more->count - from < STEP ? more->count - from : STEP;
        if (!add_step(rows, more, from, count))
            return false;
        bool is_full = rows->count + STEP > GROUP_ROWS || rows->text_size >= GROUP_TEXT;
        if (is_full && !write_rows(rows))
            return false;
    }
    return true;
}

bool parquet_rows_add(struct parquet_rows *rows, const trail_rows *more)
{
    for (size_t i = 0; i < rows->parquet->column_count; i++)
        if (rows->columns[i].dictionary)
            forget_recent(rows->columns[i].dictionary);
    rows->failed = rows->failed || !add_rows(rows, more);
    return !rows->failed;
}

bool parquet_rows_end(struct parquet_rows *rows, bool keep)
{
    bool good = !keep || (!rows->failed && (rows->count == 0 || write_rows(rows)));
    rows_free(rows);
    return good;
}
