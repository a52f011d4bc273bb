/*
 * Walks stacks: see unwind.h.
 *
 * The table has a word for each PC looked up so far, with the rule for a step out of its frame:
 *
 *       63          61 60               30 29      28       20 19         3 2    0
 *      | displacement | PC, low 31 bits   | 1 |   saved / 8   | offset / 8 | base |   a plain frame
 *      |              |                   | 0 |            inner           | kind |   anything else
 *
 *      plain:  frame's end = (base ? fp : sp) + offset;  the return address is in the word below it;
 *              the caller's fp is at the end - saved, or, if saved is 8, where the return address is, unchanged
 *
 * A PC's home is one of 2^16 slots, by a multiplication that is a permutation: home and low 31 bits
 * together identify the PC, of 47 bits. The word is in the home or one of the seven next slots, and
 * the displacement is the distance. So each word is self-contained: it is read and written
 * atomically and needs no ordering with other memory.
 *
 * A rule that does not fit into a word (a frame of a megabyte, a frame pointer that is saved far
 * from the frame's end) is read from .eh_frame each time.
 *
 * Reading a module's tables is safe even if another thread calls dlclose: a frame of the module is
 * on this stack, so unloading it would be a bug of the program. A stale value on the stack that
 * looks like a PC is looked up only if the loader has a module there now; that module could be
 * unloaded in the microsecond until its tables are read.
 */
#include "host/unwind.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Reads words of other functions' frames, including ASan's redzones between variables. */
#define READS_STACK __attribute__((no_sanitize("address")))

#define WORD sizeof(uintptr_t)

/* Whether it can be a PC: not in the first page, and not beyond the addresses of user space. */
#define FIRST_CODE ((uintptr_t)4096)
#if UNWIND_HAS_TABLES
#define LAST_CODE ((uintptr_t)0x800000000000)
#else
#define LAST_CODE (UINTPTR_MAX / 4096)
#endif

/* A frame of the walk. */
struct walk {
    uintptr_t pc, sp, fp, end;
};

/* Reads the word at an address that was checked. */
READS_STACK static inline uintptr_t word_at(uintptr_t at)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an address on the stack. */
    return *(const uintptr_t *)at;
}

static inline bool is_code(uintptr_t pc)
{
    return pc - FIRST_CODE < LAST_CODE - FIRST_CODE;
}

/* Whether the word at `at` lies entirely on the rest of the stack. */
static inline bool is_on_stack(const struct walk *w, uintptr_t at)
{
    return at % WORD == 0 && at >= w->sp && at <= w->end - WORD;
}

/* The frame pointer points to { caller's frame pointer, return address }. */
static bool step_frame_pointer(struct walk *w)
{
    uintptr_t at = w->fp, pc;
    if (!is_on_stack(w, at) || !is_on_stack(w, at + WORD))
        return false;
    pc = pc_plain(word_at(at + WORD));
    /* A register with another use mostly points to numbers, or to pointers to the stack. */
    if (pc >= w->sp && pc < w->end)
        return false;
    *w = (struct walk){pc, at + 2 * WORD, word_at(at), w->end};
    return true;
}

#if UNWIND_HAS_TABLES

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "host/unwind_cfi.h"

/* MARK: Rules in a word */

#define PLAIN       ((uint32_t)1 << 29)
#define BASE_FP     ((uint32_t)1)
#define OFFSET_MASK ((uint32_t)0xffff8)
#define SAVED_SHIFT 17
#define SAVED_MASK  ((uint32_t)0xff8)
#define KIND_MASK   ((uint32_t)7)
#define INNER_SHIFT 3
#define INNER_LIMIT ((int32_t)1 << 25)
#define RULE_BITS   30
#define NO_RULE     ((uint32_t)0)

/* Rules that are not plain frames. */
enum kind {
    KIND_REALIGNED = 1, /* gcc's: the word at fp + inner is the end; the caller's fp is at fp */
    KIND_FRAME_POINTER, /* the module has no entry for the PC */
    KIND_SIGNAL,
    KIND_END, /* or a rule that cannot be expressed */
};

static inline uint32_t saved_of(uint32_t rule)
{
    return rule >> SAVED_SHIFT & SAVED_MASK;
}

