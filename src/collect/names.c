/* Finds names by the program's module map and the options' resolver: see names.h. */
#include "collect/names.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/maps.h"
#include "collect/parts.h"
#include "wire/waits.h"
#include "wire/wall.h"
#include "words/place.h"
#include "words/wrappers.h"

/* Frames that others are inlined into get numbers at which no code can be (see trail_symbolize). */
#define FIRST_NUMBER (UINT64_C(1) << 48)

/*
 * For readers one PC is one frame, and programs of one trace have other code at the same address: the PCs of each but the
 * first have its number above them. (After 32768 programs the numbers begin again.)
 */
#define PROGRAM_SHIFT 49

/* All are searched for each new PC. */
#define MAX_MODULES 4096

/* A variable's name, with that of its process. */
#define OBJECT_SIZE 340

/* The least time between two readings of the kernel's list of mappings. */
#define MAPS_APART_NS 20000000

struct module {
    trail_module map;
    bool preload; /* a library of trail: its frames are not shown */
    bool openmp;  /* a run-time library of OpenMP: its innermost frames are not shown */
    bool gone;    /* unloaded: other code may be mapped there */
};

/* The stack of a hold: its place, and the outer frames of its release. */
struct named_hold {
    uint64_t generation, id;
    uint64_t pc;
};

/* The holds of locks that end at one place began at few others. */
#define KNOWN_HOLDS 4

/* A stack of the area in the trace. */
struct named_stack {
    uint64_t generation, id;
    struct v2_frame *frames; /* in the arena; texts too */
    size_t count;
    bool unlisted;              /* a frame is */
    const struct v2_frame *own; /* see own_frame */
    bool own_known;
    struct named_hold holds[KNOWN_HOLDS]; /* that it was the release of */
    unsigned next_hold;
};

