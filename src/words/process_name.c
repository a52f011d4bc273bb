/* Splits the names of threads in recordings of several processes. */
#include "words/process_name.h"

#include <string.h>

#include "base/text.h"

/* Returns the number in parentheses before `end`; false: none. *open: where the parenthesis is. */
static bool number_before(trail_string text, size_t end, size_t *open, uint64_t *number)
{
    size_t at = end;
    uint64_t unit = 1;
    *number = 0;
    while (at > 0 && end - at < 10 && is_digit(text.data[at - 1])) {
        *number += unit * (uint64_t)(text.data[--at] - '0');
        unit *= 10;
    }
    if (at == end || at == 0 || text.data[at - 1] != '(')
        return false;
    *open = at - 1;
    return true;
}

bool process_name_of(trail_string thread, struct process_name *process)
{
    for (size_t i = 0; i + 2 < thread.size; i++) {
        size_t open;
        if (memcmp(thread.data + i, "): ", 3) != 0 ||
            !number_before(thread, i, &open, &process->pid))
            continue;
        process->label = (trail_string){thread.data, i + 1};
        process->name = (trail_string){thread.data, open > 0 ? open - 1 : 0};
        process->thread = (trail_string){thread.data + i + 3, thread.size - i - 3};
        return true;
    }
    return false;
}
