/*
 * Symbols through libdwfl, which opens a file and finds its debug information. The indexes are
 * built here: functions of the symbol table and compilation units when the file is opened, the
 * scopes of a unit when an address in it is looked up. libdw's own look-up needs .debug_aranges,
 * which Go's linker does not write.
 *
 * There are three kinds of addresses: the file's, its DWARF's, and libdwfl's own. The interface
 * uses the file's.
 *
 * All strings belong to libdw, libelf or the demangler and live as long as the struct.
 */
#include "symbols/elf_symbols.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "inspect/debug_info.h"
#include "inspect/elf_bounds.h"
#include "symbols/demangle.h"
#include "symbols/guards.h"
#include "symbols/named_files.h"
#include "symbols/scopes.h"

struct unit {
    Dwarf_Die die;   /* has the line table */
    Dwarf_Die split; /* has the scopes: the same DIE, or the one in a .dwo file */
    bool loaded;
    struct scopes scopes;
};

struct elf_symbols {
    Dwfl *dwfl;
    Dwfl_Module *module;
    uid_t owner;          /* of the program's file */
    Dwarf *dwarf;         /* NULL: no lines */
    uint64_t to_dwarf;    /* DWARF address minus file address */
    struct spans names;   /* functions of the symbol table, by file address */
    struct spans objects; /* variables; loaded when first needed */
    bool has_objects;
    struct spans by_unit; /* units, by DWARF address */
    struct unit *units;
    size_t unit_count, unit_capacity;
    struct demangler *demangler;
    trail_symbol frames[SYMBOLS_FRAMES];
};

/* MARK: Opening */

/*
 * Finds separate debug information as libdwfl does, but, without a debuginfod server, checks for
 * the file first: libdwfl's standard search loads the debuginfod client with some twenty libraries,
 * which takes longer than everything else.
 */
static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                          const char *path, const char *link, GElf_Word crc, char **found)
{
    const char *urls = getenv("DEBUGINFOD_URLS"), *slash = path ? strrchr(path, '/') : NULL;
    char usual[NAME_MAX + 1], file[PATH_MAX];
    if (!urls || !*urls) {
        int fd = dwfl_build_id_find_debuginfo(module, data, name, base, path, link, crc, found);
        (void)snprintf(usual, sizeof usual, "%s.debug", slash ? slash + 1 : name);
        if (fd >= 0 || !path || !debug_info_linked(path, link ? link : usual, file))
            return fd;
    }
    return dwfl_standard_find_debuginfo(module, data, name, base, path, link, crc, found);
}

static bool open_module(struct elf_symbols *symbols, const char *path, trail_error *err)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = find_debuginfo,
        .section_address = dwfl_offline_section_address,
    };
    struct stat status;
    int fd = regular_file_open(path, NULL, &status);
    const char *problem =
        fd < 0 ? errno == EACCES ? elf_bounds_no_elf : strerror(errno) : elf_bounds_problem(fd);
    if (problem) {
        (void)error_set(err, TRAIL_IO, "%s", problem);
        if (fd >= 0 && problem != elf_bounds_no_elf)
            named_files_refuse(path, problem);
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    symbols->owner = status.st_uid;
    symbols->dwfl = dwfl_begin(&callbacks);
    if (symbols->dwfl) {
        dwfl_report_begin(symbols->dwfl);
        symbols->module = dwfl_report_offline(symbols->dwfl, path, path, fd);
        (void)dwfl_report_end(symbols->dwfl, NULL, NULL);
    }
    if (symbols->module)
        return true;
    (void)close(fd); /* on success the module owns it */
    (void)error_set(err, TRAIL_IO, "not an ELF program");
    return false;
}

