#include "export/print.h"
static void nothing(const trail_reader *reader, uint32_t handle, struct out *out)
{
    (void)reader, (void)handle, (void)out;
}
static void event(struct print *print, const trail_event *e)
{
    (void)e;
    out_char(&print->out, '\n');
}
const struct printer print_jsonl = {.string = nothing, .stack = nothing, .event = event};
