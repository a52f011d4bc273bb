/*
 * See stack_copy.h. A file is mapped as the program has it, without what may be written: its tables hold
 * distances, so the same PC, moved with the file, finds the same rule.
 */
#include "collect/stack_copy.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/unwind_cfi.h"

#define WORD sizeof(uint64_t)

/* MARK: Tables of files */

/* A file's segments lie here as they do in the program: the address `a` of the file is at base + a. */
struct unwind_file {
    struct unwind_file *next;
    char *path;
    char *memory; /* NULL: no tables */
    size_t size;
    uintptr_t base;
    struct cfi_module tables;
};

#define MAX_SEGMENTS 64

static bool read_segments(int fd, Elf64_Phdr *segments, size_t *count)
{
    Elf64_Ehdr header;
    ssize_t size;

    if (pread(fd, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof *segments || header.e_phnum > MAX_SEGMENTS)
        return false;
    *count = header.e_phnum;
    size = (ssize_t)(*count * sizeof *segments);
    return pread(fd, segments, (size_t)size, (off_t)header.e_phoff) == size;
}

/* Maps what may be read and not be written, where the file has it. */
static void map_segment(struct unwind_file *file, int fd, const Elf64_Phdr *segment, uint64_t end)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), low = segment->p_vaddr & ~(page - 1);
    uint64_t inside = segment->p_vaddr - low;
    struct cfi_range *range = &file->tables.readable[file->tables.ranges];
    struct stat status;

    if (segment->p_flags & PF_W || !(segment->p_flags & PF_R) || segment->p_filesz == 0 ||
        file->tables.ranges == CFI_MAX_RANGES || segment->p_offset < inside ||
        segment->p_vaddr + segment->p_filesz > end || fstat(fd, &status) != 0 ||
        segment->p_offset + segment->p_filesz > (uint64_t)status.st_size ||
        mmap((void *)(file->base + low), segment->p_filesz + inside, PROT_READ,
             MAP_PRIVATE | MAP_FIXED, fd, (off_t)(segment->p_offset - inside)) == MAP_FAILED)
        return;
    *range = (struct cfi_range){file->base + segment->p_vaddr,
                                file->base + segment->p_vaddr + segment->p_filesz};
    file->tables.ranges++;
}

static void map_file(struct unwind_file *file, int fd)
{
    Elf64_Phdr segments[MAX_SEGMENTS];
    uint64_t low = UINT64_MAX, high = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t count;

    if (!read_segments(fd, segments, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        const Elf64_Phdr *s = &segments[i];
        if (s->p_type != PT_LOAD || s->p_vaddr + s->p_memsz < s->p_vaddr)
            continue;
        low = s->p_vaddr < low ? s->p_vaddr & ~(page - 1) : low;
        high = s->p_vaddr + s->p_memsz > high ? s->p_vaddr + s->p_memsz : high;
    }
    if (low >= high || high - low > UINT64_C(1) << 40)
        return;
    file->size = (size_t)(high - low);
    file->memory = mmap(NULL, file->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file->memory == MAP_FAILED) {
        file->memory = NULL;
        return;
    }
    file->base = (uintptr_t)file->memory - (uintptr_t)low;
    for (size_t i = 0; i < count; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_filesz <= high)
            map_segment(file, fd, &segments[i], high);
        else if (segments[i].p_type == PT_GNU_EH_FRAME)
            file->tables.header =
                (struct cfi_range){file->base + segments[i].p_vaddr,
                                   file->base + segments[i].p_vaddr + segments[i].p_filesz};
    }
    if (!cfi_is_readable(&file->tables, file->tables.header.low,
                         file->tables.header.high - file->tables.header.low))
        file->tables = (struct cfi_module){.ranges = 0};
}

static struct unwind_file *open_file(struct unwind_files *files, trail_string path)
{
    struct unwind_file *file = calloc(1, sizeof *file);
    int fd;

    if (!file)
        return NULL;
    file->path = strndup(path.data, path.size);
    fd = file->path ? open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd >= 0) {
        map_file(file, fd);
        close(fd);
    }
    file->next = files->first;
    files->first = file;
    return file;
}

