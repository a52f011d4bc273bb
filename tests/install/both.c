/* libtrail-record and libtrail in one program: one reads what the other writes. */
#include <stdio.h>
#include <string.h>
#include <trail/analyze.h>
#include <trail/export.h>
#include <trail/lanes.h>
#include <trail/read.h>
#include <trail/record.h>

struct memory {
    char bytes[1 << 20];
    size_t size;
};

static bool keep(void *to, const trail_chunk *chunk)
{
    struct memory *memory = to;
    if (chunk->size > sizeof memory->bytes - memory->size)
        return false;
    memcpy(memory->bytes + memory->size, chunk->data, chunk->size);
    memory->size += chunk->size;
    return true;
}

int main(void)
{
    static struct memory memory;
    trail_error err = {0};
    trail_source *source;
    trail_reader *reader;
    const trail_event *event;
    int more, logs = 0;
    if (!trail_start_sink(NULL, keep, &memory, &err))
        return 1;
    trail_log(0, "both", "one");
    trail_log(0, "both", "two");
    if (!trail_stop(&err))
        return 1;
    source = trail_source_open_memory(memory.bytes, memory.size, &err);
    reader = source ? trail_reader_open(source, NULL, &err) : NULL;
    if (!reader)
        return 1;
    while ((more = trail_reader_next(reader, &event)) > 0)
        logs += event->kind == TRAIL_LOG;
    printf("%d logs\n", logs);
    trail_reader_close(reader);
    trail_source_close(source);
    return more < 0 || logs != 2;
}
