/*
 * Any bytes as a trace, into all analyses at once: the analyses end and their results are
 * consistent, with and without a time window.
 */
#include <trail/analyze.h>
#include <trail/export.h>

#include "reading.h"

static const unsigned everything =
    TRAIL_ANALYZE_GOROUTINES | TRAIL_ANALYZE_GROUPS | TRAIL_ANALYZE_REGIONS |
    TRAIL_ANALYZE_REGION_GROUPS | TRAIL_ANALYZE_TASKS | TRAIL_ANALYZE_LOGS |
    TRAIL_ANALYZE_DISTRIBUTIONS | TRAIL_ANALYZE_MMU | TRAIL_ANALYZE_GC | TRAIL_ANALYZE_ACTIVITY |
    TRAIL_ANALYZE_FINDINGS | TRAIL_ANALYZE_PROFILES | TRAIL_ANALYZE_THREADS | TRAIL_ANALYZE_PATH |
    TRAIL_ANALYZE_LOCKS;

static void check_goroutines(const trail_analysis *analysis)
{
    const trail_goroutine *g;
    const trail_group *groups;
    uint64_t members = 0;
    size_t count = trail_analysis_goroutines(analysis, &g);
    for (size_t i = 0; i < count; i++) {
        FUZZ_HOLDS(i == 0 || g[i - 1].id <= g[i].id);
        for (uint32_t n = 0; n < g[i].region_count; n++)
            FUZZ_HOLDS(g[i].regions[n].goroutine == g[i].id);
    }
    size_t group_count = trail_analysis_groups(analysis, &groups);
    for (size_t i = 0; i < group_count; i++) {
        FUZZ_HOLDS(groups[i].columns[TRAIL_COLUMN_EXEC].count == groups[i].count);
        members += groups[i].count;
    }
    FUZZ_HOLDS(members == count);
}

static void check_tasks(const trail_analysis *analysis)
{
    const trail_task *tasks;
    size_t count = trail_analysis_tasks(analysis, &tasks), children = 0;
    for (size_t i = 0; i < count; i++) {
        FUZZ_HOLDS(i == 0 || tasks[i - 1].id < tasks[i].id);
        for (size_t n = 0; n < tasks[i].child_count; n++)
            FUZZ_HOLDS(tasks[tasks[i].children[n]].parent == tasks[i].id);
        children += tasks[i].child_count;
    }
    FUZZ_HOLDS(children <= count);
}

static void check_mmu(const trail_analysis *analysis)
{
    for (unsigned curve = 0; curve < 2; curve++) {
        for (int64_t window = 1; window < INT64_C(10000000000); window *= 97) {
            trail_mmu_window worst[3];
            double mmu = trail_analysis_mmu(analysis, curve, window);
            size_t count = trail_analysis_mmu_worst(analysis, curve, window, worst, 3);
            double most = trail_analysis_mmu_quantile(analysis, curve, window, 0.99);
            double half = trail_analysis_mmu_quantile(analysis, curve, window, 0.5);
            FUZZ_HOLDS(mmu >= 0 && mmu <= 1);
            FUZZ_HOLDS(mmu <= most + 1e-6 && most <= half + 1e-6 && half <= 1);
            FUZZ_HOLDS(count <= 3);
            for (size_t i = 1; i < count; i++)
                FUZZ_HOLDS(worst[i - 1].mutator <= worst[i].mutator);
        }
    }
}

static void check_threads(const trail_analysis *analysis)
{
    const trail_thread *threads;
    const trail_proc *procs;
    int64_t slice_ns;
    size_t thread_count = trail_analysis_threads(analysis, &threads);
    size_t proc_count = trail_analysis_procs(analysis, &procs);
    size_t slices = trail_analysis_thread_slices(analysis, &slice_ns);
    FUZZ_HOLDS(slices <= 128);
    for (size_t i = 0; i < thread_count; i++) {
        uint64_t sum = 0;
        for (size_t n = 0; threads[i].running_slices && n < slices; n++)
            sum += (uint64_t)threads[i].running_slices[n];
        FUZZ_HOLDS(!threads[i].running_slices || sum == (uint64_t)threads[i].running_ns);
    }
    for (size_t i = 0; i < proc_count; i++) {
        uint64_t sum = 0;
        for (size_t n = 0; procs[i].running_slices && n < slices; n++)
            sum += (uint64_t)procs[i].running_slices[n];
        FUZZ_HOLDS(!procs[i].running_slices || sum == (uint64_t)procs[i].running_ns);
    }
}

static bool write_nothing(void *context, const void *data, size_t size)
{
    (void)context, (void)data, (void)size;
    return true;
}

static void check_profiles(const trail_analysis *analysis)
{
    static const trail_sink sink = {.write = write_nothing};
    trail_error err;
    for (int type = 0; type < TRAIL_PROFILES; type++) {
        trail_profile profile;
        uint64_t count = 0;
        trail_analysis_profile(analysis, (trail_profile_type)type, &profile);
        for (size_t i = 0; i < profile.sample_count; i++) {
            const trail_profile_sample *sample = &profile.samples[i];
            FUZZ_HOLDS(i == 0 || profile.samples[i - 1].ns >= sample->ns);
            for (uint32_t n = 0; n < sample->frame_count; n++)
                FUZZ_HOLDS(sample->frames[n] < profile.frame_count);
            FUZZ_HOLDS(sample->own_frames <= sample->frame_count);
            count += sample->count;
        }
        FUZZ_HOLDS(count == profile.count);
        for (int format = TRAIL_PROFILE_AS_PPROF; format <= TRAIL_PROFILE_AS_JSON; format++)
            FUZZ_HOLDS(trail_profile_write(analysis, &profile, (trail_profile_format)format, &sink,
                                           &err) == 0);
    }
}