/* Returns a frame's rule if it has the plain form, else NO_RULE. */
static uint32_t pack_plain(const struct cfi_rule *rule)
{
    int32_t saved = rule->fp == CFI_FP_SAME ? 8 : -rule->fp_offset;
    if (rule->indirect || rule->offset < 8 || (uint32_t)rule->offset & ~OFFSET_MASK)
        return NO_RULE;
    if (rule->fp == CFI_FP_AT_END ? saved < 16 : rule->fp != CFI_FP_SAME)
        return NO_RULE;
    if ((uint32_t)saved & ~SAVED_MASK)
        return NO_RULE;
    return PLAIN | (uint32_t)saved << SAVED_SHIFT | (uint32_t)rule->offset |
           (rule->base == CFI_FP ? BASE_FP : 0);
}

static uint32_t pack_realigned(const struct cfi_rule *rule)
{
    if (!rule->indirect || rule->base != CFI_FP || rule->offset != 0 || rule->fp != CFI_FP_AT_FP ||
        rule->fp_offset != 0 || rule->inner >= INNER_LIMIT || rule->inner < -INNER_LIMIT)
        return NO_RULE;
    return (uint32_t)(rule->inner + INNER_LIMIT) << INNER_SHIFT | KIND_REALIGNED;
}

static int32_t inner_of(uint32_t rule)
{
    return (int32_t)((rule & (PLAIN - 1)) >> INNER_SHIFT) - INNER_LIMIT;
}

static uint32_t pack(const struct cfi_rule *rule)
{
    uint32_t packed;
    switch (rule->kind) {
    case CFI_NONE:
        return KIND_FRAME_POINTER;
    case CFI_FRAME:
        packed = pack_plain(rule);
        return packed ? packed : pack_realigned(rule);
    case CFI_SIGNAL:
        return KIND_SIGNAL;
    default:
        return KIND_END;
    }
}

/* MARK: The table */

#define SLOT_BITS 16
#define SLOTS     ((size_t)1 << SLOT_BITS)
#define PROBES    8
/* Odd, times 2^17: the upper 47 bits of the product are a permutation of the 47 bits of a PC. */
#define MULTIPLIER ((uint64_t)0x9e3779b97f4b5 << 17)

/* Atomic. Unused pages take no memory; all but the last slots are on pages of the table's own. */
static uint64_t slots[SLOTS + PROBES] __attribute__((aligned(4096)));

/* Atomic: how often unwind_forget was called. */
static uint64_t forgotten;

static inline size_t home_of(uintptr_t pc)
{
    return (size_t)(pc * MULTIPLIER >> (64 - SLOT_BITS));
}

/* Returns the bits above the rule in this PC's word, if it is in its home. */
static inline uint64_t tag_of(uintptr_t pc)
{
    return (uint64_t)pc << (RULE_BITS + 3) >> 3;
}

/* Returns the slot's word minus the tag: the rule, if below 2^30. */
static inline uint64_t look(size_t home, uint64_t tag, unsigned displacement)
{
    /* Relaxed: each word is self-contained. */
    uint64_t word = __atomic_load_n(&slots[home + displacement], __ATOMIC_RELAXED);
    return word ^ (tag | (uint64_t)displacement << 61);
}

static uint32_t find_rule(uintptr_t pc)
{
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t rule = look(home_of(pc), tag_of(pc), i);
        if (rule >> RULE_BITS == 0 && rule != NO_RULE)
            return (uint32_t)rule;
    }
    return NO_RULE;
}

/*
 * Stores a rule in a free slot, or else in the last slot that it may be in: the rule that was there
 * is read from .eh_frame again when it is needed. If two threads use the same slot, the later word
 * remains.
 *
 * `since` is the value of `forgotten` before the module was read. The store, the load after it, and
 * unwind_forget's accesses are sequentially consistent. If unwind_forget erases the slot before the
 * word is stored, it has counted before that, the load at the end sees the count, and the word is
 * removed here. If it erases the slot later, the word goes with it. Either way, no rule remains
 * that was read before.
 */
