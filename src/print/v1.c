/*
 * --format=go-v1: byte for byte the event lines of `go tool trace -d` of Go 1.21 (§3.8).
 */
#include "print/print.h"

static void v1_string(const trail_reader *reader, uint32_t handle, struct out *out)
{
    trail_string string = trail_reader_string(reader, handle);
    out_bytes(out, string.data, string.size);
}

static void v1_stack(const trail_reader *reader, uint32_t handle, struct out *out)
{
    /* This format shows no stacks. */
    (void)reader, (void)handle, (void)out;
}

static void v1_event(struct print *print, const trail_v1_event *event)
{
    struct out *out = &print->out;
    const trail_v1_type *type = trail_v1_type_get(event->type);
    out_i64(out, event->time_ns);
    out_char(out, ' ');
    out_str(out, type ? type->name : "?");
    PRINT(print, " p=");
    out_i64(out, event->proc);
    PRINT(print, " g=");
    out_i64(out, event->goroutine);
    PRINT(print, " off=");
    out_i64(out, event->offset);
    for (unsigned i = 0; type && i < 4 && type->arg[i]; i++) {
        out_char(out, ' ');
        out_str(out, type->arg[i]);
        out_char(out, '=');
        out_u64(out, event->arg[i]);
    }
    for (unsigned i = 0; type && i < 2 && type->text[i]; i++) {
        out_char(out, ' ');
        out_str(out, type->text[i]);
        out_char(out, '=');
        print_string(print, event->text[i]);
    }
    out_char(out, '\n');
}

const struct printer print_go_v1 = {.string = v1_string, .stack = v1_stack, .v1_event = v1_event};
