/*
 * A module is opened when its first address is looked up, and stays open. The same file at another
 * address or in the next generation is the same module. Paths come from the trace and are not
 * trusted: the file is only ever read as an ELF file.
 */
#include "symbols/modules.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "symbols/symbol_process.h"
#include "symbols/symbols.h"

struct file {
    char *path;     /* as in the trace */
    char *build_id; /* "": not known */
    enum symbols_detail detail;
    struct symbols *symbols; /* NULL: no suitable file was found */
    trail_error wrong;       /* error of the file at the path; TRAIL_OK: none */
    struct file *next;
};

struct modules {
    const char *const *folders;
    size_t folder_count;
    bool quick;                     /* skip the lines of the C library */
    struct symbol_process *process; /* reads the files; NULL: this one does */
    void *tree;                     /* of struct file, by path and build ID */
    struct file *first, **last;
};

static int file_order(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : strcmp(x->build_id, y->build_id);
}

static void file_free(void *node)
{
    struct file *file = node;
    symbols_close(file->symbols);
    free(file->path);
    free(file->build_id);
    free(file);
}

struct modules *modules_open(const char *const *folders, size_t count, bool quick, bool apart)
{
    struct modules *modules = calloc(1, sizeof *modules);
    if (!modules)
        return NULL;
    modules->process = apart ? symbol_process_open() : NULL;
    if (apart && !modules->process) {
        free(modules);
        return NULL;
    }
    modules->folders = folders;
    modules->folder_count = count;
    modules->quick = quick;
    modules->last = &modules->first;
    regular_files_allow_many(); /* a program may have many libraries */
    return modules;
}

static void keep_node(void *node)
{
    (void)node; /* the list frees it */
}

void modules_close(struct modules *modules)
{
    if (!modules)
        return;
    tdestroy(modules->tree, keep_node);
    for (struct file *file = modules->first, *next; file; file = next) {
        next = file->next;
        file_free(file);
    }
    symbol_process_close(modules->process);
    free(modules);
}

/* MARK: Finding the file */

/* Tries the file whose name is the four pieces joined. Returns true if no better one is needed. */
static bool try_file(const struct modules *modules, struct file *file, const char *pieces[4],
                     trail_error *err)
{
    char path[4096];
    *err = no_error();
    int n = snprintf(path, sizeof path, "%s%s%s%s", pieces[0], pieces[1], pieces[2], pieces[3]);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    const char *build_id = *file->build_id ? file->build_id : NULL;
    struct symbols *symbols =
        modules->process ? symbols_open(modules->process, path, build_id, file->detail, err)
                         : symbols_open_here(path, build_id, file->detail, err);
    bool enough = symbols && (file->detail == SYMBOLS_NAMES || symbols_have_lines(symbols));
    if (symbols && (enough || !file->symbols)) {
        symbols_close(file->symbols);
        file->symbols = symbols;
    } else {
        symbols_close(symbols);
    }
    return enough;
}

/* Tries the links by build ID that debug packages install: xx/yyyy[.debug]. */
static bool try_build_id(const struct modules *modules, struct file *file, const char *folder)
{
    char id[2 * 64 + 16];
    trail_error err;
    if (strlen(file->build_id) < 4 || strlen(file->build_id) > 128)
        return false;
    (void)snprintf(id, sizeof id, "/%.2s/%s", file->build_id, file->build_id + 2);
    return try_file(modules, file, (const char *[]){folder, "/.build-id", id, ".debug"}, &err) ||
           try_file(modules, file, (const char *[]){folder, "/.build-id", id, ""}, &err);
}

static bool is_c_library(const char *path)
{
    const char *base = path_name(path);
    return strncmp(base, "libc.so", 7) == 0 || strncmp(base, "libc-", 5) == 0 ||
           strncmp(base, "ld-linux", 8) == 0 || strncmp(base, "libpthread", 10) == 0;
}

static bool try_folder(const struct modules *modules, struct file *file, const char *folder)
{
    trail_error err;
    const char *base = path_name(file->path);
    return try_build_id(modules, file, folder) ||
           (*file->path == '/' &&
            try_file(modules, file, (const char *[]){folder, file->path, "", ""}, &err)) ||
           try_file(modules, file, (const char *[]){folder, "/", base, ""}, &err) ||
           try_file(modules, file, (const char *[]){folder, "/", base, ".debug"}, &err);
}

static void find_file(const struct modules *modules, struct file *file)
{
    for (size_t i = 0; i < modules->folder_count; i++)
        if (try_folder(modules, file, modules->folders[i]))
            return;
    /* A path that has lost its beginning by truncation names no file. */
    if (*file->path == '/') {
        if (try_file(modules, file, (const char *[]){file->path, "", "", ""}, &file->wrong))
            return;
    }
    (void)try_build_id(modules, file, "/usr/lib/debug");
}

static char *copy_string(trail_string string)
{
    char *copy = malloc(string.size + 1);
    if (!copy)
        return NULL;
    if (string.size > 0)
        memcpy(copy, string.data, string.size);
    copy[string.size] = '\0';
    return copy;
}

/* Returns the file of a module, which is searched for once. NULL if out of memory. */
static struct file *get_file(struct modules *modules, const trail_module *module)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->path = copy_string(module->path);
    file->build_id = copy_string(module->build_id);
    struct file **known =
        file->path && file->build_id ? tsearch(file, &modules->tree, file_order) : NULL;
    if (!known || *known != file) {
        file_free(file);
        return known ? *known : NULL;
    }
    *modules->last = file;
    modules->last = &file->next;
    if (modules->quick && is_c_library(file->path))
        file->detail = SYMBOLS_NAMES;
    find_file(modules, file);
    return file;
}

size_t modules_resolve(void *context, const trail_module *module, uint64_t address,
                       const trail_symbol **symbols)
{
    struct file *file = get_file(context, module);
    return file && file->symbols ? symbols_frames(file->symbols, address, symbols) : 0;
}

bool modules_object(void *context, const trail_module *module, uint64_t address, char *text,
                    size_t size)
{
    struct file *file = get_file(context, module);
    uint64_t offset = 0;
    const char *name =
        file && file->symbols ? symbols_object(file->symbols, address, &offset) : NULL;
    if (!name)
        return false;
    if (offset)
        (void)snprintf(text, size, "%s+0x%" PRIx64, name, offset);
    else
        (void)snprintf(text, size, "%s", name);
    return true;
}

size_t modules_guards(void *context, const trail_module *module, uint64_t address,
                      struct guard *guards, size_t max)
{
    struct file *file = get_file(context, module);
    return file && file->symbols ? symbols_guards(file->symbols, address, guards, max) : 0;
}

/* MARK: Report */

/* The vDSO is the kernel's code and has no file. */
static bool is_vdso(const struct file *file)
{
    return strncmp(file->path, "linux-", 6) == 0 || *file->path == '[';
}

static enum module_state state_of(const struct file *file)
{
    if (file->symbols)
        return symbols_have_lines(file->symbols) ? MODULE_HAS_LINES : MODULE_HAS_NAMES;
    return is_vdso(file) ? MODULE_HAS_NO_FILE : MODULE_IS_MISSING;
}

bool modules_next(const struct modules *modules, struct module_file *file)
{
    const struct file *next = file->place ? file->place->next : modules->first;
    if (!next)
        return false;
    *file = (struct module_file){.path = next->path,
                                 .build_id = next->build_id,
                                 .state = state_of(next),
                                 .wrong = &next->wrong,
                                 .place = next};
    return true;
}
