/*
 * See stack_copy.h. The part of a file with its tables is read into memory, because the path comes
 * from the program and the file may be anything and may change while it is read. The tables hold
 * distances: a PC shifted by the same distance as the part finds the same rule.
 */
#include "collect/stack_copy.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/pc.h"
#include "collect/cfi_table.h"
#include "collect/elf_file.h"
#include "host/unwind.h"
#include "host/unwind_cfi.h"

#define WORD sizeof(uint64_t)

/* MARK: Tables of files */

/* A copy of the segment with the tables: address `a` in the file is at base + a. */
struct unwind_file {
    struct unwind_file *next;
    char *path;
    char *memory; /* NULL: no tables */
    uintptr_t base;
    struct cfi_module tables;
};

/* The size limit of a segment. */
#define MAX_SEGMENT_SIZE (UINT64_C(512) << 20)

/* Returns the read-only segment that contains `part`; NULL: none. */
static const Elf64_Phdr *segment_around(const struct elf_file *elf, const Elf64_Phdr *part)
{
    for (size_t i = 0; i < elf->count; i++) {
        const Elf64_Phdr *s = &elf->headers[i];
        if (s->p_type == PT_LOAD && (s->p_flags & PF_R) && !(s->p_flags & PF_W) &&
            s->p_filesz <= MAX_SEGMENT_SIZE && part->p_vaddr >= s->p_vaddr &&
            part->p_vaddr - s->p_vaddr < s->p_filesz &&
            part->p_filesz <= s->p_filesz - (part->p_vaddr - s->p_vaddr))
            return s;
    }
    return NULL;
}

/* Sets where the copy of the segment lies. */
static void place(struct unwind_file *file, const Elf64_Phdr *segment)
{
    uintptr_t at = (uintptr_t)file->memory;
    file->base = at - (uintptr_t)segment->p_vaddr;
    file->tables.readable[0] = (struct cfi_range){at, at + segment->p_filesz};
    file->tables.ranges = 1;
}

/* Puts a table of the functions in .eh_frame after the segment: static programs have no
 * .eh_frame_hdr. */
static void make_table(struct unwind_file *file, const Elf64_Phdr *segment,
                       const Elf64_Phdr *frames)
{
    size_t size = cfi_table_size(&file->tables, file->base + frames->p_vaddr);
    size_t at = ((size_t)segment->p_filesz + WORD - 1) / WORD * WORD;
    char *memory = size ? realloc(file->memory, at + size) : NULL;
    if (!memory)
        return;
    file->memory = memory;
    place(file, segment);
    cfi_table_make(&file->tables, file->base + frames->p_vaddr, (uintptr_t)memory + at, size);
}

static void read_tables(struct unwind_file *file, const struct elf_file *elf)
{
    const Elf64_Phdr *header = elf_file_find(elf, PT_GNU_EH_FRAME), *segment;
    Elf64_Phdr frames;
    if (!header && !elf_file_section(elf, ".eh_frame", &frames))
        return;
    segment = segment_around(elf, header ? header : &frames);
    if (!segment || !(file->memory = elf_file_read(elf, segment)))
        return;
    place(file, segment);
    if (header)
        file->tables.header = (struct cfi_range){file->base + header->p_vaddr,
                                                 file->base + header->p_vaddr + header->p_filesz};
    else
        make_table(file, segment, &frames);
}

static struct unwind_file *open_file(struct unwind_files *files, trail_string path)
{
    struct unwind_file *file = calloc(1, sizeof *file);
    struct elf_file elf;
    if (!file)
        return NULL;
    file->path = strndup(path.data, path.size);
    if (file->path && elf_file_open(&elf, file->path)) {
        read_tables(file, &elf);
        elf_file_close(&elf);
    }
    file->next = files->first;
    files->first = file;
    return file;
}

/* Used only on machines where stacks are walked by tables. */
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
        free(file->memory);
        free(file->path);
        free(file);
    }
}

/* MARK: Steps */

/* A frame of the walk: the registers once the function that it called has returned. */
struct copied_walk {
    const struct cpu_sample *sample;
    uint64_t pc, sp, fp;
};

/* Copies a word of the program's stack. */
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
    w->pc = pc_plain((uintptr_t)pc);
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

/* The interrupted registers are in the kernel's frame; the PC is the instruction itself. */
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
    /* Generated code has no file. */
    const struct unwind_file *file =
        module && module->path.size ? file_of(files, module->path) : NULL;
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
    return stack_copy_frames(files, sample, find, context, pcs, NULL, max);
}

size_t stack_copy_frames(struct unwind_files *files, const struct cpu_sample *sample,
                         find_module_fn find, void *context, uint64_t *pcs, uint64_t *sps,
                         size_t max)
{
    struct copied_walk w = {sample, sample->pc + 1, sample->sp, sample->fp};
    size_t count = 0;
    /* Ends because each step removes at least one word of the stack. */
    while (count < max) {
        const trail_module *module = find(context, w.pc - 1);
        /* The innermost PC is always written; an outer PC that is not code ends the walk. */
        if (count && !module)
            break;
        if (sps)
            sps[count] = w.sp;
        pcs[count++] = w.pc;
        if (!step(files, &w, module))
            break;
    }
    return count;
}
