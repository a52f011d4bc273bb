/*
 * Reads unwind rules from .eh_frame: see unwind_cfi.h.
 *
 * .eh_frame_hdr has a sorted table { function's start, FDE }. An FDE is a program that changes a
 * row of rules as the location moves through the function's code; its CIE has the initial
 * instructions, which many functions share. The program is run up to the PC:
 *
 *      length | CIE pointer | start | size | augmentation | program        FDE
 *      length | 0 | version | letters | alignments | ... | program         CIE
 */
#include "host/unwind_cfi.h"

#include <string.h>

#include "base/search.h"

/* Registers by their numbers in DWARF. */
enum { REG_FP = 6, REG_SP = 7, REG_RA = 16 };

/* Encodings of pointers: the lower four bits are the size, the next three the base address. */
enum {
    PE_ABSOLUTE = 0x00,
    PE_PC_RELATIVE = 0x10,
    PE_DATA_RELATIVE = 0x30,
    PE_SIZE_MASK = 0x0f,
    PE_BASE_MASK = 0x70,
    PE_SDATA4 = 0x0b,
};

#define MAX_REMEMBERED 8          /* compilers nest one or two */
#define MAX_OPERANDS   8          /* of an expression */
#define MAX_ENTRY      (1u << 20) /* bytes of a CIE or FDE */
/* Limit for a CIE that is read again for each of its FDEs; compilers write about 30 bytes. */
#define MAX_LISTED_CIE 256

/* MARK: Bytes */

/* A reader past its end, or after an invalid value, returns zeros and is marked as bad. */
struct reader {
    uintptr_t at, end;
    bool bad;
};

static void fail(struct reader *r)
{
    r->bad = true;
    r->at = r->end;
}

static uint64_t take(struct reader *r, size_t size)
{
    uint64_t value = 0;
    if (r->end - r->at < size) {
        fail(r);
        return 0;
    }
    memcpy(&value, (const void *)r->at, size);
    r->at += size;
    return value;
}

static uint64_t take_signed(struct reader *r, size_t size)
{
    unsigned shift = 64 - 8 * (unsigned)size;
    return (uint64_t)((int64_t)(take(r, size) << shift) >> shift);
}

static uint64_t take_leb(struct reader *r, bool is_signed)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(r, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && byte & 0x40 && shift < 64)
        value |= ~(uint64_t)0 << shift;
    return value;
}

static uint64_t take_uleb(struct reader *r)
{
    return take_leb(r, false);
}

static uint64_t take_sleb(struct reader *r)
{
    return take_leb(r, true);
}

/* Returns a reader of the next `size` bytes, and skips them. */
static struct reader take_block(struct reader *r, uint64_t size)
{
    struct reader block = {r->at, r->at, false};
    if (r->end - r->at < size)
        fail(r);
    else
        r->at = block.end = r->at + (uintptr_t)size;
    return block;
}

static uint64_t take_sized(struct reader *r, unsigned encoding)
{
    switch (encoding & PE_SIZE_MASK) {
    case 0x00:
    case 0x04:
    case 0x0c:
        return take(r, 8);
    case 0x01:
        return take_uleb(r);
    case 0x02:
        return take(r, 2);
    case 0x03:
        return take(r, 4);
    case 0x09:
        return take_sleb(r);
    case 0x0a:
        return take_signed(r, 2);
    case PE_SDATA4:
        return take_signed(r, 4);
    default:
        fail(r);
        return 0;
    }
}

static uintptr_t take_pointer(struct reader *r, unsigned encoding, uintptr_t data)
{
    uintptr_t here = r->at, value = (uintptr_t)take_sized(r, encoding);
    switch (encoding & ~(unsigned)PE_SIZE_MASK) {
    case PE_ABSOLUTE:
        return value;
    case PE_PC_RELATIVE:
        return here + value;
    case PE_DATA_RELATIVE:
        return data + value;
    default: /* indirect and other encodings are not used for code */
        fail(r);
        return 0;
    }
}

/* MARK: Expressions */

/* A constant, a register plus an offset, or the word at such an address plus an offset. */
struct term {
    enum { CONSTANT, OF_SP, OF_FP, OTHER } base;
    bool indirect;
    uint64_t inner, offset;
};

static const struct term other = {.base = OTHER};

