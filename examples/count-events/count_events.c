/*
 * Counts the events of a trace by kind.
 *
 *     cc count_events.c $(pkg-config --cflags --libs trail) -o count_events
 */
#include <stdio.h>
#include <trail/read.h>

int main(int argc, char **argv)
{
    trail_error err = {0};
    trail_source *source = trail_source_open_path(argc > 1 ? argv[1] : "-", &err);
    trail_reader *reader = source ? trail_reader_open(source, NULL, &err) : NULL;
    unsigned long count[TRAIL_KINDS] = {0};
    const trail_event *event;
    int more = reader ? 1 : -1;
    while (reader && (more = trail_reader_next(reader, &event)) > 0)
        count[event->kind]++;
    for (int kind = 0; kind < TRAIL_KINDS; kind++)
        if (count[kind])
            printf("%10lu %s\n", count[kind], trail_kind_name((trail_kind)kind));
    if (more < 0)
        fprintf(stderr, "%s\n", reader ? trail_reader_error(reader)->message : err.message);
    trail_reader_close(reader);
    trail_source_close(source);
    return more < 0;
}