static void keep_rule(uintptr_t pc, uint32_t rule, uint64_t since)
{
    size_t home = home_of(pc);
    unsigned i = 0;
    while (i < PROBES - 1 && __atomic_load_n(&slots[home + i], __ATOMIC_RELAXED) != 0)
        i++;
    uint64_t word = (tag_of(pc) | (uint64_t)i << 61) | rule;
    __atomic_store_n(&slots[home + i], word, __ATOMIC_SEQ_CST);
    if (unlikely(__atomic_load_n(&forgotten, __ATOMIC_SEQ_CST) != since))
        (void)__atomic_compare_exchange_n(&slots[home + i], &word, 0, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED);
}

static void erase(size_t first)
{
    for (size_t i = first; i < SLOTS + PROBES; i++) {
        if (__atomic_load_n(&slots[i], __ATOMIC_SEQ_CST) != 0)
            __atomic_store_n(&slots[i], 0, __ATOMIC_SEQ_CST);
    }
}

/*
 * The kernel takes a page from all CPUs at once: a word is either stored before that and vanishes
 * with the page, or stored in the new page, after the count. Pages locked by mlockall cannot be
 * given back.
 */
void unwind_forget(void)
{
    int old_errno = errno;
    __atomic_fetch_add(&forgotten, 1, __ATOMIC_SEQ_CST);
    erase(madvise(slots, SLOTS * sizeof slots[0], MADV_DONTNEED) == 0 ? SLOTS : 0);
    errno = old_errno;
}

/* MARK: Modules */

/* Fills in an empty module. */
static void describe(struct cfi_module *module, uintptr_t bias, const ElfW(Phdr) * headers,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uintptr_t low = bias + headers[i].p_vaddr;
        struct cfi_range range = {low, low + headers[i].p_memsz};
        if (headers[i].p_type == PT_GNU_EH_FRAME)
            module->header = range;
        else if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_R &&
                 range.high > range.low && module->ranges < CFI_MAX_RANGES)
            module->readable[module->ranges++] = range;
    }
    if (!cfi_is_readable(module, module->header.low, module->header.high - module->header.low))
        module->header.high = module->header.low;
}

#if defined(DLFO_STRUCT_HAS_EH_DBASE) && !defined(UNWIND_WITHOUT_FIND_OBJECT)
#pragma weak _dl_find_object
#define HAVE_FIND_OBJECT (_dl_find_object != NULL)

/*
 * Finds the program headers of a mapping. The kernel passes the address of the program's own; of a
 * library the first page is mapped, and has the ELF header with the layout of all linkers.
 */
static const ElfW(Phdr) * headers_of(const struct dl_find_object *found, size_t *n)
{
    uintptr_t start = (uintptr_t)found->dlfo_map_start, end = (uintptr_t)found->dlfo_map_end;
    uintptr_t own = (uintptr_t)getauxval(AT_PHDR);
    const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)start;
    if (own >= start && own < end) {
        *n = getauxval(AT_PHNUM);
        return (const ElfW(Phdr) *)own;
    }
    if (start % 4096 != 0 || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
        elf->e_phentsize != sizeof(ElfW(Phdr)) || elf->e_phoff > 4096 ||
        elf->e_phnum > (4096 - elf->e_phoff) / sizeof(ElfW(Phdr)))
        return NULL;
    *n = elf->e_phnum;
    return (const ElfW(Phdr) *)(start + elf->e_phoff);
}

/* Takes no lock: may be called in a signal handler. */
static bool find_object(uintptr_t at, struct cfi_module *module)
{
    struct dl_find_object found;
    const ElfW(Phdr) * headers;
    size_t n;
    if (_dl_find_object((void *)at, &found) != 0)
        return false;
    headers = headers_of(&found, &n);
    if (!headers)
        return false;
    describe(module, (uintptr_t)found.dlfo_link_map->l_addr, headers, n);
    return true;
}
#else
#define HAVE_FIND_OBJECT 0

static bool find_object(uintptr_t at, struct cfi_module *module)
{
    (void)at;
    (void)module;
    return false;
}
#endif

struct wanted {
    uintptr_t at;
    struct cfi_module *module;
};

static bool covers(const struct dl_phdr_info *info, uintptr_t at)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && at - info->dlpi_addr - header->p_vaddr < header->p_memsz)
            return true;
    }
    return false;
}

static int see_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct wanted *wanted = context;
    (void)size;
    if (!covers(info, wanted->at))
        return 0;
    describe(wanted->module, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
    return 1;
}

