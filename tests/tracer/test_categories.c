/* Categories of annotations that are turned on and off while a program runs. */
#include "trace.h"

#include <pthread.h>
#include <unistd.h>

#include "../lib/unit.h"

/* The contents of a trace, in order: the first letter of the category for a log, ( and ) for a
 * region. */
struct seen {
    char text[64];
    size_t size;
};

static void see(struct seen *seen, char c)
{
    if (seen->size + 1 < sizeof seen->text)
        seen->text[seen->size++] = c;
}

static char first_letter(trail_string text)
{
    return text.size ? text.data[0] : '-';
}

static void see_event(trail_reader *reader, const trail_event *event, void *context)
{
    if (event->kind == TRAIL_LOG)
        see(context, first_letter(trail_reader_string(reader, event->log.category)));
    else if (event->kind == TRAIL_REGION_BEGIN)
        see(context, '(');
    else if (event->kind == TRAIL_REGION_END)
        see(context, ')');
}

static void begin(int format, struct trace *trace)
{
    trail_options options = {.format = format};
    trail_error err;
    if (!trail_start_sink(&options, trace_append, trace, &err))
        fail_msg("%s", err.message);
}

static void end_with(struct trace *trace, const char *right)
{
    struct seen seen = {.size = 0};
    trail_error err;
    if (!trail_stop(&err) || trace_read(trace, see_event, &seen, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(seen.text, right);
    trace_free(trace);
}

/* Ends the trace, which must have this many logs and nothing else. */
static void end_with_logs(struct trace *trace, size_t logs)
{
    struct seen seen = {.size = 0};
    trail_error err;
    if (!trail_stop(&err) || trace_read(trace, see_event, &seen, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(seen.size, logs);
    trace_free(trace);
}

static void set(const char *list)
{
    trail_error err;
    if (!trail_categories_set(list, &err))
        fail_msg("%s", err.message);
}

/* Logs and trail_category_enabled agree on each list. */
TEST(lists)
{
    static const struct {
        const char *list, *name;
        bool on;
    } cases[] = {
        {NULL, "net", true},          {"", "net", true},          {"net", "net", true},
        {"net", "ne", false},         {"net", "nets", false},     {"net", "db", false},
        {"-net", "net", false},       {"-net", "db", true},       {"net,db", "db", true},
        {"net,db", "net", true},      {"net.*", "net.tcp", true}, {"net.*", "net.", true},
        {"net.*", "net", false},      {"*", "net", true},         {"-*", "net", false},
        {"-*,net", "net", true},      {"*,-net", "net", false},   {"*,-net", "db", true},
        {"net,-net", "net", false},   {"-net,net", "net", true},  {"n*,-net*", "nat", true},
        {"n*,-net*", "netto", false}, {"net", "", false},         {"*", "", true},
        {"net", NULL, false},         {"-net", NULL, true},       {",net,", "net", true},
        {",", "net", false},          {"-", "net", true},         {"net*,", "network", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trail_category category = TRAIL_CATEGORY(cases[i].name);
        struct trace trace = {0};
        bool on;
        begin(23, &trace);
        set(cases[i].list);
        trail_log(0, cases[i].name, "log");
        trail_logf(0, cases[i].name, "%s", "log");
        trail_log_fields(0, cases[i].name, trail_field_int("n", 1));
        on = trail_category_enabled(&category);
        set(NULL);
        if (on != cases[i].on)
            fail_msg("%s of \"%s\": %d", cases[i].name, cases[i].list, on);
        end_with_logs(&trace, on ? 3 : 0);
    }
}

/* A category that was looked up follows a change of the list; all are off without a trace. */
TEST(changes)
{
    trail_category net = TRAIL_CATEGORY("net"), db = TRAIL_CATEGORY("db");
    struct trace trace = {0};
    set("db");
    assert_false(trail_category_enabled(&net));
    assert_false(trail_category_enabled(&db));
    begin(23, &trace);
    for (int i = 0; i < 3; i++) {
        assert_false(trail_category_enabled(&net));
        assert_true(trail_category_enabled(&db));
        set("net");
        assert_true(trail_category_enabled(&net));
        assert_false(trail_category_enabled(&db));
        set(NULL);
        assert_true(trail_category_enabled(&net));
        assert_true(trail_category_enabled(&db));
        set("db");
    }
    end_with(&trace, "");
    assert_false(trail_category_enabled(&db));
    set(NULL);
}

/* A region that began also ends, whatever is on at its end; one that did not begin does not end. */
TEST(regions)
{
    static trail_category net = TRAIL_CATEGORY("net");
    for (size_t i = 0; i < FORMATS; i++) {
        struct trace trace = {0};
        begin(all_formats[i], &trace);
        {
            TRAIL_CATEGORY_REGION(&net, 0, "on, then off");
            set("-net");
            {
                TRAIL_CATEGORY_REGION(&net, 0, "off");
                trail_log(0, "a", "in the first");
            }
            {
                TRAIL_CATEGORY_REGION(&net, 0, "off, then on");
                set(NULL);
                TRAIL_CATEGORY_REGION(&net, 0, "on");
                trail_log(0, "b", "in two");
            }
            set("-net");
        }
        {
            /* Begun while off: not in the next trace either. */
            TRAIL_CATEGORY_REGION(&net, 0, "before");
            end_with(&trace, all_formats[i] >= 11 ? "(a(b))" : "");
            set(NULL);
            begin(all_formats[i], &trace);
        }
        trail_log(0, "c", "after");
        end_with(&trace, all_formats[i] >= 11 ? "c" : "");
    }
}

TEST(too_long)
{
    trail_category net = TRAIL_CATEGORY("net"), other = TRAIL_CATEGORY("other");
    char list[TRAIL_CATEGORIES_MAX + 2];
    struct trace trace = {0};
    trail_error err;
    memset(list, 'x', sizeof list);
    memcpy(list, "other,", 6);
    list[TRAIL_CATEGORIES_MAX + 1] = '\0';
    begin(23, &trace);
    set("net");
    assert_false(trail_categories_set(list, &err));
    assert_int_equal(err.code, TRAIL_USAGE);
    assert_false(trail_categories_set(list, NULL));
    assert_true(trail_category_enabled(&net));
    list[TRAIL_CATEGORIES_MAX] = '\0';
    assert_true(trail_categories_set(list, &err));
    assert_true(trail_category_enabled(&other));
    assert_false(trail_category_enabled(&net));
    set(NULL);
    end_with(&trace, "");
}

/* MARK: Threads */

#define CHANGES 2000

static bool over;

static void *look(void *wrong)
{
    static trail_category both = TRAIL_CATEGORY("both"), none = TRAIL_CATEGORY("none");
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        if (!trail_category_enabled(&both) || trail_category_enabled(&none))
            __atomic_store_n((bool *)wrong, true, __ATOMIC_RELAXED);
        trail_log(0, "none", "never");
    }
    return NULL;
}

/* Threads see one list or the other, never a mixture. */
TEST(changes_beside_look_ups)
{
    static const char *const list[] = {"both,a,bbbbbbbbbbbbbbbbbbbbbbbbbbbb,c",
                                       "d,eeeeeeeeeee,both"};
    struct trace trace = {0};
    pthread_t threads[2];
    bool wrong = false;
    over = false;
    set(list[0]);
    begin(23, &trace);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look, &wrong), 0);
    for (int i = 0; i < CHANGES; i++)
        set(list[i % 2]);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_false(wrong);
    set(NULL);
    end_with(&trace, "");
}

int main(void)
{
    /* A hang is a failure. */
    alarm(250);
    return run_all_tests(NULL, NULL);
}
