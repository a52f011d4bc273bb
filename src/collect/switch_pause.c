/* Pauses the context switches when their rate is too high: see switch_pause.h. */
#include "collect/switch_pause.h"

static void begin_window(struct switch_pause *pause, int64_t now_ns)
{
    pause->since_ns = now_ns;
    pause->records = 0;
}

static bool is_costly(const struct switch_pause *pause, int64_t now_ns)
{
    int64_t passed_ns = now_ns - pause->since_ns;
    return pause->rate &&
           (double)pause->records / 2 * 1e9 > (double)pause->rate * (double)passed_ns;
}

static void begin_pause(struct switch_pause *pause, int64_t now_ns)
{
    bool calm = pause->length_ns == 0 || now_ns - pause->ended_ns >= SWITCH_PAUSE_CALM_NS;
    pause->length_ns = calm ? SWITCH_PAUSE_FIRST_NS : 4 * pause->length_ns;
    if (pause->length_ns > SWITCH_PAUSE_MOST_NS)
        pause->length_ns = SWITCH_PAUSE_MOST_NS;
    pause->paused = true;
    pause->since_ns = now_ns;
}

static void end_pause(struct switch_pause *pause, int64_t now_ns)
{
    pause->paused = false;
    pause->looks = true;
    pause->ended_ns = now_ns;
    begin_window(pause, now_ns);
}

static int64_t window_ns(const struct switch_pause *pause)
{
    return pause->looks ? SWITCH_PAUSE_LOOK_NS : SWITCH_PAUSE_WINDOW_NS;
}

enum switch_pause_step switch_pause_step(struct switch_pause *pause, int64_t now_ns,
                                         uint64_t records)
{
    if (pause->paused) {
        if (now_ns - pause->since_ns < pause->length_ns)
            return SWITCH_PAUSE_NOTHING;
        end_pause(pause, now_ns);
        return SWITCH_PAUSE_ENDS;
    }
    pause->records += records;
    if (pause->since_ns == 0)
        begin_window(pause, now_ns);
    if (now_ns - pause->since_ns < window_ns(pause))
        return SWITCH_PAUSE_NOTHING;
    pause->looks = false;
    if (is_costly(pause, now_ns)) {
        begin_pause(pause, now_ns);
        return SWITCH_PAUSE_BEGINS;
    }
    begin_window(pause, now_ns);
    return SWITCH_PAUSE_NOTHING;
}

void switch_pause_again(struct switch_pause *pause, int64_t now_ns)
{
    begin_pause(pause, now_ns);
}
