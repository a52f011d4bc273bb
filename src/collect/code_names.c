/* Names code by the program's module map and the options' resolver: see code_names.h. */
#include "collect/code_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "collect/maps.h"
#include "collect/parts.h"
#include "words/place.h"

/*
 * Readers take a PC for one frame, but the programs of one trace have different code at the same
 * address: every program but the first puts its number into the upper bits of its PCs. (After 32768
 * programs the numbers start over.)
 */
#define PROGRAM_SHIFT 49

/* Each new PC searches all modules. */
#define MAX_MODULES 4096

/* The shortest interval between two readings of the kernel's list of mappings. */
#define MAPS_APART_NS 20000000

struct module {
    trail_module map;
    bool preload; /* one of trail's libraries: its frames are not shown */
    bool openmp;  /* an OpenMP run-time library: its innermost frames are not shown */
    bool gone;    /* unloaded: other code may be mapped there */
};

static uint64_t pc_in_trace(const struct collect *c, uint64_t pc)
{
    uint64_t program = (uint64_t)c->number << PROGRAM_SHIFT;
    return program ? (pc & ((UINT64_C(1) << PROGRAM_SHIFT) - 1)) | program : pc;
}

static trail_string keep(struct collect *c, trail_string text)
{
    char *copy = arena_copy(&c->arena, text.data, text.size);
    if (!copy)
        collect_no_memory(c);
    return (trail_string){copy, copy ? text.size : 0};
}

/* MARK: Modules */

static void look_at_name(struct collect *c, struct module *module, const char *path)
{
    const char *name = path_name(path);
    module->preload = strstr(name, "libtrail-preload.so") || strstr(name, "libtrail-heap.so") ||
                      strstr(name, "libtrail-record.so") || strstr(name, "libtrail-ompt.so");
    module->openmp = strncmp(name, "libomp", 6) == 0 || strncmp(name, "libiomp5", 8) == 0;
    c->code.llvm_openmp |= module->openmp;
    c->code.gcc_openmp |= strncmp(name, "libgomp", 7) == 0;
}

static bool read_module(struct collect *c, char *line)
{
    struct module module = {0};
    char id[2 * 40 + 1], word[9];
    int path = 0;
    if (sscanf(line,
               "trail.%8s start=0x%" SCNx64 " end=0x%" SCNx64 " bias=0x%" SCNx64
               " build-id=%80s path=%n",
               word, &module.map.start, &module.map.end, &module.map.bias, id, &path) != 5 ||
        path == 0 || line[path] == '\0')
        return false;
    if (c->code.module_count == MAX_MODULES || module.map.start >= module.map.end) {
        collect_damage(c);
        return false;
    }
    module.map.path = keep(c, text_from(line + path));
    module.map.build_id = keep(c, text_from(strcmp(id, "-") == 0 ? "" : id));
    module.gone = strcmp(word, "unloaded") == 0;
    look_at_name(c, &module, line + path);
    if (!APPEND(c->code.modules, c->code.module_room, c->code.module_count, module)) {
        collect_no_memory(c);
        return false;
    }
    return true;
}

/*
 * Reads the area's lines if they have changed. Lines that change during the reading are left to the
 * next call.
 */
static void read_modules(struct collect *c)
{
    bool no_memory = false;
    char *text = area_modules(c->area, &c->code.modules_version, &no_memory), *rest = text, *line;
    if (no_memory)
        collect_no_memory(c);
    if (!text)
        return;
    c->code.module_count = 0;
    while ((line = strsep(&rest, "\n")) != NULL)
        (void)read_module(c, line);
    free(text);
}

enum presence { LOADED, UNLOADED };

static const struct module *module_at(const struct collect *c, uint64_t pc, enum presence presence)
{
    for (size_t i = 0; i < c->code.module_count; i++) {
        if (pc >= c->code.modules[i].map.start && pc < c->code.modules[i].map.end &&
            c->code.modules[i].gone == (presence == UNLOADED))
            return &c->code.modules[i];
    }
    return NULL;
}

/* Adds a library that the program has loaded since the last reading. */
static void add_map(const trail_module *map, void *context)
{
    struct collect *c = context;
    if (module_at(c, map->start, LOADED) || c->code.module_count >= MAX_MODULES)
        return;
    if (!GROW(c->code.modules, c->code.module_room, c->code.module_count + 1)) {
        collect_no_memory(c);
        return;
    }
    struct module *module = &c->code.modules[c->code.module_count++];
    *module =
        (struct module){.map = {map->start, map->end, map->bias, {NULL, 0}, keep(c, map->path)}};
    if (module->map.path.data)
        look_at_name(c, module, module->map.path.data);
}

