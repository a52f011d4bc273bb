/*
 * Changes imports: see imports.h.
 *
 * A module's imports are words that its relocations name: .got.plt for calls, .got for addresses,
 * and tables of functions in its data (System V ABI, "Relocation"). A word is changed only if it
 * holds the real function's address, or points into its own module because the loader has not
 * resolved it yet. Anything else that the program has put there stays.
 *
 * After relocation the loader makes some of these words read-only (PT_GNU_RELRO). They are made
 * writable for the change. The loader's lock must be held, or the loader might be relocating the
 * module.
 */
#include "preload/imports.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/preload.h"

#if defined(__x86_64__)
#define CALLED_IMPORT  R_X86_64_JUMP_SLOT
#define ADDRESS_IMPORT R_X86_64_GLOB_DAT
#define DATA_IMPORT    R_X86_64_64
#else
#define CALLED_IMPORT  R_AARCH64_JUMP_SLOT
#define ADDRESS_IMPORT R_AARCH64_GLOB_DAT
#define DATA_IMPORT    R_AARCH64_ABS64
#endif

/* MARK: Wrappers by name */

static const struct {
    const char *name;
    size_t offset; /* of the real function in struct real */
} rows[] = {
#define SYMBOL(name) {#name, offsetof(struct real, name)},
#define CALLED(name)
#include "preload/symbols.def"
};

#define ROWS (sizeof rows / sizeof rows[0])

/* Open addressing by the name's hash; 0: free, else a row's index + 1. */
#define TABLE 1024
static uint16_t table[TABLE];
static uintptr_t wrappers[ROWS];
static bool prepared;

_Static_assert(ROWS < TABLE / 2, "few collisions");

static uint32_t hash(const char *name)
{
    uint32_t value = 2166136261u; /* FNV-1a */
    for (; *name; name++)
        value = (value ^ (uint8_t)*name) * 16777619u;
    return value % TABLE;
}

bool imports_prepare(void)
{
    for (size_t i = 0; i < ROWS && !prepared; i++) {
        uint32_t at = hash(rows[i].name);
        wrappers[i] = (uintptr_t)real_wrapper(rows[i].name);
        if (!wrappers[i])
            return false;
        while (table[at])
            at = (at + 1) % TABLE;
        table[at] = (uint16_t)(i + 1);
    }
    prepared = true;
    return true;
}

/* Returns the row of a name; ROWS: none. */
static size_t find_row(const char *name)
{
    for (uint32_t at = hash(name); table[at]; at = (at + 1) % TABLE) {
        if (strcmp(rows[table[at] - 1].name, name) == 0)
            return table[at] - 1u;
    }
    return ROWS;
}

/* 0: not known. */
static uintptr_t real_of(size_t row)
{
    return (uintptr_t) * (void **)((char *)&real + rows[row].offset);
}

/* MARK: A module */

struct range {
    uintptr_t low, high;
};

static bool is_in(struct range range, uintptr_t address)
{
    return address >= range.low && address < range.high;
}

struct module {
    uintptr_t base;
    struct range all;  /* of its segments */
    struct range kept; /* read-only after relocation; empty: nothing */
    const Elf64_Dyn *dynamic;
    const Elf64_Sym *symbols;
    const char *names;
    size_t names_size;
    const uint16_t *versions; /* of the symbols; NULL: none */
    const Elf64_Verneed *needed;
    size_t needed_count;
};

struct walk {
    bool to_wrappers;
    uint32_t changed;
    uintptr_t own; /* an address in this library */
    size_t page;
};

/* glibc has turned these into addresses; other loaders leave offsets. */
static const void *address_of(const struct module *m, Elf64_Addr value)
{
    return (const void *)(value < m->base ? m->base + value : value);
}

static bool read_dynamic(struct module *m)
{
    for (const Elf64_Dyn *d = m->dynamic; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB:
            m->symbols = address_of(m, d->d_un.d_ptr);
            break;
        case DT_STRTAB:
            m->names = address_of(m, d->d_un.d_ptr);
            break;
        case DT_STRSZ:
            m->names_size = d->d_un.d_val;
            break;
        case DT_VERSYM:
            m->versions = address_of(m, d->d_un.d_ptr);
            break;
        case DT_VERNEED:
            m->needed = address_of(m, d->d_un.d_ptr);
            break;
        case DT_VERNEEDNUM:
            m->needed_count = d->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return m->symbols && m->names;
}

static bool read_module(struct module *m, const struct dl_phdr_info *info, size_t page)
{
    *m = (struct module){.base = info->dlpi_addr, .all = {UINTPTR_MAX, 0}};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *p = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + p->p_vaddr, high = low + p->p_memsz;
        if (p->p_type == PT_LOAD && low < m->all.low)
            m->all.low = low;
        if (p->p_type == PT_LOAD && high > m->all.high)
            m->all.high = high;
        if (p->p_type == PT_GNU_RELRO)
            m->kept = (struct range){low & ~(page - 1), high & ~(page - 1)};
        if (p->p_type == PT_DYNAMIC)
            m->dynamic = (const void *)low;
    }
    return m->dynamic && read_dynamic(m);
}

