/* v1, input: the bytes of a trace, in place, read again or kept. */
#include "read/v1/input.h"

#include <stdlib.h>

#include "base/error.h"
#include "read/source.h"

#define STEP ((size_t)256 << 10) /* read at a time */

static int no_memory(size_t size, trail_error *err)
{
    return error_set(err, TRAIL_NO_MEMORY, "no memory for a trace of over %zu bytes", size);
}

int v1_input_open(struct v1_input *input, trail_source *source, bool keep, trail_error *err)
{
    input->source = source;
    input->in_place = source_in_place(source, &input->bytes.data, &input->bytes.size);
    if (input->in_place)
        return 0;
    input->again = source_is_file(source) && !keep;
    input->capacity = 2 * STEP;
    input->buffer = malloc(input->capacity);
    input->bytes.data = input->buffer;
    return input->buffer ? 0 : no_memory(0, err);
}

void v1_input_close(struct v1_input *input)
{
    free(input->buffer);
    *input = (struct v1_input){0};
}

/* Drops the bytes before `at` of a file. */
static void drop_before(struct v1_input *input, const uint8_t *at)
{
    size_t gone = (size_t)(at - input->bytes.data);
    if (!input->again || gone == 0)
        return;
    memmove(input->buffer, at, input->bytes.size - gone);
    input->bytes.size -= gone;
    input->bytes.offset += gone;
}

/* Makes room for another step. Returns false if out of memory. */
static bool make_room(struct v1_input *input)
{
    if (input->capacity - input->bytes.size >= STEP)
        return true;
    size_t wanted = 2 * input->capacity;
    uint8_t *grown = wanted > input->capacity ? realloc(input->buffer, wanted) : NULL;
    if (!grown)
        return false;
    input->buffer = grown;
    input->capacity = wanted;
    input->bytes.data = grown;
    return true;
}

int v1_input_more(struct v1_input *input, const uint8_t **at, trail_error *err)
{
    if (input->in_place)
        return 0;
    uint64_t offset = v1_offset(&input->bytes, *at);
    drop_before(input, *at);
    if (!make_room(input))
        return no_memory(input->bytes.size, err);
    ssize_t n = source_read(input->source, input->buffer + input->bytes.size, STEP, err);
    input->bytes.size += n > 0 ? (size_t)n : 0;
    *at = input->bytes.data + (offset - input->bytes.offset);
    return n < 0 ? -1 : n > 0;
}

int v1_input_get(const struct v1_input *input, uint64_t offset, size_t size, struct v1_piece *piece,
                 struct v1_bytes *bytes, trail_error *err)
{
    if (!input->again) {
        *bytes = input->bytes;
        return 0;
    }
    if (size > SIZE_MAX - V1_PIECE_SLACK)
        return no_memory(size, err);
    if (size + V1_PIECE_SLACK > piece->capacity) {
        free(piece->data);
        *piece = (struct v1_piece){.data = malloc(size + V1_PIECE_SLACK)};
        if (!piece->data)
            return no_memory(size, err);
        piece->capacity = size + V1_PIECE_SLACK;
    }
    *bytes = (struct v1_bytes){.data = piece->data, .size = size, .offset = offset};
    memset(piece->data + size, 0, V1_PIECE_SLACK);
    return source_again(input->source, offset, piece->data, size, err);
}

uint64_t v1_input_size(const struct v1_input *input)
{
    return input->again ? (uint64_t)trail_source_size(input->source)
                        : input->bytes.offset + input->bytes.size;
}