static bool has_build_id(const struct elf_symbols *symbols, const char *wanted, trail_error *err)
{
    const unsigned char *bits;
    GElf_Addr address;
    char hex[2 * 64 + 1] = "none";
    int size = dwfl_module_build_id(symbols->module, &bits, &address);
    for (int i = 0; i < size && i < 64; i++)
        (void)snprintf(hex + (size_t)2 * (size_t)i, 3, "%02x", bits[i]);
    if (strcmp(hex, wanted) == 0)
        return true;
    (void)error_set(err, TRAIL_INCONSISTENT, "build ID %s", hex);
    return false;
}

/* MARK: Indexing */

/* Adds the symbols of two types. Returns false if out of memory. */
static bool load_symbols(struct elf_symbols *symbols, struct spans *spans, int type, int other)
{
    GElf_Addr bias = 0;
    (void)dwfl_module_getelf(symbols->module, &bias);
    int count = dwfl_module_getsymtab(symbols->module);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name =
            dwfl_module_getsym_info(symbols->module, i, &symbol, &address, NULL, NULL, NULL);
        int its = GELF_ST_TYPE(symbol.st_info);
        if (!name || !*name || symbol.st_shndx == SHN_UNDEF || (its != type && its != other))
            continue;
        /* Of several names for one address range, a global one is preferred, and found first. */
        bool local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL;
        struct span span = {.low = address - bias, .name = name, .index = !local};
        span.high = span.low + symbol.st_size;
        if (!spans_add(spans, span))
            return false;
    }
    spans_sort(spans);
    return true;
}

static bool load_names(struct elf_symbols *symbols)
{
    return load_symbols(symbols, &symbols->names, STT_FUNC, STT_GNU_IFUNC);
}

/* For a unit without address ranges: uses the ranges of its functions. */
static bool load_unranged(struct elf_symbols *symbols, struct unit *unit)
{
    unit->loaded = true;
    if (!scopes_load(&unit->scopes, &unit->split) || !scopes_complete(&unit->scopes))
        return false;
    for (size_t i = 0; i < unit->scopes.functions.count; i++) {
        struct span span = unit->scopes.functions.list[i];
        span.index = (size_t)(unit - symbols->units);
        if (!spans_add(&symbols->by_unit, span))
            return false;
    }
    return true;
}

static bool load_unit(struct elf_symbols *symbols, Dwarf_Die *die, Dwarf_Die *split)
{
    if (!GROW(symbols->units, symbols->unit_capacity, symbols->unit_count + 1))
        return false;
    struct unit *unit = &symbols->units[symbols->unit_count];
    *unit = (struct unit){.die = *die, .split = dwarf_tag(split) > 0 ? *split : *die};
    size_t before = symbols->by_unit.count;
    if (!spans_add_ranges(&symbols->by_unit, die, symbols->unit_count++))
        return false;
    return symbols->by_unit.count > before || load_unranged(symbols, unit);
}

static bool load_units(struct elf_symbols *symbols)
{
    GElf_Addr bias = 0, dwarf_bias = 0;
    (void)dwfl_module_getelf(symbols->module, &bias);
    symbols->dwarf = dwfl_module_getdwarf(symbols->module, &dwarf_bias);
    symbols->to_dwarf = bias - dwarf_bias;
    if (!symbols->dwarf)
        return true;
    Dwarf_CU *cu = NULL;
    uint8_t type;
    Dwarf_Die die, split;
    while (dwarf_get_units(symbols->dwarf, cu, &cu, NULL, &type, &die, &split) == 0)
        if (dwarf_tag(&die) != DW_TAG_type_unit && !load_unit(symbols, &die, &split))
            return false;
    spans_sort(&symbols->by_unit);
    return true;
}

struct elf_symbols *elf_symbols_open(const char *path, const char *wanted,
                                     enum symbols_detail detail, trail_error *err)
{
    struct elf_symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols || !(symbols->demangler = demangler_open())) {
        (void)error_no_memory(err);
        free(symbols);
        return NULL;
    }
    if (!open_module(symbols, path, err) || (wanted && !has_build_id(symbols, wanted, err)))
        goto out;
    named_files_begin(symbols->owner);
    bool loaded = load_names(symbols) && (detail != SYMBOLS_LINES || load_units(symbols));
    named_files_end();
    if (!loaded) {
        (void)error_no_memory(err);
        goto out;
    }
    if (symbols->by_unit.count > 0 || symbols->names.count > 0)
        return symbols;
    (void)error_set(err, TRAIL_IO, "the program is stripped: no symbols and no lines");