static void check_activity(const trail_analysis *analysis)
{
    trail_activity activity;
    const trail_finding *findings;
    trail_analysis_activity(analysis, &activity);
    FUZZ_HOLDS(activity.slice_count <= 128);
    size_t count = trail_analysis_findings(analysis, &findings);
    for (size_t i = 1; i < count; i++)
        FUZZ_HOLDS(findings[i - 1].note == findings[i].note
                       ? findings[i - 1].weight >= findings[i].weight
                       : findings[i].note);
}

static void check_chain(const trail_lock_chain *chain)
{
    FUZZ_HOLDS(chain->begin_ns < chain->end_ns && chain->link_count > 1);
    for (size_t i = 0; i < chain->link_count; i++) {
        const trail_lock_link *link = &chain->links[i];
        FUZZ_HOLDS(link->begin_ns <= chain->begin_ns && chain->end_ns <= link->end_ns);
        FUZZ_HOLDS(i == 0 || chain->links[i - 1].holder == link->goroutine);
    }
}

static void check_locks(const trail_analysis *analysis)
{
    const trail_lock *const *locks;
    const trail_lock_chain *chains;
    size_t count = trail_analysis_locks(analysis, &locks);
    for (size_t i = 0; i < count; i++) {
        uint64_t waits = 0, holds = 0;
        for (size_t n = 0; n < locks[i]->waiter_count; n++)
            waits += locks[i]->waiters[n].count;
        for (size_t n = 0; n < locks[i]->held_count; n++)
            holds += locks[i]->held[n].count;
        FUZZ_HOLDS(waits == locks[i]->wait.count && holds == locks[i]->hold.count);
        FUZZ_HOLDS(waits + holds + locks[i]->open > 0);
    }
    size_t chain_count = trail_analysis_lock_chains(analysis, &chains);
    for (size_t i = 0; i < chain_count; i++)
        check_chain(&chains[i]);
}

/* The segments of a critical path are adjacent, and the totals are their sums. */
struct cover {
    int64_t begin_ns, at_ns;
    uint64_t segments;
};

static void cover(void *context, const trail_path_segment *segment)
{
    struct cover *covered = context;
    FUZZ_HOLDS(segment->end_ns == covered->at_ns);
    FUZZ_HOLDS(segment->begin_ns < segment->end_ns && segment->begin_ns >= covered->begin_ns);
    FUZZ_HOLDS((unsigned)segment->state < TRAIL_PATH_STATES);
    covered->at_ns = segment->begin_ns;
    covered->segments++;
}

static void check_path(trail_analysis *analysis)
{
    trail_path path;
    const trail_path_total *totals;
    uint64_t count = 0;
    if (!trail_analysis_path(analysis, &path))
        return;
    struct cover covered = {path.begin_ns, path.end_ns, 0};
    FUZZ_HOLDS(trail_analysis_path_walk(analysis, cover, &covered) == 0);
    FUZZ_HOLDS(covered.at_ns == path.begin_ns);
    size_t rows = trail_analysis_path_totals(analysis, &totals);
    for (size_t i = 0; i < rows; i++)
        count += totals[i].count;
    FUZZ_HOLDS(count == covered.segments);
}

static void analyse(const struct fuzz_bytes *trace, bool window, trail_path_of of)
{
    trail_error err;
    trail_reader_options reading = {.partial = true};
    trail_analysis_options options = {
        .what = everything,
        .path = {.of = of, .task = 1, .goroutine = 1},
        .mmu_flags = {31 & ~TRAIL_MMU_PER_PROC, 31 | TRAIL_MMU_CORRECTED},
        .has_from = window,
        .has_to = window,
        .from_ns = 100,
        .to_ns = 100000,
        .locks = {.channels = window},
        .profile = {.types = (1U << TRAIL_PROFILES) - 1, .first_waits = window},
    };
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    FUZZ_HOLDS(source);
    trail_reader *reader = trail_reader_open(source, &reading, &err);
    if (reader) {
        trail_analysis *analysis = trail_analysis_open(reader, &options, &err);
        FUZZ_HOLDS(analysis);
        (void)trail_analysis_run(analysis, reader, &err);
        check_goroutines(analysis);
        check_tasks(analysis);
        check_mmu(analysis);
        check_threads(analysis);
        check_profiles(analysis);
        check_activity(analysis);
        check_path(analysis);
        check_locks(analysis);
        trail_analysis_close(analysis);
    }
    trail_reader_close(reader);
    trail_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int versions[] = {5, 7, 11, 19, 21, 22, 23, 25, 26};
    struct fuzz_bytes trace = fuzz_trace(data, size, versions, sizeof versions / sizeof *versions);
    for (int of = TRAIL_PATH_LONGEST; of <= TRAIL_PATH_WINDOW; of++)
        analyse(&trace, of & 1, (trail_path_of)of);
    analyse(&trace, true, TRAIL_PATH_WINDOW);
    analyse(&trace, true, TRAIL_PATH_LONGEST);
    free(trace.data);
    return 0;
}