static struct term of_register(uint64_t reg, uint64_t offset)
{
    struct term term = {reg == REG_SP ? OF_SP : reg == REG_FP ? OF_FP : OTHER, false, 0, offset};
    return term;
}

static struct term binary(unsigned op, struct term a, struct term b)
{
    if (b.base != CONSTANT) {
        struct term swapped = a;
        if (op != 0x22 || a.base != CONSTANT)
            return other;
        a = b;
        b = swapped;
    }
    switch (op) {
    case 0x1c: /* minus */
        a.offset -= b.offset;
        return a;
    case 0x22: /* plus */
        a.offset += b.offset;
        return a;
    }
    if (a.base != CONSTANT)
        return other;
    switch (op) {
    case 0x1a: /* and */
        a.offset &= b.offset;
        return a;
    case 0x21: /* or */
        a.offset |= b.offset;
        return a;
    case 0x24: /* shl */
        a.offset = b.offset < 64 ? a.offset << b.offset : 0;
        return a;
    case 0x2a: /* ge */
        a.offset = (int64_t)a.offset >= (int64_t)b.offset;
        return a;
    default:
        return other;
    }
}

static struct term dereferenced(struct term a)
{
    if (a.base == CONSTANT || a.base == OTHER || a.indirect)
        return other;
    a.indirect = true;
    a.inner = a.offset;
    a.offset = 0;
    return a;
}

/* Executes an operation that only pushes a value; false if it is another one. */
static bool push_operand(struct reader *r, unsigned op, uintptr_t pc, struct term *term)
{
    *term = (struct term){.base = CONSTANT};
    if (op >= 0x30 && op <= 0x4f) { /* lit0 to lit31 */
        term->offset = op - 0x30;
    } else if (op >= 0x70 && op <= 0x8f) { /* breg0 to breg31 */
        uint64_t offset = take_sleb(r);
        if (op - 0x70 == REG_RA)
            term->offset = pc + offset;
        else
            *term = of_register(op - 0x70, offset);
    } else if (op >= 0x08 && op <= 0x0f) { /* const1u, const1s to const8s */
        size_t size = (size_t)1 << ((op - 0x08) / 2);
        term->offset = op & 1 ? take_signed(r, size) : take(r, size);
    } else if (op == 0x10) { /* constu */
        term->offset = take_uleb(r);
    } else if (op == 0x11) { /* consts */
        term->offset = take_sleb(r);
    } else {
        return false;
    }
    return true;
}

/* Returns the value of an expression that begins with an empty stack, at `pc`. */
static struct term evaluate(struct reader r, uintptr_t pc)
{
    struct term stack[MAX_OPERANDS];
    size_t depth = 0;
    while (r.at < r.end) {
        unsigned op = (unsigned)take(&r, 1);
        if (depth < MAX_OPERANDS && push_operand(&r, op, pc, &stack[depth])) {
            depth++;
        } else if (op == 0x06 && depth > 0) { /* deref */
            stack[depth - 1] = dereferenced(stack[depth - 1]);
        } else if (op == 0x23 && depth > 0) { /* plus_uconst */
            stack[depth - 1].offset += take_uleb(&r);
        } else if (depth > 1) {
            depth--;
            stack[depth - 1] = binary(op, stack[depth - 1], stack[depth]);
        } else {
            return other;
        }
    }
    return !r.bad && depth > 0 ? stack[depth - 1] : other;
}

/* MARK: The program */

/* Where the caller's value of a register is saved. */
enum place { SAME, UNDEFINED, AT_END, AT_FP, ELSEWHERE };

struct column {
    enum place how;
    uint64_t offset; /* of AT_END and AT_FP */
};

/* The rules at one PC. */
struct row {
    struct term end;
    struct column fp, sp, ra, unused;
};

struct program {
    uintptr_t pc;       /* that the rule is wanted for */
    uintptr_t location; /* of the current row */
    uint64_t code_align, data_align;
    unsigned encoding; /* of pointers to code */
    struct row row, initial, remembered[MAX_REMEMBERED];
    unsigned depth;
};

static struct column *column(struct row *row, uint64_t reg)
{
    switch (reg) {
    case REG_FP:
        return &row->fp;
    case REG_SP:
        return &row->sp;
    case REG_RA:
        return &row->ra;
    default:
        return &row->unused;
    }
}

