#include "commands/record_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "base/order.h"
#include "base/share.h"
#include "commands/summary_files.h"
#include "ui/cli.h"
#include "ui/follow_up.h"
#include "ui/show.h"
#include "wire/waits.h"

/* Findings on the last screen, and the maximum bytes of a trace for them, which take about a
 * second. */
enum { MOST_FINDINGS = 3, MOST_BYTES = 32 << 20 };

/* The kind of each wait, as readers group them. */
static const enum wire_wait wait_kinds[SHM_WAITS] = {
#define WAIT(name, group, kind, words, reason) [SHM_##name] = WIRE_WAIT_##kind,
#include "wire/waits.def"
};

static int64_t kind_ns(const struct collect_summary *s, enum wire_wait kind)
{
    int64_t sum = 0;
    for (int i = SHM_NO_WAIT + 1; i < SHM_WAITS; i++)
        sum += wait_kinds[i] == kind ? s->wait_ns[i] : 0;
    return sum;
}

/* Prints where the threads' time went: states, and kinds of waits. */
static void print_states(const struct collect_summary *s, int64_t cpu_ns)
{
    int64_t running = s->running_ns, ready = s->ready_ns, waiting,
            unexplained = s->wait_ns[SHM_KERNEL], total;
    int64_t brief = s->switches ? 0 : s->short_ns;
    bool inferred = (s->switches || s->unseen_ns) && cpu_ns >= 0;
    const char *between = "";
    /* A thread counted as running was not always on a CPU: without context switches, the cause of
     * short waits is not recorded. */
    if (inferred && running > cpu_ns) {
        int64_t off = running - cpu_ns, rest = s->short_ns - s->moments_ns;
        rest = off < rest ? off : rest;
        brief = s->moments_ns + rest;
        unexplained += off - rest;
        running = cpu_ns;
    }
    /* One that was woken is counted as ready until it returns from its call. */
    if (inferred && running < cpu_ns) {
        ready -= cpu_ns - running < ready ? cpu_ns - running : ready;
        running += s->ready_ns - ready;
    }
    waiting = brief;
    for (int i = SHM_NO_WAIT + 1; i < SHM_WAITS; i++)
        waiting += i == SHM_KERNEL ? 0 : s->wait_ns[i];
    total = running + ready + waiting + unexplained;
    fprintf(
        stderr,
        "  running %.0f %%, ready but not running %.0f %%, waiting %.0f %%, unexplained %.0f %%\n",
        percent_of(running, total), percent_of(ready, total), percent_of(waiting, total),
        percent_of(unexplained, total));
    if (waiting == 0)
        return;
    fputs("  waiting for: ", stderr);
    for (int i = WIRE_WAIT_NONE + 1; i < WIRE_WAITS; i++) {
        double share = percent_of(kind_ns(s, (enum wire_wait)i), total);
        if (i == WIRE_WAIT_KERNEL || share < 0.5)
            continue;
        fprintf(stderr, "%s%s %.0f %%", between, wire_wait_kinds[i].title, share);
        between = ", ";
    }
    if (percent_of(brief, total) >= 0.5) {
        fprintf(stderr, "%sshort waits %.0f %%", between, percent_of(brief, total));
        between = ", ";
    }
    fputs(*between ? "\n" : "nothing for long\n", stderr);
}

static void print_worst(const struct collect_summary *s)
{
    char total[DURATION_SIZE], longest[DURATION_SIZE];
    for (size_t i = 0; i < 3 && s->worst[i].count; i++) {
        const struct collect_wait_place *p = &s->worst[i];
        show_error_line(
            "    %s: %" PRIu64 " x %s, %s in all, longest %s%s%s%s%s", *p->place ? p->place : "?",
            p->count, wire_wait_kinds[wait_kinds[p->wait]].title,
            show_duration_as(total, p->total_ns, DURATION_SUMMARY),
            show_duration_as(longest, p->longest_ns, DURATION_SUMMARY),
            *p->holder ? ", held by " : "", p->holder, *p->waker ? ", woken by " : "", p->waker);
    }
}