out:
    elf_symbols_close(symbols);
    return NULL;
}

void elf_symbols_close(struct elf_symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->unit_count; i++)
        scopes_free(&symbols->units[i].scopes);
    if (symbols->dwfl)
        dwfl_end(symbols->dwfl);
    demangler_close(symbols->demangler);
    free(symbols->names.list);
    free(symbols->objects.list);
    free(symbols->by_unit.list);
    free(symbols->units);
    free(symbols);
}

const char *elf_symbols_object(struct elf_symbols *symbols, uint64_t address, uint64_t *offset)
{
    named_files_begin(symbols->owner);
    bool loaded =
        symbols->has_objects || load_symbols(symbols, &symbols->objects, STT_OBJECT, STT_OBJECT);
    named_files_end();
    if (!loaded)
        return NULL;
    symbols->has_objects = true;
    const struct span *span = spans_find(&symbols->objects, address);
    if (!span)
        return NULL;
    *offset = address - span->low;
    return demangle(symbols->demangler, span->name);
}

bool elf_symbols_have_lines(const struct elf_symbols *symbols)
{
    return symbols->by_unit.count > 0;
}

/* MARK: Looking up */

static trail_string text(const char *chars)
{
    return chars ? text_from(chars) : (trail_string){"", 0};
}

static const char *die_string(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

/* Returns the name of a scope, with namespaces and arguments if the language has them. */
static const char *scope_name(const struct elf_symbols *symbols, Dwarf_Die *die)
{
    const char *name = die_string(die, DW_AT_linkage_name);
    if (!name)
        name = die_string(die, DW_AT_MIPS_linkage_name);
    if (!name)
        name = die_string(die, DW_AT_name);
    return name ? demangle(symbols->demangler, name) : NULL;
}

/*
 * Whether a function is defined in trail's headers or Rust crate: it is part of the tracer, and its
 * caller is the program's innermost function.
 */
static bool is_tracer_call(Dwarf_Die *die)
{
    static const char *const headers[] = {"trail/record.h", "trail/record.hpp",
                                          "trail/src/record.rs"};
    Dwarf_Attribute attribute;
    Dwarf_Word index;
    Dwarf_Die unit;
    Dwarf_Files *files;
    size_t count;
    /*
     * The index refers to the unit of the definition; dwarf_decl_file does not support split units.
     */
    if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
        dwarf_formudata(&attribute, &index) != 0 ||
        !dwarf_cu_die(attribute.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
        dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count)
        return false;
    const char *file = dwarf_filesrc(files, index, NULL, NULL);
    size_t size = file ? strlen(file) : 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        size_t length = strlen(headers[i]);
        if (size >= length && strcmp(file + size - length, headers[i]) == 0 &&
            (size == length || file[size - length - 1] == '/'))
            return true;
    }
    return false;
}

