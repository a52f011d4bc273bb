/*
 * The made-up program whose stacks the events carry: some thousand functions with names, files,
 * lines and PCs like those of a real server. A PC means one line of one function, in every stack
 * (§6.2).
 */
#include "generate.h"
#include <stdlib.h>
#include <string.h>

#define CALL_SITES 8 /* in each function */

struct function {
    uint32_t name, file, line;
    uint64_t pc;
};

static const char *const fixed_texts[] = {
    [TEXT_EMPTY] = "",
    [TEXT_CHAN_SEND] = "chan send",
    [TEXT_CHAN_RECEIVE] = "chan receive",
    [TEXT_SELECT] = "select",
    [TEXT_SYNC] = "sync",
    [TEXT_COND] = "sync.(*Cond).Wait",
    [TEXT_NETWORK] = "network",
    [TEXT_SLEEP] = "sleep",
    [TEXT_ASSIST_WAIT] = "GC mark assist wait for work",
    [TEXT_SYSTEM] = "system goroutine wait",
    [TEXT_PREEMPTED] = "preempted",
    [TEXT_GOSCHED] = "runtime.Gosched",
    [TEXT_STW_SWEEP] = "GC sweep termination",
    [TEXT_STW_MARK] = "GC mark termination",
    [TEXT_NOT_WORKER] = "Not worker",
    [TEXT_DEDICATED] = "GC (dedicated)",
    [TEXT_FRACTIONAL] = "GC (fractional)",
    [TEXT_IDLE] = "GC (idle)",
    "request",
    "query",
    "render",
    "index",
    "compact",
    "replicate",
    "flush",
    "audit",
    "parse header",
    "authorize",
    "look up",
    "decode",
    "validate",
    "join",
    "sort",
    "encode",
    "compress",
    "write back",
    "lock row",
    "wait replica",
    "checksum",
    "route",
    "retry",
    "close",
    "info",
    "warning",
    "error",
    "sql",
    "cache",
    "http",
    "queue",
    "disk",
};

/* What the runtime and the library put on top of the program's own frames. */
static const char *const leaves[SITES][5] = {
    [SITE_RECEIVE] = {"runtime.chanrecv1"},
    [SITE_SEND] = {"runtime.chansend1"},
    [SITE_SELECT] = {"runtime.selectgo"},
    [SITE_SYNC] = {"sync.(*Mutex).lockSlow", "sync.(*Mutex).Lock"},
    [SITE_COND] = {"sync.(*Cond).Wait"},
    [SITE_NETWORK] = {"internal/poll.(*pollDesc).wait", "internal/poll.(*FD).Read",
                      "net.(*conn).Read"},
    [SITE_SLEEP] = {"time.Sleep"},
    [SITE_SYSCALL] = {"syscall.Syscall", "syscall.write", "internal/poll.(*FD).Write",
                      "os.(*File).Write"},
    [SITE_UNBLOCK] = {"sync.(*Mutex).unlockSlow", "sync.(*Mutex).Unlock"},
    [SITE_GOSCHED] = {"runtime.Gosched"},
    [SITE_GC] = {"runtime.gcStart", "runtime.mallocgc"},
    [SITE_ASSIST] = {"runtime.gcAssistAlloc", "runtime.mallocgc"},
    [SITE_SWEEP] = {"runtime.(*mspan).sweep", "runtime.mallocgc", "runtime.newobject"},
    [SITE_CPU] = {"runtime.memmove"},
};

static const char *const packages[] = {
    "main",
    "net/http",
    "encoding/json",
    "bufio",
    "database/sql",
    "bytes",
    "strings",
    "example.com/shop/cart",
    "example.com/shop/stock",
    "example.com/shop/price",
    "example.com/store/btree",
    "example.com/store/wal",
    "example.com/rpc",
    "example.com/rpc/codec",
    "example.com/cache",
    "example.com/queue",
};
static const char *const types[] = {"Server",  "Conn",  "Reader", "Writer", "Session", "Index",
                                    "Cursor",  "Batch", "Worker", "Codec",  "Page",    "Router",
                                    "Counter", "Lease", "Stream", "Table"};
static const char *const verbs[] = {"Serve",  "read",   "Write",  "flush", "Lookup", "merge",
                                    "Decode", "encode", "Next",   "apply", "Close",  "split",
                                    "Handle", "scan",   "Commit", "wait"};

void *must_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory) {
        fputs("trail-generate: out of memory\n", stderr);
        exit(3);
    }
    return memory;
}

void *must_grow(void *memory, size_t size)
{
    memory = realloc(memory, size);
    if (!memory) {
        fputs("trail-generate: out of memory\n", stderr);
        exit(3);
    }
    return memory;
}

static uint32_t program_text(struct program *program, const char *text)
{
    size_t size = strlen(text);
    struct text_value *value = &program->text[program->texts];
    value->data = must_alloc(size + 1);
    memcpy(value->data, text, size);
    value->size = size;
    return (uint32_t)program->texts++;
}