static bool find_module(uintptr_t at, struct cfi_module *module)
{
    struct wanted wanted = {at, module};
    return HAVE_FIND_OBJECT ? find_object(at, module) : dl_iterate_phdr(see_module, &wanted) != 0;
}

/* MARK: A PC's first time */

/* mov $SYS_rt_sigreturn, %rax; syscall: handlers return here. Debuggers do the same check. */
static const unsigned char sigreturn[9] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

static bool is_sigreturn(const struct cfi_module *module, uintptr_t at)
{
    return cfi_is_readable(module, at, sizeof sigreturn) &&
           memcmp((const void *)at, sigreturn, sizeof sigreturn) == 0;
}

/* The PC is a return address to it, or was interrupted at one of its two instructions. */
static bool is_in_sigreturn(const struct cfi_module *module, uintptr_t pc)
{
    return is_sigreturn(module, pc) || is_sigreturn(module, pc - 1) || is_sigreturn(module, pc - 8);
}

/* Returns the rule, and keeps it in the table if it fits into a word. */
static struct cfi_rule read_rule(uintptr_t pc)
{
    /* Loaded before the module is read; pairs with unwind_forget's increment: see keep_rule. */
    uint64_t since = __atomic_load_n(&forgotten, __ATOMIC_SEQ_CST);
    struct cfi_rule rule = {.kind = CFI_NONE};
    struct cfi_module module = {.ranges = 0};
    /* No module: generated code. Its rule is not kept, because the code may disappear at any
     * time. */
    if (!find_module(pc - 1, &module))
        return rule;
    rule = cfi_find(&module, pc - 1);
    if (rule.kind == CFI_SIGNAL && !is_in_sigreturn(&module, pc))
        rule.kind = CFI_UNKNOWN;
    uint32_t packed = pack(&rule);
    if (packed != NO_RULE)
        keep_rule(pc, packed, since);
    return rule;
}

/* MARK: Steps */

static bool step_realigned(struct walk *w, int32_t inner)
{
    uintptr_t at = w->fp + (uintptr_t)(intptr_t)inner, end;
    if (!is_on_stack(w, at) || !is_on_stack(w, w->fp))
        return false;
    end = word_at(at);
    if (!is_on_stack(w, end - WORD))
        return false;
    *w = (struct walk){word_at(end - WORD), end, word_at(w->fp), w->end};
    return true;
}

/* The interrupted registers come after the return address that the handler popped. */
static bool step_signal(struct walk *w)
{
    const ucontext_t *context = (const ucontext_t *)w->sp;
    const greg_t *regs = context->uc_mcontext.gregs;
    if (!is_on_stack(w, w->sp) || !is_on_stack(w, (uintptr_t)&regs[REG_RIP]))
        return false;
    uintptr_t sp = word_at((uintptr_t)&regs[REG_RSP]);
    w->fp = word_at((uintptr_t)&regs[REG_RBP]);
    w->pc = word_at((uintptr_t)&regs[REG_RIP]) + 1;
    /* If the interrupted code ran on another stack, only its PC is known. */
    w->sp = is_on_stack(w, sp) ? sp : w->end;
    return true;
}

static inline uintptr_t end_of(const struct walk *w, uint32_t rule)
{
    return (rule & BASE_FP ? w->fp : w->sp) + (rule & OFFSET_MASK);
}

/*
 * At the end of a function the tables may still describe the saved frame pointer after it was
 * popped: the word is then no longer on the stack, and the register has the value.
 */
static bool step_popped(struct walk *w, uint32_t rule)
{
    uintptr_t end = end_of(w, rule);
    if (!is_on_stack(w, end - WORD))
        return false;
    w->pc = word_at(end - WORD);
    w->sp = end;
    return true;
}

/* The most common step: see the table's layout. If it fails, the walk is unchanged. */
READS_STACK static inline bool step_plain(struct walk *w, uint32_t rule)
{
    uintptr_t end = end_of(w, rule), fp;
    uint32_t saved = saved_of(rule);
    /* Reads only [end - saved, end), and saved is at least 8, so the frame's end increases. */
    if (unlikely(end > w->end || end < w->sp + saved || end % WORD != 0))
        return false;
    fp = *(const uintptr_t *)(end - saved);
    w->pc = *(const uintptr_t *)(end - WORD);
    w->fp = saved == WORD ? w->fp : fp;
    w->sp = end;
    return true;
}