static void set(struct program *p, uint64_t reg, enum place how, uint64_t offset)
{
    struct column *c = column(&p->row, reg);
    c->how = how;
    c->offset = offset;
}

static void set_expression(struct program *p, struct reader *r)
{
    uint64_t reg = take_uleb(r);
    struct term at = evaluate(take_block(r, take_uleb(r)), p->pc);
    set(p, reg, at.base == OF_FP && !at.indirect ? AT_FP : ELSEWHERE, at.offset);
}

static void restore(struct program *p, uint64_t reg)
{
    *column(&p->row, reg) = *column(&p->initial, reg);
}

static void remember(struct program *p, struct reader *r)
{
    if (p->depth == MAX_REMEMBERED)
        fail(r);
    else
        p->remembered[p->depth++] = p->row;
}

static void recall(struct program *p, struct reader *r)
{
    if (p->depth == 0)
        fail(r);
    else
        p->row = p->remembered[--p->depth];
}

static void set_end(struct program *p, uint64_t reg, uint64_t offset)
{
    p->row.end = of_register(reg, offset);
}

/* Executes an instruction that changes the frame's end; false if it is another one. */
static bool run_end(struct program *p, struct reader *r, unsigned op)
{
    uint64_t reg;
    switch (op) {
    case 0x0c: /* def_cfa */
        reg = take_uleb(r);
        set_end(p, reg, take_uleb(r));
        return true;
    case 0x0d: /* def_cfa_register */
        set_end(p, take_uleb(r), p->row.end.offset);
        return true;
    case 0x0e: /* def_cfa_offset */
        p->row.end.offset = take_uleb(r);
        return true;
    case 0x0f: /* def_cfa_expression */
        p->row.end = evaluate(take_block(r, take_uleb(r)), p->pc);
        return true;
    case 0x12: /* def_cfa_sf */
        reg = take_uleb(r);
        set_end(p, reg, take_sleb(r) * p->data_align);
        return true;
    case 0x13: /* def_cfa_offset_sf */
        p->row.end.offset = take_sleb(r) * p->data_align;
        return true;
    default:
        return false;
    }
}

/* Executes an instruction that changes where a register is saved. */
static void run_register(struct program *p, struct reader *r, unsigned op)
{
    uint64_t reg;
    switch (op) {
    case 0x05: /* offset_extended */
        reg = take_uleb(r);
        set(p, reg, AT_END, take_uleb(r) * p->data_align);
        break;
    case 0x06: /* restore_extended */
        restore(p, take_uleb(r));
        break;
    case 0x07: /* undefined */
        set(p, take_uleb(r), UNDEFINED, 0);
        break;
    case 0x08: /* same_value */
        set(p, take_uleb(r), SAME, 0);
        break;
    case 0x09: /* register */
    case 0x14: /* val_offset */
    case 0x15: /* val_offset_sf */
        set(p, take_uleb(r), ELSEWHERE, 0);
        (void)take_uleb(r);
        break;
    case 0x0a: /* remember_state */
        remember(p, r);
        break;
    case 0x0b: /* restore_state */
        recall(p, r);
        break;
    case 0x10: /* expression */
        set_expression(p, r);
        break;
    case 0x11: /* offset_extended_sf */
        reg = take_uleb(r);
        set(p, reg, AT_END, take_sleb(r) * p->data_align);
        break;
    case 0x16: /* val_expression */
        set(p, take_uleb(r), ELSEWHERE, 0);
        (void)take_block(r, take_uleb(r));
        break;
    case 0x2e: /* GNU_args_size */
        (void)take_uleb(r);
        break;
    case 0x2f: /* GNU_negative_offset_extended */
        reg = take_uleb(r);
        set(p, reg, AT_END, -take_uleb(r) * p->data_align);
        break;
    default: /* nop, or an instruction that x86-64 does not have */
        if (op != 0)
            fail(r);
    }
}

/* Executes an instruction that advances the location; false if it is another one. */
static bool run_advance(struct program *p, struct reader *r, unsigned op)
{
    if (op == 0x01) /* set_loc */
        p->location = take_pointer(r, p->encoding, 0);
    else if (op >= 0x02 && op <= 0x04) /* advance_loc1, 2, 4 */
        p->location += (uintptr_t)(take(r, (size_t)1 << (op - 0x02)) * p->code_align);
    else
        return false;
    return true;
}