static uint64_t die_number(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

/* Sets the frame's position to the call of an inlined scope. */
static void put_call(struct unit *unit, Dwarf_Die *die, trail_symbol *frame)
{
    Dwarf_Files *files;
    size_t count;
    uint64_t file = die_number(die, DW_AT_call_file);
    frame->line = die_number(die, DW_AT_call_line);
    if (dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && file < count)
        frame->file = text(dwarf_filesrc(files, file, NULL, NULL));
}

/* Go's "<autogenerated>" is not a path, but libdw puts "./" before it. */
static const char *plain_path(const char *path)
{
    return path && strncmp(path, "./", 2) == 0 ? path + 2 : path;
}

static void put_line(struct unit *unit, uint64_t address, trail_symbol *frame)
{
    Dwarf_Line *row = dwarf_getsrc_die(&unit->die, address);
    int line = 0;
    if (!row)
        return;
    (void)dwarf_lineno(row, &line);
    frame->file = text(plain_path(dwarf_linesrc(row, NULL, NULL)));
    frame->line = line > 0 ? (uint64_t)line : 0;
}

static struct unit *find_unit(struct elf_symbols *symbols, uint64_t address)
{
    const struct span *span = spans_find(&symbols->by_unit, address);
    struct unit *unit = span ? &symbols->units[span->index] : NULL;
    if (unit && !unit->loaded) {
        unit->loaded = true;
        (void)scopes_load(&unit->scopes, &unit->split); /* if out of memory, use what was found */
    }
    return unit;
}

/* Fills the frames from DWARF. Returns their number; the outermost may have no name. */
static size_t dwarf_frames(struct elf_symbols *symbols, uint64_t address)
{
    struct unit *unit = find_unit(symbols, address);
    trail_symbol *frame = symbols->frames;
    if (!unit)
        return 0;
    put_line(unit, address, frame);
    struct scope *scope = scopes_find(&unit->scopes, address);
    for (; scope && scope->caller != SCOPE_NONE && is_tracer_call(&scope->die);
         scope = &unit->scopes.list[scope->caller])
        put_call(unit, &scope->die, frame);
    size_t count = 1;
    for (; scope; scope = &unit->scopes.list[scope->caller]) {
        frame->function = text(scope_name(symbols, &scope->die));
        if (scope->caller == SCOPE_NONE || count == SYMBOLS_FRAMES)
            break;
        *++frame = (trail_symbol){0};
        put_call(unit, &scope->die, frame);
        count++;
    }
    return count;
}

static const char *table_name(const struct elf_symbols *symbols, uint64_t address)
{
    const struct span *span = spans_find(&symbols->names, address);
    return span ? span->name : NULL;
}

size_t elf_symbols_frames(struct elf_symbols *symbols, uint64_t address,
                          const trail_symbol **frames)
{
    symbols->frames[0] = (trail_symbol){0};
    named_files_begin(symbols->owner);
    size_t count = dwarf_frames(symbols, address + symbols->to_dwarf);
    named_files_end();
    trail_symbol *last = &symbols->frames[count > 0 ? count - 1 : 0];
    if (last->function.size == 0) {
        const char *name = table_name(symbols, address);
        last->function = text(name ? demangle(symbols->demangler, name) : NULL);
    }
    *frames = symbols->frames;
    if (count == 0 && last->function.size > 0)
        count = 1;
    return count == 1 && last->function.size == 0 && last->line == 0 ? 0 : count;
}

size_t elf_symbols_guards(struct elf_symbols *symbols, uint64_t address, struct guard *guards,
                          size_t max)
{
    size_t count = 0;
    named_files_begin(symbols->owner);
    struct unit *unit = find_unit(symbols, address + symbols->to_dwarf);
    struct scope *scope = unit ? scopes_find(&unit->scopes, address + symbols->to_dwarf) : NULL;
    while (scope && scope->caller != SCOPE_NONE)
        scope = &unit->scopes.list[scope->caller];
    if (scope)
        count = guards_find(&scope->die, address + symbols->to_dwarf, guards, max);
    named_files_end();
    return count;
}

bool elf_symbols_find(struct elf_symbols *symbols, uint64_t pc, const char **function,
                      const char **file, uint64_t *line)
{
    const char *name = table_name(symbols, pc);
    trail_symbol row = {0};
    named_files_begin(symbols->owner);
    struct unit *unit = find_unit(symbols, pc + symbols->to_dwarf);
    if (unit)
        put_line(unit, pc + symbols->to_dwarf, &row);
    named_files_end();
    *function = name ? name : "?";
    *file = row.file.size > 0 ? row.file.data : "?";
    *line = row.line;
    return name || row.file.size > 0;
}