static const struct module *find_module(struct collect *c, uint64_t pc)
{
    read_modules(c);
    const struct module *module = module_at(c, pc, LOADED);
    if (module)
        return module;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool gone = module_at(c, pc, UNLOADED) != NULL;
    if (c->options.process.pid == 0 || (now - c->code.maps_ns < MAPS_APART_NS && !gone))
        return NULL;
    /* Another module may be mapped where one was unloaded. */
    c->code.maps_ns = now;
    maps_each((int)c->options.process.pid, "", add_map, c);
    module = module_at(c, pc, LOADED);
    return module ? module : module_at(c, pc, UNLOADED);
}

/* Returns the module whose file would contain the variable: the last one that begins before it. */
static const struct module *data_module(const struct collect *c, uint64_t address)
{
    const struct module *found = NULL;
    for (size_t i = 0; i < c->code.module_count; i++) {
        const trail_module *map = &c->code.modules[i].map;
        if (!c->code.modules[i].gone && map->bias <= address &&
            (!found || map->bias > found->map.bias))
            found = &c->code.modules[i];
    }
    return found;
}

static bool find_generated(struct collect *c, uint64_t address, trail_symbol *symbol)
{
    bool found = jit_find(&c->jit, &c->arena, &c->options.process, address, symbol);
    if (c->jit.no_memory)
        collect_no_memory(c);
    return found;
}

/* Stands for generated code, which has no file and is walked by frame pointers. */
static const trail_module generated;

static const trail_module *find_map(void *context, uint64_t pc)
{
    const struct module *module = find_module(context, pc);
    trail_symbol symbol;
    if (module)
        return &module->map;
    return find_generated(context, pc, &symbol) ? &generated : NULL;
}

size_t code_walk(struct collect *c, const struct cpu_sample *sample, uint64_t *pcs)
{
    return stack_copy_walk(&c->code.unwind_files, sample, find_map, c, pcs, SHM_STACK_FRAMES);
}

size_t code_guards(struct collect *c, const struct cpu_sample *sample, struct guarded_lock *locks,
                   size_t max)
{
    return stack_guards(&c->code.unwind_files, sample, find_map, c, c->options.guards,
                        c->options.resolve_context, locks, max);
}

bool code_has_silent_openmp(const struct collect *c)
{
    return c->code.gcc_openmp && !c->code.llvm_openmp;
}

/* Whether another module overlaps the addresses of an unloaded one. */
static bool is_replaced(const struct collect *c, const struct module *module)
{
    for (size_t i = 0; module->gone && i < c->code.module_count; i++) {
        const struct module *other = &c->code.modules[i];
        if ((!other->gone || other < module) && other->map.start < module->map.end &&
            module->map.start < other->map.end)
            return true;
    }
    return false;
}

void code_write_modules(struct collect *c)
{
    read_modules(c);
    for (size_t i = 0; i < c->code.module_count; i++) {
        const trail_module *map = &c->code.modules[i].map;
        char line[V2_MAX_STRING + 1];
        if (is_replaced(c, &c->code.modules[i]))
            continue;
        int size = snprintf(
            line, sizeof line,
            "trail.module start=0x%" PRIx64 " end=0x%" PRIx64 " bias=0x%" PRIx64
            " build-id=%.*s path=%.*s",
            pc_in_trace(c, map->start), pc_in_trace(c, map->end), pc_in_trace(c, map->bias),
            map->build_id.size ? (int)map->build_id.size : 1,
            map->build_id.size ? map->build_id.data : "-", (int)map->path.size, map->path.data);
        if (size > 0 && (size_t)size < sizeof line)
            v2_writer_note(c->trace->out.out, (trail_string){line, (size_t)size});
    }
}

bool code_object(struct collect *c, uint64_t address, char *text, size_t size)
{
    read_modules(c);
    const struct module *module = data_module(c, address);
    return module && c->options.object &&
           c->options.object(c->options.resolve_context, &module->map, address - module->map.bias,
                             text, size);
}

/* MARK: PCs */

/* Returns a name for code without a symbol: the file's name and the offset in it. */
static trail_string stand_in(struct collect *c, const struct module *module, uint64_t pc)
{
    char text[300];
    if (!module)
        return (trail_string){NULL, 0};
    const char *path = module->map.path.data;
    size_t size = module->map.path.size;
    const char *slash = size ? memrchr(path, '/', size) : NULL;
    if (slash) {
        size -= (size_t)(slash + 1 - path);
        path = slash + 1;
    }
    snprintf(text, sizeof text, "%.*s+0x%" PRIx64, size < 255 ? (int)size : 255, path,
             pc - 1 - module->map.bias);
    return keep(c, text_from(text));
}