/* Runs the program up to the PC. It terminates, because each instruction takes at least a byte. */
static void run(struct program *p, struct reader *r)
{
    while (r->at < r->end && p->location <= p->pc) {
        unsigned op = (unsigned)take(r, 1), low = op & 0x3f;
        switch (op >> 6) {
        case 1: /* advance_loc */
            p->location += (uintptr_t)(low * p->code_align);
            break;
        case 2: /* offset */
            set(p, low, AT_END, take_uleb(r) * p->data_align);
            break;
        case 3: /* restore */
            restore(p, low);
            break;
        default:
            if (!run_advance(p, r, op) && !run_end(p, r, op))
                run_register(p, r, op);
        }
    }
}

/* MARK: The result */

static bool narrow(uint64_t offset, int32_t *narrowed)
{
    *narrowed = (int32_t)(uint32_t)offset;
    return (uint64_t)(int64_t)*narrowed == offset;
}

static void rule_of_fp(struct cfi_rule *rule, const struct column *fp)
{
    static const enum cfi_fp by_place[] = {
        [SAME] = CFI_FP_SAME,   [UNDEFINED] = CFI_FP_LOST, [AT_END] = CFI_FP_AT_END,
        [AT_FP] = CFI_FP_AT_FP, [ELSEWHERE] = CFI_FP_LOST,
    };
    rule->fp = by_place[fp->how];
    if (!narrow(fp->offset, &rule->fp_offset))
        rule->fp = CFI_FP_LOST;
}

static struct cfi_rule rule_of(const struct row *row)
{
    struct cfi_rule rule = {.kind = CFI_UNKNOWN};
    if (row->ra.how == UNDEFINED) {
        rule.kind = CFI_END;
        return rule;
    }
    if (row->ra.how != AT_END || row->ra.offset != (uint64_t)-8 || row->sp.how != SAME ||
        (row->end.base != OF_SP && row->end.base != OF_FP) ||
        !narrow(row->end.offset, &rule.offset) || !narrow(row->end.inner, &rule.inner))
        return rule;
    rule.kind = CFI_FRAME;
    rule.base = row->end.base == OF_SP ? CFI_SP : CFI_FP;
    rule.indirect = row->end.indirect;
    rule_of_fp(&rule, &row->fp);
    return rule;
}

/* MARK: Entries */

static const struct cfi_range *range_of(const struct cfi_module *module, uintptr_t at)
{
    for (size_t i = 0; i < module->ranges; i++) {
        if (at - module->readable[i].low < module->readable[i].high - module->readable[i].low)
            return &module->readable[i];
    }
    return NULL;
}

bool cfi_is_readable(const struct cfi_module *module, uintptr_t at, size_t size)
{
    const struct cfi_range *range = range_of(module, at);
    return range && range->high - at >= size;
}

/* Returns the CIE or FDE at an address, without its length. */
static struct reader entry_at(const struct cfi_module *module, uintptr_t at)
{
    const struct cfi_range *range = range_of(module, at);
    struct reader r = {at, range ? range->high : at, false};
    uint64_t length = take(&r, 4);
    if (length == 0 || length > MAX_ENTRY || length > r.end - r.at)
        fail(&r);
    else
        r.end = r.at + (uintptr_t)length;
    return r;
}

struct cie {
    struct reader program;
    unsigned encoding;
    uint64_t code_align, data_align;
    bool augmented, signal;
};

/* Reads the augmentation's letters and the data for each. */
static void read_augmentation(struct cie *cie, struct reader *r, struct reader letters)
{
    if (letters.at == letters.end)
        return;
    if (take(&letters, 1) != 'z') {
        fail(r);
        return;
    }
    cie->augmented = true;
    struct reader data = take_block(r, take_uleb(r));
    while (letters.at < letters.end) {
        switch ((char)take(&letters, 1)) {
        case 'R':
            cie->encoding = (unsigned)take(&data, 1);
            break;
        case 'P':
            (void)take_sized(&data, (unsigned)take(&data, 1));
            break;
        case 'L':
            (void)take(&data, 1);
            break;
        case 'S':
            cie->signal = true;
            break;
        default:
            fail(r);
            return;
        }
    }
    if (data.bad)
        fail(r);
}

