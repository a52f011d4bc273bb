/* trail/record.h compiles without a warning in every dialect of C and C++ from C99 and C++11 on. */
#include <trail/record.h>

static const char *work(trail_m *m, trail_g *g)
{
    TRAIL_REGION("work");
    /* Two on one line. */
    /* clang-format off */
    TRAIL_REGION("one"); TRAIL_REGION("two");
    /* clang-format on */
    trail_go_unblock(m, g, 0);
    trail_go_block(m, TRAIL_BLOCK_SYNC, TRAIL_NO_STACK);
    trail_logf(0, "header", "plain");
    trail_logf(0, "header", "%d of %s", 1, "two");
    trail_log_fields(0, "header", trail_field_int("n", 1), trail_field_double("x", 0.5),
                     trail_field_text("t", "two"));
    static trail_category category = TRAIL_CATEGORY("header");
    TRAIL_CATEGORY_REGION(&category, 0, "three");
    return "done";
}

int main(int argc, char **argv)
{
    trail_m m;
    trail_p p;
    trail_g g;
    trail_options options = {0, 0,  TRAIL_FULL_END, -1, 0, TRAIL_UNWIND_NONE, 0, 0, false, false, 0,
                             0, {0}};
    (void)argv;
    if (argc < 0 && !work(&m, &g))
        return 1;
    trail_m_start(&m);
    trail_p_init(&p, 0);
    trail_p_fini(&p);
    trail_m_exit(&m);
    if (!trail_start(&options, NULL))
        return 1;
    trail_stop(NULL);
    return trail_enabled();
}