/* MARK: Versions */

/* Returns the symbol version that a module requires; "": any. */
static const char *version_of(const struct module *m, size_t symbol)
{
    unsigned wanted = m->versions ? m->versions[symbol] & 0x7fffu : 0;
    const char *at = (const char *)m->needed;
    for (size_t i = 0; wanted > 1 && at && i < m->needed_count; i++) {
        const Elf64_Verneed *file = (const void *)at;
        const char *entry = at + file->vn_aux;
        for (unsigned j = 0; j < file->vn_cnt; j++) {
            const Elf64_Vernaux *version = (const void *)entry;
            if (version->vna_other == wanted && version->vna_name < m->names_size)
                return m->names + version->vna_name;
            entry += version->vna_next;
        }
        at += file->vn_next;
    }
    return "";
}

/* Whether an unresolved import will be the real function, not an older version of the same name. */
static bool will_be_real(const struct module *m, size_t symbol, const char *name)
{
    return m->symbols[symbol].st_shndx == SHN_UNDEF &&
           (strncmp(name, "pthread_cond_", 13) != 0 ||
            strcmp(version_of(m, symbol), "GLIBC_2.2.5") != 0);
}

/* MARK: Imports */

static void change(struct walk *walk, uintptr_t *at, uintptr_t from, uintptr_t to)
{
    if (__atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        walk->changed++;
}

static void look_at_import(struct walk *walk, const struct module *m, const Elf64_Rela *import)
{
    unsigned long type = ELF64_R_TYPE(import->r_info);
    size_t symbol = ELF64_R_SYM(import->r_info), row;
    uintptr_t *at = (uintptr_t *)(m->base + import->r_offset), now, its;
    if ((type != CALLED_IMPORT && type != ADDRESS_IMPORT && type != DATA_IMPORT) ||
        (type == DATA_IMPORT && import->r_addend != 0) ||
        m->symbols[symbol].st_name >= m->names_size || !is_in(m->all, (uintptr_t)at))
        return;
    const char *name = m->names + m->symbols[symbol].st_name;
    row = find_row(name);
    if (row == ROWS || (its = real_of(row)) == 0)
        return;
    now = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (!walk->to_wrappers)
        change(walk, at, wrappers[row], its);
    else if (now == its ||
             (type == CALLED_IMPORT && is_in(m->all, now) && will_be_real(m, symbol, name)))
        change(walk, at, now, wrappers[row]);
}

static void look_at_imports(struct walk *walk, const struct module *m, int table_tag, int size_tag)
{
    const Elf64_Rela *imports = NULL;
    size_t size = 0;
    for (const Elf64_Dyn *d = m->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == table_tag)
            imports = address_of(m, d->d_un.d_ptr);
        if (d->d_tag == size_tag)
            size = d->d_un.d_val;
    }
    for (size_t i = 0; imports && i < size / sizeof *imports; i++)
        look_at_import(walk, m, &imports[i]);
}

/* The C library and the loader call their own functions directly. */
static bool is_passed_over(const struct walk *walk, const struct module *m)
{
    return is_in(m->all, walk->own) || is_in(m->all, (uintptr_t)real.syscall) ||
           m->base == getauxval(AT_BASE) || m->base == getauxval(AT_SYSINFO_EHDR);
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct walk *walk = context;
    struct module m;
    (void)size;
    if (!read_module(&m, info, walk->page) || is_passed_over(walk, &m))
        return 0;
    size_t kept = m.kept.high > m.kept.low ? m.kept.high - m.kept.low : 0;
    if (kept && mprotect((void *)m.kept.low, kept, PROT_READ | PROT_WRITE) != 0)
        return 0;
    look_at_imports(walk, &m, DT_JMPREL, DT_PLTRELSZ);
    look_at_imports(walk, &m, DT_RELA, DT_RELASZ);
    if (kept)
        (void)mprotect((void *)m.kept.low, kept, PROT_READ);
    return 0;
}

static uint32_t walk_modules(bool to_wrappers)
{
    struct walk walk = {.to_wrappers = to_wrappers,
                        .own = (uintptr_t)&table,
                        .page = (size_t)sysconf(_SC_PAGESIZE)};
    (void)dl_iterate_phdr(look_at_module, &walk);
    return walk.changed;
}

uint32_t imports_wrap(void)
{
    return walk_modules(true);
}

uint32_t imports_unwrap(void)
{
    return walk_modules(false);
}