static bool read_cie(const struct cfi_module *module, uintptr_t at, struct cie *cie)
{
    struct reader r = entry_at(module, at), letters;
    *cie = (struct cie){.encoding = PE_ABSOLUTE};
    if (take(&r, 4) != 0)
        return false;
    uint64_t version = take(&r, 1);
    if (version != 1 && version != 3)
        return false;
    letters = (struct reader){r.at, r.at, false};
    while (take(&r, 1) != 0)
        letters.end = r.at;
    cie->code_align = take_uleb(&r);
    cie->data_align = take_sleb(&r);
    if ((version == 1 ? take(&r, 1) : take_uleb(&r)) != REG_RA)
        return false;
    read_augmentation(cie, &r, letters);
    cie->program = r;
    return !r.bad;
}

static struct cfi_rule read_fde(const struct cfi_module *module, uintptr_t at, uintptr_t pc)
{
    static const struct cfi_rule none = {.kind = CFI_NONE}, signal = {.kind = CFI_SIGNAL};
    struct reader r = entry_at(module, at);
    uintptr_t here = r.at, size;
    struct program p;
    struct cie cie;
    uint64_t back = take(&r, 4);
    if (r.bad || back == 0 || !read_cie(module, here - (uintptr_t)back, &cie))
        return none;
    memset(&p, 0, sizeof p);
    p.location = take_pointer(&r, cie.encoding, 0);
    size = (uintptr_t)take_sized(&r, cie.encoding);
    if (r.bad || pc - p.location >= size)
        return none;
    if (cie.signal)
        return signal;
    if (cie.augmented)
        (void)take_block(&r, take_uleb(&r));
    p.pc = pc;
    p.code_align = cie.code_align;
    p.data_align = cie.data_align;
    p.encoding = cie.encoding;
    p.row.end = other;
    run(&p, &cie.program);
    p.initial = p.row;
    run(&p, &r);
    return r.bad || cie.program.bad ? none : rule_of(&p.row);
}

bool cfi_next(const struct cfi_module *module, uintptr_t *at, uintptr_t *start)
{
    struct reader r = entry_at(module, *at), cie_entry;
    uintptr_t here = r.at;
    struct cie cie;
    uint64_t back = take(&r, 4);
    *start = 0;
    if (r.bad)
        return false;
    *at = r.end;
    cie_entry = entry_at(module, here - (uintptr_t)back);
    if (back != 0 && cie_entry.end - cie_entry.at <= MAX_LISTED_CIE &&
        read_cie(module, here - (uintptr_t)back, &cie)) {
        *start = take_pointer(&r, cie.encoding, 0);
        *start = r.bad ? 0 : *start;
    }
    return true;
}

/* MARK: The table of functions */

/* A row of the table: both relative to the header. */
struct function {
    int32_t start, fde;
};

static struct function function_at(uintptr_t table, size_t i)
{
    struct function f;
    memcpy(&f, (const void *)(table + i * sizeof f), sizeof f);
    return f;
}

/* Returns the FDE of the last function that starts at or before `pc`; 0: none. */
static uintptr_t find_fde(uintptr_t header, uintptr_t table, size_t n, uintptr_t pc)
{
    size_t behind =
        SEARCH(i, 0, n, header + (uintptr_t)(intptr_t)function_at(table, i).start <= pc);
    return behind ? header + (uintptr_t)(intptr_t)function_at(table, behind - 1).fde : 0;
}

struct cfi_rule cfi_find(const struct cfi_module *module, uintptr_t at)
{
    struct cfi_rule none = {.kind = CFI_NONE};
    uintptr_t header = module->header.low, fde;
    struct reader r = {header, module->header.high, false};
    if (take(&r, 1) != 1)
        return none;
    unsigned frame_encoding = (unsigned)take(&r, 1);
    unsigned count_encoding = (unsigned)take(&r, 1);
    unsigned table_encoding = (unsigned)take(&r, 1);
    /* Skips the start of .eh_frame, which only a search without a table needs. */
    (void)take_sized(&r, frame_encoding);
    uint64_t count = take_sized(&r, count_encoding);
    if (r.bad || table_encoding != (PE_DATA_RELATIVE | PE_SDATA4) ||
        count > (r.end - r.at) / sizeof(struct function))
        return none;
    fde = find_fde(header, r.at, (size_t)count, at);
    return fde ? read_fde(module, fde, at) : none;
}