#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))
#define OWN_FUNCTIONS  (COUNT(packages) * COUNT(types) * COUNT(verbs) / 2)
#define LEAF_FUNCTIONS ((size_t)SITES * 5)
#define FUNCTIONS      (OWN_FUNCTIONS + LEAF_FUNCTIONS)
#define MAX_FRAMES     32
#define MESSAGES       1000

struct maker {
    struct program *program;
    struct function function[FUNCTIONS];
    size_t functions;
    uint32_t leaf[SITES][5]; /* index of the function + 1 */
};

static uint32_t maker_function(struct maker *maker, const char *name, uint32_t file)
{
    struct function *function = &maker->function[maker->functions];
    function->name = program_text(maker->program, name);
    function->file = file;
    function->line = (uint32_t)(20 + maker->functions % 40 * 37);
    function->pc = 0x401000 + (uint64_t)maker->functions * 0x340;
    return (uint32_t)maker->functions++;
}

static void maker_functions(struct maker *maker)
{
    char buf[256];
    uint32_t runtime = program_text(maker->program, "/usr/lib/go/src/runtime/proc.go");
    for (int s = 0; s < SITES; s++)
        for (int i = 0; i < 5 && leaves[s][i]; i++)
            maker->leaf[s][i] = maker_function(maker, leaves[s][i], runtime) + 1;
    for (size_t p = 0; p < COUNT(packages); p++) {
        for (size_t t = 0; t < COUNT(types); t++) {
            snprintf(buf, sizeof buf, "/home/build/src/%s/%s.go", packages[p], types[t]);
            uint32_t file = program_text(maker->program, buf);
            for (size_t v = (p + t) % 2; v < COUNT(verbs); v += 2) {
                snprintf(buf, sizeof buf, "%s.(*%s).%s", packages[p], types[t], verbs[v]);
                maker_function(maker, buf, file);
            }
        }
    }
}

static struct frame maker_frame(const struct maker *maker, size_t function, uint64_t call)
{
    const struct function *f = &maker->function[function];
    return (struct frame){.pc = f->pc + 0x23 + call * 0x51,
                          .function = f->name,
                          .file = f->file,
                          .line = f->line + (uint32_t)call * 4};
}

/* Frames leaf first: the site's own, then functions of the program. Returns how many. */
static unsigned maker_stack(const struct maker *maker, int site, struct frame *frame,
                            struct rng *rng)
{
    size_t first_own = maker->functions - OWN_FUNCTIONS;
    unsigned n = 0;
    for (int i = 0; i < 5 && maker->leaf[site][i]; i++)
        frame[n++] = maker_frame(maker, maker->leaf[site][i] - 1, rng_below(rng, CALL_SITES));
    unsigned depth = site == SITE_START ? 1 : 8 + (unsigned)rng_below(rng, 23);
    while (n < depth) {
        size_t function = first_own + rng_below(rng, OWN_FUNCTIONS);
        frame[n++] = maker_frame(maker, function, rng_below(rng, CALL_SITES));
    }
    return n;
}

static void maker_messages(struct maker *maker)
{
    char buf[64];
    maker->program->first_message = (uint32_t)maker->program->texts;
    for (unsigned i = 0; i < MESSAGES; i++) {
        snprintf(buf, sizeof buf, "request %u took %u us", i * 7919, i * 31 % 977);
        program_text(maker->program, buf);
    }
}

void program_make(struct program *program, size_t stacks, struct rng *rng)
{
    struct maker *maker = must_alloc(sizeof *maker);
    maker->program = program;
    size_t texts = COUNT(fixed_texts) + FUNCTIONS + COUNT(packages) * COUNT(types) + 1 + MESSAGES;
    program->text = must_alloc(texts * sizeof *program->text);
    for (size_t i = 0; i < COUNT(fixed_texts); i++)
        program_text(program, fixed_texts[i]);
    maker_functions(maker);
    maker_messages(maker);

    size_t per_site = stacks / SITES + 1;
    program->stacks = 1 + per_site * SITES;
    program->stack = must_alloc(program->stacks * sizeof *program->stack);
    program->frames = must_alloc(program->stacks * MAX_FRAMES * sizeof *program->frames);
    struct frame *frame = program->frames;
    size_t next = 1;
    for (int s = 0; s < SITES; s++) {
        program->first[s] = next;
        for (size_t i = 0; i < per_site; i++) {
            unsigned n = maker_stack(maker, s, frame, rng);
            program->stack[next++] = (struct stack){frame, n};
            frame += n;
        }
    }
    program->first[SITES] = next;
    free(maker);
}

void program_free(struct program *program)
{
    for (size_t i = 0; i < program->texts; i++)
        free(program->text[i].data);
    free(program->text);
    free(program->stack);
    free(program->frames);
}

void ids_init(struct ids *ids, size_t size)
{
    ids->id = must_alloc(size * sizeof *ids->id);
    ids->order = must_alloc(size * sizeof *ids->order);
    ids->count = 0;
}

void ids_reset(struct ids *ids)
{
    for (uint32_t i = 0; i < ids->count; i++)
        ids->id[ids->order[i]] = 0;
    ids->count = 0;
}

void ids_free(struct ids *ids)
{
    free(ids->id);
    free(ids->order);
}
