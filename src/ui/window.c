/* The options --from and --to. */
#include "ui/window.h"

#include <string.h>

#include "ui/values.h"

static int take(const struct command *command, const char *word, bool relative, int64_t *ns)
{
    if (parse_time(word + relative, ns))
        return EXIT_GOOD;
    /* Probably a time on the trace's own clock, as in the tables of trail sql. */
    if (word[0] && !word[strspn(word, "0123456789")])
        return usage_error(command,
                           "'%s' has no unit; %sns counts from the first event, and in trail sql "
                           "since_start(begin_ns) gives such times",
                           word, word);
    return usage_error(command, "'%s' is not a time; times are like 1.5s, 20ms, 300us, 5ns", word);
}

int window_from(const struct command *command, void *member, const char *word)
{
    struct window *window = member;
    window->has_from = true;
    return take(command, word, false, &window->from_ns);
}

int window_to(const struct command *command, void *member, const char *word)
{
    struct window *window = member;
    window->has_to = true;
    window->to_is_relative = *word == '+';
    return take(command, word, window->to_is_relative, &window->to_ns);
}

int window_finish(struct window *window, const struct command *command)
{
    if (window->to_is_relative &&
        __builtin_add_overflow(window->to_ns, window->from_ns, &window->to_ns))
        window->to_ns = INT64_MAX;
    window->to_is_relative = false;
    if (window->has_from && window->has_to && window->to_ns < window->from_ns)
        return usage_error(command, "--to is before --from");
    return EXIT_GOOD;
}