/* The frames that a PC stands for, innermost first. */
struct named_pc {
    size_t count;
    bool preload, openmp;
    bool unlisted; /* code of no module, which the list of generated code does not have yet */
    struct v2_frame frames[];
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

static trail_string text_of(const char *text)
{
    return (trail_string){text, strlen(text)};
}

uint64_t names_string(struct collect *c, const char *text)
{
    return v2_writer_string(c->trace->out.out, text_of(text));
}

/* Few descriptors and locks are waited for all the time: those texts are not made again for each wait. */
static size_t wait_slot(unsigned wait, const char *name)
{
    return ((uintptr_t)name / 16 * SHM_WAITS + wait) % KNOWN_WAITS;
}

uint64_t names_known_wait(const struct collect *c, unsigned wait, const char *name)
{
    const struct known_text *known = &c->names.waits[wait_slot(wait, name)];
    return known->name == name && known->wait == wait &&
                   known->generation == v2_writer_generation(c->trace->out.out)
               ? known->id
               : 0;
}

uint64_t names_wait(struct collect *c, unsigned wait, const char *name, const char *object)
{
    char text[600];
    uint64_t id;
    snprintf(text, sizeof text, "%s%s%s", wait_kinds[wait].words, *object ? " " : "", object);
    id = names_string(c, text);
    if (name)
        c->names.waits[wait_slot(wait, name)] =
            (struct known_text){v2_writer_generation(c->trace->out.out), id, name, wait};
    return id;
}

/* Returns a text that is always the same, once a generation. */
static uint64_t fixed_text(struct collect *c, struct known_text *known, const char *text)
{
    uint64_t generation = v2_writer_generation(c->trace->out.out);
    if (known->id == 0 || known->generation != generation)
        *known = (struct known_text){generation, names_string(c, text), NULL, 0};
    return known->id;
}

uint64_t names_wait_category(struct collect *c)
{
    return fixed_text(c, &c->names.wait_category, WIRE_WAIT_CATEGORY);
}

uint64_t names_held_category(struct collect *c)
{
    return fixed_text(c, &c->names.held_category, WIRE_HELD_CATEGORY);
}

uint64_t names_reason(struct collect *c, uint8_t wait)
{
    return fixed_text(c, &c->names.reasons[wait], wait_reason(wait));
}

/* MARK: Modules */

static void look_at_name(struct collect *c, struct module *module, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    module->preload = strstr(name, "libtrail-preload.so") || strstr(name, "libtrail-heap.so") ||
                      strstr(name, "libtrail-record.so") || strstr(name, "libtrail-ompt.so");
    module->openmp = strncmp(name, "libomp", 6) == 0 || strncmp(name, "libiomp5", 8) == 0;
    c->names.llvm_openmp |= module->openmp;
    c->names.gcc_openmp |= strncmp(name, "libgomp", 7) == 0;
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
    if (c->names.module_count == MAX_MODULES || module.map.start >= module.map.end) {
        collect_damage(c);
        return false;
    }
    module.map.path = keep(c, text_of(line + path));
    module.map.build_id = keep(c, text_of(strcmp(id, "-") == 0 ? "" : id));
    module.gone = strcmp(word, "unloaded") == 0;
    look_at_name(c, &module, line + path);
    if (!GROW(c->names.modules, c->names.module_room, c->names.module_count + 1)) {
        collect_no_memory(c);
        return false;
    }
    c->names.modules[c->names.module_count++] = module;
    return true;
}

/* Reads the area's lines if they have changed. If they change meanwhile, the next call reads them. */
static void read_modules(struct collect *c)
{
    bool no_memory = false;
    char *text = area_modules(c->area, &c->names.modules_version, &no_memory), *rest = text, *line;
    if (no_memory)
        collect_no_memory(c);
    if (!text)
        return;
    c->names.module_count = 0;
    while ((line = strsep(&rest, "\n")) != NULL)
        (void)read_module(c, line);
    free(text);
}

enum presence { LOADED, UNLOADED };

static const struct module *module_at(const struct collect *c, uint64_t pc, enum presence presence)
{
    for (size_t i = 0; i < c->names.module_count; i++) {
        if (pc >= c->names.modules[i].map.start && pc < c->names.modules[i].map.end &&
            c->names.modules[i].gone == (presence == UNLOADED))
            return &c->names.modules[i];
    }
    return NULL;
}

/* Adds a library that the program has loaded since. */
static void add_map(const trail_module *map, void *context)
{
    struct collect *c = context;
    struct module *module;
    if (module_at(c, map->start, LOADED) || c->names.module_count >= MAX_MODULES)
        return;
    if (!GROW(c->names.modules, c->names.module_room, c->names.module_count + 1)) {
        collect_no_memory(c);
        return;
    }
    module = &c->names.modules[c->names.module_count++];
    *module =
        (struct module){.map = {map->start, map->end, map->bias, {NULL, 0}, keep(c, map->path)}};
    if (module->map.path.data)
        look_at_name(c, module, module->map.path.data);
}

static const struct module *find_module(struct collect *c, uint64_t pc)
{
    const struct module *module;
    uint64_t now;
    bool gone;
    read_modules(c);
    module = module_at(c, pc, LOADED);
    if (module)
        return module;
    now = clock_ns(CLOCK_MONOTONIC);
    gone = module_at(c, pc, UNLOADED) != NULL;
    if (c->options.process.pid == 0 || (now - c->names.maps_ns < MAPS_APART_NS && !gone))
        return NULL;
    /* Another module may be mapped where one was unloaded. */
    c->names.maps_ns = now;
    maps_each((int)c->options.process.pid, "", add_map, c);
    module = module_at(c, pc, LOADED);
    return module ? module : module_at(c, pc, UNLOADED);
}

/* Returns the module whose file would have the variable: the last that begins before it. */
static const struct module *data_module(const struct collect *c, uint64_t address)
{
    const struct module *found = NULL;
    for (size_t i = 0; i < c->names.module_count; i++) {
        const trail_module *map = &c->names.modules[i].map;
        if (!c->names.modules[i].gone && map->bias <= address &&
            (!found || map->bias > found->map.bias))
            found = &c->names.modules[i];
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

/* Of generated code: it has no file, so its frames are those of frame pointers. */
static const trail_module generated;

static const trail_module *find_map(void *context, uint64_t pc)
{
    const struct module *module = find_module(context, pc);
    trail_symbol symbol;
    if (module)
        return &module->map;
    return find_generated(context, pc, &symbol) ? &generated : NULL;
}

size_t names_walk(struct collect *c, const struct cpu_sample *sample, uint64_t *pcs)
{
    return stack_copy_walk(&c->names.unwind_files, sample, find_map, c, pcs, SHM_STACK_FRAMES);
}

bool names_has_silent_openmp(const struct collect *c)
{
    return c->names.gcc_openmp && !c->names.llvm_openmp;
}

/* Whether another module overlaps the addresses of an unloaded one. */
static bool is_replaced(const struct collect *c, const struct module *module)
{
    for (size_t i = 0; module->gone && i < c->names.module_count; i++) {
        const struct module *other = &c->names.modules[i];
        if ((!other->gone || other < module) && other->map.start < module->map.end &&
            module->map.start < other->map.end)
            return true;
    }
    return false;
}

void names_modules(struct collect *c)
{
    read_modules(c);
    for (size_t i = 0; i < c->names.module_count; i++) {
        const trail_module *map = &c->names.modules[i].map;
        char line[V2_MAX_STRING + 1];
        int size;
        if (is_replaced(c, &c->names.modules[i]))
            continue;
        size = snprintf(line, sizeof line,
                        "trail.module start=0x%" PRIx64 " end=0x%" PRIx64 " bias=0x%" PRIx64
                        " build-id=%.*s path=%.*s",
                        pc_in_trace(c, map->start), pc_in_trace(c, map->end),
                        pc_in_trace(c, map->bias), map->build_id.size ? (int)map->build_id.size : 1,
                        map->build_id.size ? map->build_id.data : "-", (int)map->path.size,
                        map->path.data);
        if (size > 0 && (size_t)size < sizeof line)
            v2_writer_note(c->trace->out.out, (trail_string){line, (size_t)size});
    }
}

void names_clock(struct trace *t, int64_t ns, int64_t wall_ns)
{
    const int64_t second = 1000000000;
    char line[WALL_LINE];
    int size =
        snprintf(line, sizeof line, WALL_PREFIX "mono=%" PRId64 " wall=%" PRId64 ".%09" PRId64, ns,
                 wall_ns / second, wall_ns % second);
    if (t->options.version < WALL_READINGS && size > 0 && (size_t)size < sizeof line)
        v2_writer_note(t->out.out, (trail_string){line, (size_t)size});
}

/* MARK: PCs */

/* Returns a name for code without a symbol: the file's name and the offset in it. */
static trail_string stand_in(struct collect *c, const struct module *module, uint64_t pc)
{
    const char *path, *slash;
    char text[300];
    size_t size;
    if (!module)
        return (trail_string){NULL, 0};
    path = module->map.path.data;
    size = module->map.path.size;
    slash = size ? memrchr(path, '/', size) : NULL;
    if (slash) {
        size -= (size_t)(slash + 1 - path);
        path = slash + 1;
    }
    snprintf(text, sizeof text, "%.*s+0x%" PRIx64, size < 255 ? (int)size : 255, path,
             pc - 1 - module->map.bias);
    return keep(c, text_of(text));
}

/* Makes frames of what the resolver returns; one without names if it returns nothing. */
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
    if (!named || !idmap_put(&c->names.frames, pc, named)) {
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
        named->frames[i] =
            (struct v2_frame){.pc = i ? FIRST_NUMBER + c->trace->next_frame++ : named->frames[0].pc,
                              .function = keep(c, symbols[i].function),
                              .file = keep(c, symbols[i].file),
                              .line = symbols[i].line};
    return named;
}

/* Code may be listed only after it was seen: Java's virtual machine writes its list when it is asked to. */
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

static const struct named_pc *named_pc(struct collect *c, uint64_t pc)
{
    struct named_pc *named = idmap_find(&c->names.frames, pc);
    if (named && named->unlisted)
        name_late(c, pc, named);
    return named ? named : resolve(c, pc);
}

void names_dispose(struct collect *c)
{
    idmap_free(&c->names.stacks);
    idmap_free(&c->names.frames);
    idmap_free(&c->names.objects);
    free(c->names.modules);
    unwind_files_free(&c->names.unwind_files);
}

/* MARK: Stacks */

static size_t add_frames(struct collect *c, uint64_t pc, struct v2_frame *frames, size_t count)
{
    const struct named_pc *named = named_pc(c, pc);
    if (!named || named->preload)
        return count;
    for (size_t i = 0; i < named->count && count < V2_MAX_FRAMES; i++)
        frames[count++] = named->frames[i];
    return count;
}

/* Whether a frame is of an OpenMP library, or of trail itself. */
static bool is_runtime(struct collect *c, uint64_t pc)
{
    const struct named_pc *named = named_pc(c, pc);
    return named && (named->preload || named->openmp);
}

/* Returns the first frame that is shown: one of OpenMP itself only if there is no other. */
static size_t innermost(struct collect *c, const uint64_t *pcs, size_t n)
{
    size_t i = 0;
    while (i < n && is_runtime(c, pcs[i]))
        i++;
    return i < n ? i : 0;
}

/* Whether a frame is of generated code that may have a name later. */
static bool is_unlisted(struct collect *c, uint64_t pc)
{
    const struct named_pc *named = named_pc(c, pc);
    return named && named->unlisted;
}

/* Writes the frames of a stack of the area; *unlisted: some may have names later. */
static size_t fill_stack(struct collect *c, uint64_t key, struct v2_frame *frames, bool *unlisted)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    size_t count = 0, n = area_stack(c->area, (uint32_t)key, pcs);
    *unlisted = false;
    for (size_t i = innermost(c, pcs, n); i < n; i++) {
        count = add_frames(c, pcs[i], frames, count);
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
    if (!stack || !idmap_put(&c->names.stacks, key, stack)) {
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

/* Takes the names that its frames have got since. */
static void fill_again(struct collect *c, uint64_t key, struct named_stack *stack)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    bool unlisted;
    /* The program may have written another stack there. */
    if (fill_stack(c, key, frames, &unlisted) != stack->count)
        return;
    memcpy(stack->frames, frames, stack->count * sizeof frames[0]);
    stack->unlisted = unlisted;
    stack->own_known = false;
}

static struct named_stack *named_stack(struct collect *c, uint64_t key)
{
    struct named_stack *stack = idmap_find(&c->names.stacks, key);
    return stack ? stack : make_stack(c, key);
}

uint64_t names_stack(struct collect *c, uint64_t key, uint64_t pc)
{
    struct named_stack *stack;
    struct v2_frame frames[V2_MAX_FRAMES];
    if (key == 0)
        return pc ? v2_writer_stack(c->trace->out.out, frames, add_frames(c, pc, frames, 0)) : 0;
    stack = named_stack(c, key);
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

uint64_t names_pcs(struct collect *c, const uint64_t *pcs, size_t count)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n = add_frames(c, pcs[i], frames, n);
    return n ? v2_writer_stack(c->trace->out.out, frames, n) : 0;
}

/* MARK: Objects */

/* Writes a variable's name and returns true; without one, the address. */
static bool variable_text(struct collect *c, uint64_t address, char *text, size_t size)
{
    const struct module *module;
    read_modules(c);
    module = data_module(c, address);
    if (module && c->options.object &&
        c->options.object(c->options.resolve_context, &module->map, address - module->map.bias,
                          text, size))
        return true;
    snprintf(text, size, "0x%" PRIx64, address);
    return false;
}

/*
 * The same of any object. Processes that were forked have different objects at one address: where a trace has several
 * processes, "stats_mu of server (4711)".
 */
static bool object_text(struct collect *c, uint64_t address, char *text, size_t size)
{
    const char *label = c->options.label;
    bool is_variable;
    if (shm_is_shared(address)) {
        snprintf(text, size, "shared 0x%" PRIx64, address & UINT64_MAX >> 8);
        return false;
    }
    is_variable = variable_text(c, address, text, size);
    if (label)
        snprintf(text + strlen(text), size - strlen(text), " of %s", label);
    return is_variable;
}

/* What processes share has one name in all of them. */
static struct idmap *objects_with(struct collect *c, uint64_t address)
{
    return shm_is_shared(address) ? &c->trace->objects : &c->names.objects;
}

bool names_is_known(struct collect *c, uint64_t address)
{
    return idmap_find(objects_with(c, address), address) != NULL;
}

static const char *keep_object(struct collect *c, uint64_t address, const char *text)
{
    struct arena *arena = shm_is_shared(address) ? &c->trace->arena : &c->arena;
    char *name = arena_copy(arena, text, strlen(text));
    if (!name || !idmap_put(objects_with(c, address), address, name)) {
        collect_no_memory(c);
        return "";
    }
    return name;
}

const char *names_object(struct collect *c, uint64_t address)
{
    const char *known = idmap_find(objects_with(c, address), address);
    char text[OBJECT_SIZE];
    if (known)
        return known;
    (void)object_text(c, address, text, sizeof text);
    return keep_object(c, address, text);
}

const char *names_file(const struct collect *c, uint64_t file)
{
    return idmap_find(&c->trace->objects, file);
}

void names_file_is(struct collect *c, uint64_t file, const char *name)
{
    const char *known = names_file(c, file);
    if (shm_is_file(file) && (!known || strcmp(known, name) != 0))
        (void)keep_object(c, file, name);
}

void names_forget_object(struct collect *c, uint64_t address)
{
    (void)idmap_remove(objects_with(c, address), address);
    if (shm_is_shared(address))
        (void)idmap_remove(&c->trace->holds, address);
}

/* MARK: Places for people */

static enum frame_rank rank_of(const struct collect *c, const struct v2_frame *frame)
{
    return frame_rank(c->options.skip_frames, frame->function, frame->file);
}

static bool is_wrapper(const struct collect *c, const struct v2_frame *frame)
{
    return rank_of(c, frame) <= FRAME_WRAPPER;
}

/* The outer frames of the release, if its stack is known: the thread was in the same functions when it took the lock. */
static uint64_t hold_stack(struct collect *c, uint64_t pc, const struct named_stack *stack)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    size_t count = add_frames(c, pc, frames, 0), outer = 0;
    bool found = false;
    while (stack && outer < stack->count && is_wrapper(c, &stack->frames[outer]))
        outer++;
    for (size_t i = 0; i < count; i++)
        found |= !is_wrapper(c, &frames[i]);
    /* The first function of the program took the lock, or called a function that did and has returned. */
    if (stack && outer < stack->count && found)
        outer++;
    for (; stack && outer < stack->count && count < V2_MAX_FRAMES; outer++)
        frames[count++] = stack->frames[outer];
    return count ? v2_writer_stack(c->trace->out.out, frames, count) : 0;
}

uint64_t names_hold(struct collect *c, uint64_t pc, uint64_t release)
{
    struct named_stack *stack = release ? named_stack(c, release) : NULL;
    uint64_t generation = v2_writer_generation(c->trace->out.out);
    struct named_hold *hold;
    if (!stack)
        return hold_stack(c, pc, NULL);
    for (size_t i = 0; i < KNOWN_HOLDS; i++) {
        hold = &stack->holds[i];
        if (hold->pc == pc && hold->generation == generation)
            return hold->id;
    }
    hold = &stack->holds[stack->next_hold++ % KNOWN_HOLDS];
    *hold = (struct named_hold){generation, hold_stack(c, pc, stack), pc};
    return hold->id;
}

/* Returns the outermost frame that is the program's, one with a name if there is one; NULL: there is none. */
static const struct v2_frame *outermost(struct collect *c, uint64_t key)
{
    const struct named_stack *stack = key ? named_stack(c, key) : NULL;
    const struct v2_frame *best = NULL;
    enum frame_rank best_rank = FRAME_WRAPPER;
    for (size_t i = stack ? stack->count : 0; i-- > 0;) {
        enum frame_rank rank = rank_of(c, &stack->frames[i]);
        if (rank > best_rank) {
            best = &stack->frames[i];
            best_rank = rank;
        }
    }
    return best;
}

/* Returns the end of a template's first argument. */
static const char *argument_end(const char *text)
{
    int depth = 0;
    for (; *text && (depth > 0 || (*text != ',' && *text != '>')); text++) {
        if (strchr("<({[", *text))
            depth++;
        else if (strchr(">)}]", *text))
            depth--;
    }
    return text;
}

/* What precedes the elements: the callable, and its arguments. */
static const char in_tuple[] = "_Invoker<std::tuple<";

/* Writes the type of what a thread of libstdc++ runs, the name of a vtable; false: not known. */
static bool type_of(struct collect *c, uint64_t vtable, char *text, size_t size)
{
    const struct module *module = data_module(c, vtable);
    return module && c->options.object &&
           c->options.object(c->options.resolve_context, &module->map, vtable - module->map.bias,
                             text, size);
}

/*
 * Writes the name of what a thread of libstdc++ runs, from the name of the vtable of
 * std::thread::_State_impl<std::thread::_Invoker<std::tuple<CALLABLE, ARGUMENTS...> > >, where CALLABLE may be
 * std::async's own, whose name contains such a tuple again. False: not known, as for a pointer to a function, of which the
 * name has only the type.
 */
static bool callable_name(const char *text, char *name, size_t size)
{
    const char *at, *last = NULL, *end;
    for (at = text; (at = strstr(at, in_tuple)) != NULL; last = at)
        at += sizeof in_tuple - 1;
    if (!last)
        return false;
    end = argument_end(last);
    if (end == last || end[-1] == '*' || memmem(last, (size_t)(end - last), "*)", 2))
        return false;
    snprintf(name, size, "%.*s%s", (int)(end - last), last,
             end[-1] == '}' || memchr(last, '{', (size_t)(end - last)) ? "" : "::operator()");
    return true;
}

/* Returns the frame of the function at an address; NULL: it is none of the program's own. */
static const struct v2_frame *own_function(struct collect *c, uint64_t address)
{
    const struct named_pc *named;
    const struct v2_frame *frame;
    read_modules(c);
    /* Only code that is known: words of the program lead to no look at its maps. */
    if (!module_at(c, address, LOADED) || !(named = named_pc(c, address + 1)))
        return NULL;
    frame = &named->frames[named->count - 1];
    return named->preload || is_wrapper(c, frame) ? NULL : frame;
}

/* Returns how many elements of the tuple that begins in a type are pointers to functions. */
static size_t count_pointers(const char *type)
{
    const char *at = strstr(type, in_tuple), *end;
    size_t count = 0;
    for (at = at ? at + sizeof in_tuple - 1 : ""; *at; at = *end == ',' ? end + 1 : "") {
        end = argument_end(at);
        count += memmem(at, (size_t)(end - at), "*)(", 3) != NULL;
    }
    return count;
}

/*
 * Returns the function that a thread of libstdc++ was given a pointer to. The last element of a tuple comes first, so that
 * it is behind those among its arguments. A program without symbols has the function that runs a lambda instead. NULL: not
 * known.
 */
static const struct v2_frame *given_function(struct collect *c, const struct thread *thread,
                                             const char *type)
{
    const struct v2_frame *last = NULL;
    size_t found = 0, expected = *type ? count_pointers(type) : 1;
    /* Behind it is what was left in the memory. */
    for (size_t i = 0; i < sizeof thread->given.words / sizeof thread->given.words[0]; i++) {
        if (*type && found == expected)
            break;
        const struct v2_frame *frame = own_function(c, thread->given.words[i]);
        found += frame != NULL;
        last = frame ? frame : last;
    }
    return found && found == expected ? last : own_function(c, thread->given.runs);
}

/*
 * Finds the frame that names a goroutine: its start routine. A runtime starts all threads with the same one: then it is
 * what the thread was given to run, or the outermost function of the thread's first stack. The function may lie in `name`.
 * Returns false if nothing is known.
 */
static bool routine_frame(struct collect *c, const struct thread *thread, char name[V2_MAX_STRING],
                          struct v2_frame *frame)
{
    const struct named_pc *named;
    if (!thread->routine) {
        *frame = (struct v2_frame){.pc = FIRST_NUMBER - 1, .function = text_of("main")};
        return true;
    }
    /* A PC is a return address: behind the routine's first byte. */
    named = named_pc(c, thread->routine + 1);
    if (!named)
        return false;
    *frame = named->frames[named->count - 1];
    if (is_wrapper(c, frame)) {
        const struct v2_frame *seen = outermost(c, thread->first_stack);
        const struct v2_frame *given;
        char type[4096] = "";
        bool known = thread->given.vtable && type_of(c, thread->given.vtable, type, sizeof type) &&
                     callable_name(type, name, V2_MAX_STRING);
        /* What was seen to run has a line as well. */
        if (seen && (!known || text_begins(seen->function, name)))
            *frame = *seen;
        else if (!known && (given = given_function(c, thread, type)) != NULL)
            *frame = *given;
        else if (known)
            *frame =
                (struct v2_frame){FIRST_NUMBER + c->trace->next_frame++, text_of(name), {0}, 0};
    }
    return true;
}

uint64_t names_routine(struct collect *c, const struct thread *thread)
{
    char name[V2_MAX_STRING];
    struct v2_frame frame;
    return routine_frame(c, thread, name, &frame) ? v2_writer_stack(c->trace->out.out, &frame, 1)
                                                  : 0;
}

uint64_t names_thread(struct collect *c, const struct thread *thread)
{
    char room[V2_MAX_STRING], name[2 * V2_MAX_STRING];
    const char *label = c->options.label;
    struct v2_frame frame = {.function = text_of(thread->name)};
    int size;
    if (!thread->name[0] && !label)
        return names_routine(c, thread);
    if (!thread->name[0])
        (void)routine_frame(c, thread, room, &frame);
    size = snprintf(name, sizeof name, "%s%s%.*s", label ? label : "", label ? ": " : "",
                    (int)frame.function.size, frame.function.data ? frame.function.data : "");
    frame.function = (trail_string){name, (size_t)size};
    frame.pc = FIRST_NUMBER + c->trace->next_frame++;
    return v2_writer_stack(c->trace->out.out, &frame, 1);
}

void names_thread_text(struct collect *c, const struct thread *thread, char *text, size_t size)
{
    char name[V2_MAX_STRING];
    struct v2_frame frame = {.function = text_of(thread->name)};
    if (!thread->name[0] && !routine_frame(c, thread, name, &frame))
        frame.function = text_of("");
    snprintf(text, size, "%.*s", (int)(frame.function.size < size ? frame.function.size : size - 1),
             frame.function.data ? frame.function.data : "");
}

/* Returns the innermost frame that is the program's; NULL: there is none. */
static const struct v2_frame *first_own(const struct collect *c, const struct v2_frame *frames,
                                        size_t count)
{
    const struct v2_frame *best = NULL;
    enum frame_rank best_rank = FRAME_WRAPPER;
    for (size_t i = 0; i < count; i++) {
        enum frame_rank rank = rank_of(c, &frames[i]);
        if (rank > best_rank) {
            best = &frames[i];
            best_rank = rank;
        }
    }
    return best;
}

/* The same of a stack, found once. */
static const struct v2_frame *own_frame(const struct collect *c, struct named_stack *stack)
{
    if (!stack->own_known)
        stack->own = first_own(c, stack->frames, stack->count);
    stack->own_known = true;
    return stack->own;
}

void names_place(struct collect *c, uint64_t key, char *text, size_t size)
{
    struct named_stack *stack = key ? named_stack(c, key) : NULL;
    const struct v2_frame *frame = stack ? own_frame(c, stack) : NULL;
    text[0] = '\0';
    if (!frame && stack && stack->count)
        frame = &stack->frames[0];
    if (frame)
        (void)place_of_frame(frame->function, frame->file, frame->line, PLACE_PARENTHESES, text,
                             size);
}

const char *names_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key)
{
    const char *known = idmap_find(objects_with(c, address), address);
    struct v2_frame frames[V2_MAX_FRAMES];
    struct named_stack *stack;
    const struct v2_frame *first;
    char name[OBJECT_SIZE], place[200], text[OBJECT_SIZE + 256];
    if (known)
        return known;
    if (object_text(c, address, name, sizeof name))
        return keep_object(c, address, name);
    first = first_own(c, frames, pc ? add_frames(c, pc, frames, 0) : 0);
    stack = !first && key ? named_stack(c, key) : NULL;
    if (stack)
        first = own_frame(c, stack);
    if (!first)
        return keep_object(c, address, name);
    (void)place_of_frame(first->function, first->file, first->line, PLACE_PLAIN, place,
                         sizeof place);
    snprintf(text, sizeof text, "%s (first seen locked in %s)", name, place);
    return keep_object(c, address, text);
}

void names_shared_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key,
                       uint64_t time)
{
    uint64_t *named_by = idmap_find(&c->trace->holds, address);
    if (names_is_known(c, address) && (!named_by || *named_by <= time))
        return;
    (void)idmap_remove(&c->trace->objects, address);
    (void)names_lock(c, address, pc, key);
    if (!named_by)
        named_by = arena_alloc(&c->trace->arena, sizeof *named_by);
    if (!named_by || !idmap_put(&c->trace->holds, address, named_by)) {
        collect_no_memory(c);
        return;
    }
    *named_by = time;
}
