/* A progress bar on stderr. */
#include "ui/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/whole.h"
#include "ui/terminal.h"

#define BAR_WIDTH 40

static int64_t now_ms(void)
{
    return now_ns() / 1000000;
}

void progress_begin(struct progress *progress, const trail_source *source,
                    enum progress_output output)
{
    *progress = (struct progress){.source = source};
    bool in_the_way = output == PROGRESS_OUTPUT_MEANWHILE && isatty(STDOUT_FILENO);
    progress->wanted = isatty(STDERR_FILENO) && !in_the_way && trail_source_size(source) > 0;
    progress->begin_ms = now_ms();
    progress->next_ms = progress->begin_ms + 1000;
}

static void progress_draw(struct progress *progress, int64_t now)
{
    double part = (double)trail_source_position(progress->source) /
                  (double)trail_source_size(progress->source);
    if (part > 1)
        part = 1;
    int filled = (int)whole_within(part * BAR_WIDTH, 0, BAR_WIDTH);
    char bar[BAR_WIDTH + 1];
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '=' : ' ';
    bar[BAR_WIDTH] = '\0';
    double spent = (double)(now - progress->begin_ms) / 1000;
    terminal_control(stderr, "\r");
    fprintf(stderr, "[%s] %3.0f%%", bar, part * 100);
    if (part > 0.01)
        fprintf(stderr, "  %.0f s left  ", spent / part - spent);
    (void)fflush(stderr);
    progress->shown = true;
}

void progress_step(void *context)
{
    struct progress *progress = context;
    /* Reading the clock each time would cost too much. */
    if (!progress->wanted || ++progress->calls % 16 != 0)
        return;
    int64_t now = now_ms();
    if (now < progress->next_ms)
        return;
    progress->next_ms = now + 200;
    progress_draw(progress, now);
}

void progress_end(struct progress *progress)
{
    if (progress->shown) {
        terminal_control(stderr, "\r");
        fprintf(stderr, "%*s", BAR_WIDTH + 24, "");
        terminal_control(stderr, "\r");
    }
    progress->shown = false;
}
