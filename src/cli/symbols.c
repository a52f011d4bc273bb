/*
 * Symbols through libelf and libdw: functions from the symbol table, lines from DWARF. Both are
 * indexed once, sorted by address, so that a look-up is two binary searches; libdw's own search
 * wants .debug_aranges, which Go's linker does not write.
 *
 * All strings belong to libelf or libdw and live as long as the struct.
 */
#include "cli/symbols.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Addresses [low, high) of a function or of a compilation unit. */
struct span {
    uint64_t low, high;
    const char *name; /* of functions */
    Dwarf_Die unit;   /* of units */
};

struct spans {
    struct span *list;
    size_t count, capacity;
};

struct symbols {
    int fd;
    Elf *elf;
    Dwarf *dwarf; /* NULL: no lines */
    struct spans functions, units;
};

static bool spans_add(struct spans *spans, struct span span)
{
    if (span.high <= span.low)
        return true;
    if (spans->count == spans->capacity) {
        size_t wanted = spans->capacity ? spans->capacity * 2 : 256;
        struct span *grown = reallocarray(spans->list, wanted, sizeof *grown);
        if (!grown)
            return false;
        spans->list = grown;
        spans->capacity = wanted;
    }
    spans->list[spans->count++] = span;
    return true;
}

static int span_order(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

static void spans_sort(struct spans *spans)
{
    if (spans->count > 0)
        qsort(spans->list, spans->count, sizeof *spans->list, span_order);
}

/* The span around `pc`; NULL if there is none. */
static struct span *spans_find(struct spans *spans, uint64_t pc)
{
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->list[middle].low <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && pc < spans->list[low - 1].high ? &spans->list[low - 1] : NULL;
}

static bool load_functions(struct symbols *symbols)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(symbols->elf, section)) != NULL) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB ||
            header.sh_entsize == 0)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t count = data ? data->d_size / header.sh_entsize : 0;
        for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
            GElf_Sym symbol;
            if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
                continue;
            const char *name = elf_strptr(symbols->elf, header.sh_link, symbol.st_name);
            struct span span = {.low = symbol.st_value, .name = name};
            span.high = symbol.st_value + symbol.st_size;
            if (name && !spans_add(&symbols->functions, span))
                return false;
        }
    }
    return true;
}

static bool load_unit(struct symbols *symbols, Dwarf_Die *die)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0)
        if (!spans_add(&symbols->units, (struct span){.low = low, .high = high, .unit = *die}))
            return false;
    return true;
}

static bool load_units(struct symbols *symbols)
{
    symbols->dwarf = dwarf_begin_elf(symbols->elf, DWARF_C_READ, NULL);
    if (!symbols->dwarf)
        return true;
    Dwarf_Off at = 0, next;
    size_t header_size;
    while (dwarf_nextcu(symbols->dwarf, at, &next, &header_size, NULL, NULL, NULL) == 0) {
        Dwarf_Die die;
        if (dwarf_offdie(symbols->dwarf, at + header_size, &die) && !load_unit(symbols, &die))
            return false;
        at = next;
    }
    return true;
}

static void fail(trail_error *err, trail_code code, const char *message)
{
    *err = no_error();
    err->code = code;
    (void)snprintf(err->message, sizeof err->message, "%s", message);
}

struct symbols *symbols_open(const char *path, trail_error *err)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols) {
        fail(err, TRAIL_NO_MEMORY, "out of memory");
        return NULL;
    }
    symbols->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (symbols->fd < 0) {
        fail(err, TRAIL_IO, strerror(errno));
        goto out;
    }
    (void)elf_version(EV_CURRENT);
    symbols->elf = elf_begin(symbols->fd, ELF_C_READ_MMAP, NULL);
    if (!symbols->elf || elf_kind(symbols->elf) != ELF_K_ELF) {
        fail(err, TRAIL_IO, "not an ELF program");
        goto out;
    }
    if (!load_functions(symbols) || !load_units(symbols)) {
        fail(err, TRAIL_NO_MEMORY, "out of memory");
        goto out;
    }
    if (symbols->functions.count == 0 && symbols->units.count == 0) {
        fail(err, TRAIL_IO, "the program is stripped: no symbols and no lines");
        goto out;
    }
    spans_sort(&symbols->functions);
    spans_sort(&symbols->units);
    return symbols;
out:
    symbols_close(symbols);
    return NULL;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    if (symbols->dwarf)
        dwarf_end(symbols->dwarf);
    if (symbols->elf)
        elf_end(symbols->elf);
    if (symbols->fd >= 0)
        close(symbols->fd);
    free(symbols->functions.list);
    free(symbols->units.list);
    free(symbols);
}

bool symbols_find(void *context, uint64_t pc, const char **function, const char **file,
                  uint64_t *line)
{
    struct symbols *symbols = context;
    const struct span *found = spans_find(&symbols->functions, pc);
    struct span *unit = spans_find(&symbols->units, pc);
    Dwarf_Line *row = unit ? dwarf_getsrc_die(&unit->unit, pc) : NULL;
    const char *path = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
    if (path && strncmp(path, "./", 2) == 0)
        path += 2; /* "<autogenerated>" is no path to put a directory before */
    int number = 0;
    if (row)
        (void)dwarf_lineno(row, &number);
    *function = found ? found->name : "?";
    *file = path ? path : "?";
    *line = number > 0 ? (uint64_t)number : 0;
    return found || path;
}