static void print_heap(const struct collect_summary *s)
{
    if (s->has_heap)
        fprintf(stderr, "  heap: %.2f MB at most\n", (double)s->heap_peak / 1e6);
    else if (s->heap_wanted)
        fputs("  heap: not recorded: the program has its own malloc, or a sanitizer's\n", stderr);
}

static const char *numbered(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static void print_loss(const char **between, uint64_t count, const char *one, const char *many)
{
    if (count == 0)
        return;
    fprintf(stderr, "%s%" PRIu64 " %s", *between, count, numbered(count, one, many));
    *between = ", ";
}

/* Prints the overhead of the recording, and what it lost. */
static void print_recorder(const struct collect_summary *s)
{
    const char *between = "lost: ";
    char cpu[DURATION_SIZE];
    fprintf(stderr, "  recorder: %" PRIu64 " %s, %" PRIu64 " %s, ", s->events,
            numbered(s->events, "event", "events"), s->stacks,
            numbered(s->stacks, "stack", "stacks"));
    if (s->samples || s->lost_samples)
        fprintf(stderr, "%" PRIu64 " CPU %s, ", s->samples,
                numbered(s->samples, "sample", "samples"));
    fprintf(stderr, "%s of CPU; ",
            show_duration_as(cpu, record_summary_cpu_ns(RUSAGE_SELF), DURATION_SUMMARY));
    print_loss(&between, s->lost_records, "record", "records");
    print_loss(&between, s->lost_stacks, "stack", "stacks");
    print_loss(&between, s->lost_threads, "thread", "threads");
    print_loss(&between, s->lost_samples, "CPU sample", "CPU samples");
    print_loss(&between, s->lost_switches, "context switch (inferred there)",
               "context switches (inferred there)");
    print_loss(&between, s->lost_wakings, "wake-up of any program (ready is inferred there)",
               "wake-ups of any program (ready is inferred there)");
    print_loss(&between, s->damage, "damaged record, which contradicts others",
               "damaged records, which contradict each other");
    if (strcmp(between, "lost: ") == 0)
        fputs(s->unseen_ns && !s->paused ? "nothing else lost" : "nothing lost", stderr);
    fputc('\n', stderr);
    if (s->unnamed)
        fprintf(stderr,
                "  %" PRIu64 " %s without a name, because the recording was ended at once: 'trail "
                "symbolize' adds names\n",
                s->unnamed, numbered(s->unnamed, "place", "places"));
}

int64_t record_summary_cpu_ns(int who)
{
    struct rusage usage;
    if (getrusage(who, &usage) != 0)
        return 0;
    return ((int64_t)usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* Prints the first findings of the trace. For a large trace they would take too long. */
static void print_findings(const char *path)
{
    struct stat of;
    if (stat(path, &of) == 0 && S_ISREG(of.st_mode) && of.st_size <= MOST_BYTES)
        summary_files_findings(path, MOST_FINDINGS);
}

void record_summary_print(const struct collect_summary *s, const char *path, int64_t cpu_ns,
                          const char *about)
{
    char wall[DURATION_SIZE], cpu[DURATION_SIZE], file[FOLLOW_UP_SIZE];
    print_message("%s: %" PRIu64 " %s (%" PRIu64 " at once), %s%s%s%s", path, s->threads,
                  numbered(s->threads, "thread", "threads"), s->most_threads,
                  show_duration_as(wall, s->wall_ns, DURATION_SUMMARY), cpu_ns >= 0 ? ", " : "",
                  cpu_ns >= 0 ? show_duration_as(cpu, cpu_ns, DURATION_SUMMARY) : "",
                  cpu_ns >= 0 ? " of CPU" : "");
    if (about)
        show_error_line("  %s", about);
    print_states(s, cpu_ns);
    if (s->worst[0].count)
        fputs("  most of the waiting:\n", stderr);
    print_worst(s);
    if (s->gcc_openmp)
        fputs("  OpenMP: gcc's library does not report its work; --openmp replaces it by LLVM's, "
              "which does\n",
              stderr);
    if (s->switches)
        show_error_line("  ready: inferred from wake-up to return; %s", s->switches);
    if (s->infers_ready)
        fputs("  ready: inferred after waits; root or CAP_PERFMON can read the kernel's wake-ups\n",
              stderr);
    if (s->unseen_ns)
        show_error_line(
            "  ready: inferred for %s, %s", show_duration_as(wall, s->unseen_ns, DURATION_SUMMARY),
            s->paused
                ? "in which a CPU switched threads too often to record each switch; "
                  "--max-switches=0 records them"
                : "in which switches may be lost, because the recorder got too little CPU time");
    if (s->faults)
        show_error_line("  page faults: %" PRIu64 " %s that had to be read from the disk",
                        s->faults, numbered(s->faults, "page", "pages"));
    if (s->refused_stacks)
        fprintf(stderr,
                "  long calls with only their place: %" PRIu64
                "; the kernel does not permit reading the program's memory\n",
                s->refused_stacks);
    if (s->left)
        fputs(
            "  not recorded: the program executed in its place, which did not load the recorder\n",
            stderr);
    print_heap(s);
    print_recorder(s);
    print_findings(path);
    show_error_line("  next: trail summary %s, or trail view %s", shell_file(path, file), file);
}

/* MARK: Several processes */

#define TITLE_WIDTH   40
#define MOST_ROWS     20
#define MOST_EXECUTED 5

static double waiting_share(const struct collect_summary *s)
{
    int64_t waiting = s->switches ? 0 : s->short_ns, all;
    for (int i = SHM_NO_WAIT + 1; i < SHM_WAITS; i++)
        waiting += i == SHM_KERNEL ? 0 : s->wait_ns[i];
    all = waiting + s->running_ns + s->ready_ns + s->wait_ns[SHM_KERNEL];
    return percent_of(waiting, all);
}

static int width_of_titles(const struct record_summary_process *processes, size_t count)
{
    size_t width = strlen("process");
    for (size_t i = 0; i < count; i++) {
        size_t length = strnlen(processes[i].title, TITLE_WIDTH);
        width = length > width ? length : width;
    }
    return (int)width;
}

static const char *column_text(char *buf, int64_t ns)
{
    return show_right(buf, 10, show_duration_as(buf, ns, DURATION_SUMMARY));
}

#define ABOUT_TITLE 60

const char *record_summary_about(const struct record_summary_process *processes, size_t count,
                                 char text[RECORD_SUMMARY_ABOUT])
{
    const struct record_summary_process *most = NULL, *out = NULL;
    size_t left_out = 0;
    char others[32] = "", more[32] = "";
    for (size_t i = 0; i < count; i++) {
        const struct record_summary_process *p = &processes[i];
        if (p->left_out) {
            out = p;
            left_out++;
        } else if (!most || p->cpu_ns > most->cpu_ns) {
            most = p;
        }
    }
    if (!most || !out)
        return NULL;
    if (count - left_out > 1)
        (void)snprintf(others, sizeof others, " and %zu more", count - left_out - 1);
    if (left_out > 1)
        (void)snprintf(more, sizeof more, " and %zu more", left_out - 1);
    (void)snprintf(text, RECORD_SUMMARY_ABOUT,
                   "of %.*s (%d)%s, without what only waited for others: %.*s (%d)%s", ABOUT_TITLE,
                   most->title, most->pid, others, ABOUT_TITLE, out->title, out->pid, more);
    return text;
}

/* Those that only waited come last; the others by running time, longest first. */
static int by_cpu(const void *a, const void *b)
{
    const struct record_summary_process *x = a, *y = b;
    return ORDER(x->left_out, y->left_out) ?: ORDER(y->cpu_ns, x->cpu_ns) ?: ORDER(x->pid, y->pid);
}

/* Prints nothing about the program: its own summary already reports it. */
static void print_left(const struct record_summary_process *processes, size_t count, int program)
{
    size_t found = 0;
    char text[MOST_EXECUTED * (TITLE_WIDTH + 16)];
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        const struct record_summary_process *p = &processes[i];
        if (p->summary.left && p->pid != program && ++found <= MOST_EXECUTED)
            size += (size_t)snprintf(text + size, sizeof text - size, "%s%.*s (%d)",
                                     found > 1 ? ", " : "", TITLE_WIDTH, p->title, p->pid);
    }
    if (found > 0)
        show_error_line("  recorded in part: %s%s, because the program executed in its place did "
                        "not load the recorder",
                        text, found > MOST_EXECUTED ? ", ..." : "");
}

void record_summary_print_all(struct record_summary_process *processes, size_t all, int program)
{
    size_t count = all < MOST_ROWS ? all : MOST_ROWS;
    bool split = all > 0 && processes->path;
    int width;
    qsort(processes, all, sizeof *processes, by_cpu);
    width = width_of_titles(processes, count);
    show_error_line("  %-*s %8s %8s %10s %10s %8s %10s%s", width, "process", "PID", "threads",
                    "time", "CPU", "waiting", "recorder", split ? "  trace" : "");
    for (size_t i = 0; i < count; i++) {
        const struct record_summary_process *p = &processes[i];
        char wall[DURATION_SIZE], cpu[DURATION_SIZE], cost[DURATION_SIZE];
        show_error_line("  %-*.*s %8d %8" PRIu64 " %s %s %6.0f %% %s%s%s", width, width, p->title,
                        p->pid, p->summary.threads, column_text(wall, p->summary.wall_ns),
                        column_text(cpu, p->cpu_ns), waiting_share(&p->summary),
                        column_text(cost, p->cost_ns), split ? "  " : "", split ? p->path : "");
    }
    if (count < all)
        show_error_line("  ... and %zu more %s, which ran for less", all - count,
                        numbered(all - count, "process", "processes"));
    print_left(processes, all, program);
    if (split)
        show_error_line(
            "  next: trail merge -o all.trace with these files, and trail summary all.trace");
}

/* MARK: Processes that were not recorded */

/* Prints why a program was not recorded, and what would record it. False: not known. */
static bool print_why(const char *name, uint32_t pid, enum wire_missed why)
{
    const struct wire_missed_words *words = wire_missed_words(why);
    if (words)
        show_error_line("    %.*s (%" PRIu32 "): %s: %s", TITLE_WIDTH, name, pid, words->why,
                        words->remedy);
    return words != NULL;
}

void record_summary_print_left(const struct record_summary_process *processes, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count && found < MOST_EXECUTED; i++) {
        const struct record_summary_process *p = &processes[i];
        found += p->summary.left && print_why(p->title, (uint32_t)p->pid, p->why);
    }
}

void record_summary_print_executed(const struct executed_list *executed, uint64_t turned_away)
{
    size_t shown = executed->count < MOST_EXECUTED ? executed->count : MOST_EXECUTED;
    char text[MOST_EXECUTED * (sizeof executed->items->name + 16)];
    size_t size = 0;
    if (executed->unknown > 0)
        show_error_line("  not known whether recorded: %" PRIu64 " %s, which started too fast",
                        executed->unknown, numbered(executed->unknown, "process", "processes"));
    if (executed->count <= turned_away)
        return;
    for (size_t i = 0; i < shown && size < sizeof text; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s (%d)", i > 0 ? ", " : "",
                                 executed->items[i].name, (int)executed->items[i].pid);
    show_error_line("  not recorded: %s%s", text, executed->count > shown ? ", ..." : "");
    size_t explained = 0;
    for (size_t i = 0; i < executed->count && explained < MOST_EXECUTED; i++)
        explained +=
            print_why(executed->items[i].name, executed->items[i].pid, executed->items[i].why);
    show_error_line("    %zu process%s that did not load the recorder%s", executed->count,
                    executed->count == 1 ? "" : "es",
                    explained == executed->count
                        ? ""
                        : ": static or privileged programs, or an environment without LD_PRELOAD");
}