/* A step out of any frame, by its complete rule. For a popped word see step_popped. */
static bool step_frame(struct walk *w, const struct cfi_rule *rule)
{
    uintptr_t at = rule->base == CFI_FP ? w->fp : w->sp, end, saved;
    if (rule->indirect) {
        at += (uintptr_t)(intptr_t)rule->inner;
        if (!is_on_stack(w, at))
            return false;
        at = word_at(at);
    }
    end = at + (uintptr_t)(intptr_t)rule->offset;
    if (!is_on_stack(w, end - WORD))
        return false;
    saved = (rule->fp == CFI_FP_AT_FP ? w->fp : end) + (uintptr_t)(intptr_t)rule->fp_offset;
    if (rule->fp == CFI_FP_LOST)
        w->fp = 0;
    else if (rule->fp != CFI_FP_SAME && is_on_stack(w, saved))
        w->fp = word_at(saved);
    w->pc = word_at(end - WORD);
    w->sp = end;
    return true;
}

/* A step for a PC that is not in the table. */
__attribute__((noinline, cold)) static bool step_unknown(struct walk *w)
{
    struct cfi_rule rule = read_rule(w->pc);
    switch (rule.kind) {
    case CFI_NONE:
        return step_frame_pointer(w);
    case CFI_FRAME:
        return step_frame(w, &rule);
    case CFI_SIGNAL:
        return step_signal(w);
    default:
        return false;
    }
}

/* A step if the word in the PC's home is not this PC's. */
__attribute__((noinline, cold)) static bool step_other(struct walk *w)
{
    uint32_t rule = find_rule(w->pc);
    if (rule == NO_RULE)
        return step_unknown(w);
    if (rule & PLAIN)
        return step_plain(w, rule) || step_popped(w, rule);
    switch (rule & KIND_MASK) {
    case KIND_REALIGNED:
        return step_realigned(w, inner_of(rule));
    case KIND_FRAME_POINTER:
        return step_frame_pointer(w);
    case KIND_SIGNAL:
        return step_signal(w);
    default:
        return false;
    }
}

/*
 * Each step depends on the one before: the PC, a multiplication, the table's word, the frame's end,
 * the next PC. That takes about 17 cycles if the table is in the first-level cache. The base is
 * selected without a branch.
 */
static inline bool step(struct walk *w)
{
    uint64_t word = __atomic_load_n(&slots[home_of(w->pc)], __ATOMIC_RELAXED); /* as in look() */
    uintptr_t pc = w->pc;
    if (likely((word ^ tag_of(pc)) >> (RULE_BITS - 1) == 1) &&
        likely(step_plain(w, (uint32_t)word)))
        return true;
    /*
     * A copy, so that the walk can stay in registers. The PC gets a register of its own: otherwise
     * gcc keeps it with the stack pointer in a vector for this copy, which slows down every step
     * above.
     */
    __asm__("" : "+r"(pc));
    struct walk copy = {pc, w->sp, w->fp, w->end};
    bool more = step_other(&copy);
    *w = copy;
    return more;
}

#elif defined(__aarch64__) || defined(__i386__)

static inline bool step(struct walk *w)
{
    return step_frame_pointer(w);
}

void unwind_forget(void)
{
}

#else

static inline bool step(struct walk *w)
{
    (void)w;
    (void)step_frame_pointer;
    return false;
}

void unwind_forget(void)
{
}

#endif

/* MARK: The walk */

size_t unwind_stack(const struct unwind_start *start, uintptr_t stack_end, uintptr_t *pcs,
                    size_t max)
{
    struct walk w = {start->pc, start->sp, start->fp, stack_end & -WORD};
    size_t n = 0;
    if (max == 0)
        return 0;
    pcs[n++] = w.pc;
    if (w.sp % WORD != 0 || w.sp >= w.end || !is_code(w.pc))
        return n;
    while (n < max && step(&w)) {
        if (unlikely(!is_code(w.pc)))
            break;
        pcs[n++] = w.pc;
    }
    return n;
}