/* Makes frames from what the resolver returns; a single unnamed frame if it returns nothing. */
static struct named_pc *resolve(struct collect *c, uint64_t pc)
{
    const struct module *module = find_module(c, pc);
    const trail_symbol *symbols = NULL;
    trail_symbol code;
    struct named_pc *named;
    size_t count = 0;
    if (!module && find_generated(c, pc - 1, &code)) {
        symbols = &code;
        count = 1;
    } else if (module && c->options.resolve && !deadline_allows_names(c->trace)) {
        c->summary.unnamed++;
    } else if (module && c->options.resolve) {
        count = c->options.resolve(c->options.resolve_context, &module->map,
                                   pc - 1 - module->map.bias, &symbols);
    }
    named = arena_alloc(&c->arena, sizeof *named + (count + 1) * sizeof named->frames[0]);
    if (!named || !idmap_put(&c->code.frames, pc, named)) {
        collect_no_memory(c);
        return NULL;
    }
    named->preload = module && module->preload;
    named->openmp = module && module->openmp;
    named->unlisted = !module && !count;
    named->count = count ? count : 1;
    named->frames[0] =
        (struct v2_frame){.pc = pc_in_trace(c, pc), .function = stand_in(c, module, pc)};
    for (size_t i = 0; i < count; i++)
        named->frames[i] = (struct v2_frame){.pc = i ? CODE_FIRST_NUMBER + c->trace->next_frame++
                                                     : named->frames[0].pc,
                                             .function = keep(c, symbols[i].function),
                                             .file = keep(c, symbols[i].file),
                                             .line = symbols[i].line};
    return named;
}

/* Code may be listed only after it was seen: the Java virtual machine writes its list on
 * request. */
static void name_late(struct collect *c, uint64_t pc, struct named_pc *named)
{
    trail_symbol code;
    if (!find_generated(c, pc - 1, &code))
        return;
    named->unlisted = false;
    named->frames[0].function = keep(c, code.function);
    named->frames[0].file = keep(c, code.file);
    named->frames[0].line = code.line;
}

const struct named_pc *code_named_pc(struct collect *c, uint64_t pc)
{
    struct named_pc *named = idmap_find(&c->code.frames, pc);
    if (named && named->unlisted)
        name_late(c, pc, named);
    return named ? named : resolve(c, pc);
}

/* MARK: Stacks */

size_t code_add_frames(struct collect *c, uint64_t pc, struct v2_frame *frames, size_t count)
{
    const struct named_pc *named = code_named_pc(c, pc);
    if (!named || named->preload)
        return count;
    for (size_t i = 0; i < named->count && count < V2_MAX_FRAMES; i++)
        frames[count++] = named->frames[i];
    return count;
}

/* Whether a frame belongs to an OpenMP library or to trail itself. */
static bool is_runtime(struct collect *c, uint64_t pc)
{
    const struct named_pc *named = code_named_pc(c, pc);
    return named && (named->preload || named->openmp);
}

/* Returns the first frame to show: a frame of OpenMP itself only if there is no other. */
static size_t innermost(struct collect *c, const uint64_t *pcs, size_t n)
{
    size_t i = 0;
    while (i < n && is_runtime(c, pcs[i]))
        i++;
    return i < n ? i : 0;
}

/* Whether a frame is generated code that may get a name later. */
static bool is_unlisted(struct collect *c, uint64_t pc)
{
    const struct named_pc *named = code_named_pc(c, pc);
    return named && named->unlisted;
}

/* Writes the frames of a stack of the area; *unlisted: some may get names later. */
static size_t fill_stack(struct collect *c, uint64_t key, struct v2_frame *frames, bool *unlisted)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    size_t count = 0, n = area_stack(c->area, (uint32_t)key, pcs);
    *unlisted = false;
    for (size_t i = innermost(c, pcs, n); i < n; i++) {
        count = code_add_frames(c, pcs[i], frames, count);
        *unlisted = *unlisted || is_unlisted(c, pcs[i]);
    }
    return count;
}

/* Makes the frames of a stack of the area. */
static struct named_stack *make_stack(struct collect *c, uint64_t key)
{
    struct named_stack *stack = arena_alloc(&c->arena, sizeof *stack);
    struct v2_frame frames[V2_MAX_FRAMES];
    bool unlisted;
    size_t count = fill_stack(c, key, frames, &unlisted);
    if (!stack || !idmap_put(&c->code.stacks, key, stack)) {
        collect_no_memory(c);
        return NULL;
    }
    *stack = (struct named_stack){.count = count, .unlisted = unlisted};
    stack->frames = arena_alloc(&c->arena, count * sizeof frames[0] + 1);
    if (!stack->frames) {
        collect_no_memory(c);
        stack->count = 0;
    } else {
        memcpy(stack->frames, frames, count * sizeof frames[0]);
    }
    c->summary.stacks++;
    return stack;
}