/* Only where stacks are walked by tables. */
__attribute__((unused)) static const struct unwind_file *file_of(struct unwind_files *files,
                                                                 trail_string path)
{
    struct unwind_file *file = files->first;

    while (file && !(file->path && strlen(file->path) == path.size &&
                     memcmp(file->path, path.data, path.size) == 0))
        file = file->next;
    return file ? file : open_file(files, path);
}

void unwind_files_free(struct unwind_files *files)
{
    while (files->first) {
        struct unwind_file *file = files->first;
        files->first = file->next;
        if (file->memory)
            munmap(file->memory, file->size);
        free(file->path);
        free(file);
    }
}

/* MARK: Steps */

/* A frame on the way out: the registers when what it called has returned. */
struct copied_walk {
    const struct cpu_sample *sample;
    uint64_t pc, sp, fp;
};

/* The word at an address of the program's stack. */
static bool word_at(const struct copied_walk *w, uint64_t at, uint64_t *word)
{
    uint64_t offset = at - w->sample->sp;

    if (at < w->sp || at % WORD != 0 || w->sample->stack_size < WORD ||
        offset > w->sample->stack_size - WORD)
        return false;
    memcpy(word, w->sample->stack + offset, WORD);
    return true;
}

static bool step_frame_pointer(struct copied_walk *w)
{
    uint64_t pc, fp, at = w->fp;

    if (!word_at(w, at, &fp) || !word_at(w, at + WORD, &pc))
        return false;
    w->pc = pc;
    w->fp = fp;
    w->sp = at + 2 * WORD;
    return true;
}

#if defined(__x86_64__)
static bool step_frame(struct copied_walk *w, const struct cfi_rule *rule)
{
    uint64_t end = rule->base == CFI_FP ? w->fp : w->sp, pc, saved;

    if (rule->indirect && !word_at(w, end + (uint64_t)(int64_t)rule->inner, &end))
        return false;
    end += (uint64_t)(int64_t)rule->offset;
    if (end <= w->sp || !word_at(w, end - WORD, &pc))
        return false;
    saved = (rule->fp == CFI_FP_AT_FP ? w->fp : end) + (uint64_t)(int64_t)rule->fp_offset;
    if (rule->fp == CFI_FP_LOST)
        w->fp = 0;
    else if (rule->fp != CFI_FP_SAME)
        (void)word_at(w, saved, &w->fp);
    w->pc = pc;
    w->sp = end;
    return true;
}

/* What the handler interrupted is in the kernel's frame; its PC is the very instruction. */
static bool step_signal(struct copied_walk *w)
{
    const uint64_t regs = w->sp + offsetof(ucontext_t, uc_mcontext.gregs);
    struct copied_walk to = *w;

    if (!word_at(w, regs + REG_RIP * WORD, &to.pc) || !word_at(w, regs + REG_RBP * WORD, &to.fp) ||
        !word_at(w, regs + REG_RSP * WORD, &to.sp) || to.sp < w->sp)
        return false;
    to.pc++;
    *w = to;
    return true;
}

static bool step(struct unwind_files *files, struct copied_walk *w, const trail_module *module)
{
    const struct unwind_file *file = module ? file_of(files, module->path) : NULL;
    struct cfi_rule rule = {.kind = CFI_NONE};

    if (file && file->tables.ranges)
        rule = cfi_find(&file->tables, file->base + (uintptr_t)(w->pc - 1 - module->bias));
    switch (rule.kind) {
    case CFI_FRAME:
        return step_frame(w, &rule);
    case CFI_SIGNAL:
        return step_signal(w);
    case CFI_NONE:
        return step_frame_pointer(w);
    default:
        return false;
    }
}
#else
static bool step(struct unwind_files *files, struct copied_walk *w, const trail_module *module)
{
    (void)files;
    (void)module;
    return step_frame_pointer(w);
}
#endif

size_t stack_copy_walk(struct unwind_files *files, const struct cpu_sample *sample,
                       find_module_fn find, void *context, uint64_t *pcs, size_t max)
{
    struct copied_walk w = {sample, sample->pc + 1, sample->sp, sample->fp};
    size_t count = 0;

    /* Each step takes a word off the stack at least. */
    while (count < max) {
        const trail_module *module = find(context, w.pc - 1);
        /* The innermost PC is told in any case; outer ones that are no code are none. */
        if (count && !module)
            break;
        pcs[count++] = w.pc;
        if (!step(files, &w, module))
            break;
    }
    return count;
}