/* Adds the names that the stack's frames have got since. */
static void fill_again(struct collect *c, uint64_t key, struct named_stack *stack)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    bool unlisted;
    /* The program may have overwritten the stack. */
    if (fill_stack(c, key, frames, &unlisted) != stack->count)
        return;
    memcpy(stack->frames, frames, stack->count * sizeof frames[0]);
    stack->unlisted = unlisted;
    stack->own_known = false;
    stack->runtime_known = false;
    stack->runtime_object = NULL;
}

struct named_stack *code_named_stack(struct collect *c, uint64_t key)
{
    struct named_stack *stack = idmap_find(&c->code.stacks, key);
    return stack ? stack : make_stack(c, key);
}

uint64_t code_stack(struct collect *c, uint64_t key, uint64_t pc)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    if (key == 0)
        return pc ? v2_writer_stack(c->trace->out.out, frames, code_add_frames(c, pc, frames, 0))
                  : 0;
    struct named_stack *stack = code_named_stack(c, key);
    if (!stack)
        return 0;
    if (stack->generation != v2_writer_generation(c->trace->out.out)) {
        if (stack->unlisted && stack->generation)
            fill_again(c, key, stack);
        stack->id = v2_writer_stack(c->trace->out.out, stack->frames, stack->count);
        stack->generation = v2_writer_generation(c->trace->out.out);
    }
    return stack->id;
}

uint64_t code_pcs(struct collect *c, const uint64_t *pcs, size_t count)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n = code_add_frames(c, pcs[i], frames, n);
    return n ? v2_writer_stack(c->trace->out.out, frames, n) : 0;
}

/* MARK: Places for people */

/* How well a frame names a place. */
enum frame_rank code_rank(const struct collect *c, const struct v2_frame *frame)
{
    return frame_rank(c->options.skip_frames, frame->function, frame->file);
}

bool code_is_wrapper(const struct collect *c, const struct v2_frame *frame)
{
    return code_rank(c, frame) <= FRAME_WRAPPER;
}

const struct v2_frame *code_own_function(struct collect *c, uint64_t address)
{
    const struct named_pc *named;
    read_modules(c);
    /* Only code in known modules: an arbitrary word from the program must not trigger a reading of
     * its maps. */
    if (!module_at(c, address, LOADED) || !(named = code_named_pc(c, address + 1)))
        return NULL;
    const struct v2_frame *frame = &named->frames[named->count - 1];
    return named->preload || code_is_wrapper(c, frame) ? NULL : frame;
}

const struct v2_frame *code_own(const struct collect *c, const struct v2_frame *frames,
                                size_t count, enum code_end end)
{
    const struct v2_frame *best = NULL;
    enum frame_rank best_rank = FRAME_WRAPPER;
    for (size_t i = 0; i < count; i++) {
        const struct v2_frame *frame = &frames[end == CODE_OUTERMOST ? count - 1 - i : i];
        enum frame_rank rank = code_rank(c, frame);
        if (rank > best_rank) {
            best = frame;
            best_rank = rank;
        }
    }
    return best;
}

const struct v2_frame *code_own_frame(const struct collect *c, struct named_stack *stack)
{
    if (!stack->own_known)
        stack->own = code_own(c, stack->frames, stack->count, CODE_INNERMOST);
    stack->own_known = true;
    return stack->own;
}

static void place_text(const struct v2_frame *frame, char *text, size_t size)
{
    text[0] = '\0';
    if (frame)
        (void)place_of_frame(frame->function, frame->file, frame->line, PLACE_PARENTHESES, text,
                             size);
}

void code_place_pc(struct collect *c, uint64_t pc, char *text, size_t size)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    size_t count = pc ? code_add_frames(c, pc, frames, 0) : 0;
    place_text(count ? code_own(c, frames, count, CODE_INNERMOST) : NULL, text, size);
}

void code_place(struct collect *c, uint64_t key, char *text, size_t size)
{
    struct named_stack *stack = key ? code_named_stack(c, key) : NULL;
    const struct v2_frame *frame = stack ? code_own_frame(c, stack) : NULL;
    if (!frame && stack && stack->count)
        frame = &stack->frames[0];
    place_text(frame, text, size);
}

void code_names_dispose(struct code_names *code)
{
    idmap_free(&code->stacks);
    idmap_free(&code->frames);
    free(code->modules);
    unwind_files_free(&code->unwind_files);
}
