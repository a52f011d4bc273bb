/*
 * Files that a recorded program names as its modules, made by hand: nothing outside of them is
 * read, and what they describe is never mapped.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "collect/elf_file.h"
#include "collect/stack_copy.h"

#define SIZE 4096

static char path[] = "/tmp/trail-elf-XXXXXX";

struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segments[4];
    uint8_t rest[SIZE - sizeof(Elf64_Ehdr) - 4 * sizeof(Elf64_Phdr)];
};

static struct image image_of(const Elf64_Phdr *segments, uint16_t count)
{
    struct image image = {.header = {.e_phoff = offsetof(struct image, segments),
                                     .e_phentsize = sizeof(Elf64_Phdr),
                                     .e_phnum = count}};
    memcpy(image.header.e_ident, ELFMAG, SELFMAG);
    image.header.e_ident[EI_CLASS] = ELFCLASS64;
    if (count)
        memcpy(image.segments, segments, count * sizeof segments[0]);
    return image;
}

static void write_file(const struct image *image, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(image, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* MARK: Reading a part */

TEST(a_part_lies_in_its_file)
{
    static const struct {
        uint64_t offset, size;
        bool there;
    } cases[] = {
        {0, SIZE, true},        {SIZE - 1, 1, true},    {0, 0, false},
        {0, SIZE + 1, false},   {1, SIZE, false},       {SIZE, 1, false},
        {UINT64_MAX, 2, false}, {2, UINT64_MAX, false}, {UINT64_MAX - 1, UINT64_MAX, false},
    };
    struct image image = image_of(NULL, 0);
    struct elf_file elf;
    write_file(&image, sizeof image);
    assert_true(elf_file_open(&elf, path));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Elf64_Phdr part = {.p_offset = cases[i].offset, .p_filesz = cases[i].size};
        char *bytes = elf_file_read(&elf, &part);
        assert_int_equal(bytes != NULL, cases[i].there);
        free(bytes);
    }
    elf_file_close(&elf);
}

TEST(a_file_that_has_become_shorter_has_no_such_part)
{
    const Elf64_Phdr part = {.p_offset = 0, .p_filesz = SIZE};
    struct image image = image_of(NULL, 0);
    struct elf_file elf;
    write_file(&image, sizeof image);
    assert_true(elf_file_open(&elf, path));
    assert_int_equal(truncate(path, 100), 0);
    assert_null(elf_file_read(&elf, &part));
    elf_file_close(&elf);
}

TEST(only_regular_files_with_headers_are_opened)
{
    static const char *const others[] = {"/", "/dev/zero", "/dev/null", "/proc/self/mem",
                                         "/nowhere"};
    struct image image = image_of(NULL, 0);
    struct elf_file elf;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(elf_file_open(&elf, others[i]));
    /* A FIFO without a writer: opening it must not block. */
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(elf_file_open(&elf, path));
    (void)unlink(path);
    write_file(&image, sizeof image.header - 1);
    assert_false(elf_file_open(&elf, path));
    image.header.e_phnum = 4;
    write_file(&image, sizeof image.header + 10);
    assert_false(elf_file_open(&elf, path));
    image.header.e_phnum = ELF_FILE_HEADERS + 1;
    write_file(&image, sizeof image);
    assert_false(elf_file_open(&elf, path));
    image.header.e_phnum = 1;
    image.header.e_phoff = UINT64_MAX;
    write_file(&image, sizeof image);
    assert_false(elf_file_open(&elf, path));
}

/* MARK: Tables */

static trail_module module;

static const trail_module *find(void *context, uint64_t pc)
{
    (void)context;
    return pc >= module.start && pc < module.end ? &module : NULL;
}

/* Walks two frames with whatever tables the file has; AddressSanitizer detects reads outside of
 * it. */
static void walk(const struct image *image)
{
    struct unwind_files files = {0};
    uint8_t stack[256] = {0};
    uint64_t pcs[8], frame[2] = {0, 0x500};
    struct cpu_sample sample = {
        .pc = 0x480, .sp = 0x10000, .fp = 0x10010, .stack = stack, .stack_size = sizeof stack};
    memcpy(stack + 16, frame, sizeof frame);
    write_file(image, sizeof *image);
    module = (trail_module){.start = 0, .end = 0x1000, .path = {path, strlen(path)}};
    assert_in_range(stack_copy_walk(&files, &sample, find, NULL, pcs, 8), 1, 8);
    assert_int_equal(pcs[0], 0x481);
    unwind_files_free(&files);
}

/* Segments that wrap around, overlap, or are shorter than stated. */
TEST(tables_are_read_from_one_segment_only)
{
    static const Elf64_Phdr loads[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0, .p_vaddr = 0, .p_filesz = SIZE},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = UINT64_MAX - 100, .p_filesz = SIZE},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = UINT64_MAX, .p_memsz = UINT64_MAX},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_offset = SIZE - 10, .p_filesz = SIZE},
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_filesz = SIZE},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0x7fff00000000, .p_filesz = SIZE}};
    static const Elf64_Phdr tables[] = {
        {.p_type = PT_GNU_EH_FRAME, .p_vaddr = 0x300, .p_filesz = 0x100},
        {.p_type = PT_GNU_EH_FRAME, .p_vaddr = SIZE - 4, .p_filesz = 0x100},
        {.p_type = PT_GNU_EH_FRAME, .p_vaddr = UINT64_MAX - 50, .p_filesz = UINT64_MAX},
        {.p_type = PT_GNU_EH_FRAME, .p_vaddr = 0x300, .p_filesz = UINT64_MAX},
        {.p_type = PT_GNU_EH_FRAME, .p_vaddr = 0, .p_filesz = 0}};
    /* .eh_frame_hdr: version 1, each encoding in turn, then arbitrary numbers. */
    static const uint8_t encodings[] = {0x1b, 0x3b, 0x00, 0x03, 0x0c, 0xff};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++) {
            for (size_t e = 0; e < sizeof encodings; e++) {
                struct image image = image_of((const Elf64_Phdr[]){loads[i], tables[k]}, 2);
                uint8_t *at = (uint8_t *)&image + 0x300;
                memset(image.rest, 0x7f, sizeof image.rest);
                at[0] = 1;
                at[1] = at[2] = at[3] = encodings[e];
                walk(&image);
            }
        }
    }
}

/* MARK: Sections */

enum { NAMES = 0x600, FRAMES = 0x700, SECTIONS = 0x800 };

static Elf64_Shdr frames_of(uint64_t offset, uint64_t address, uint64_t size)
{
    return (Elf64_Shdr){.sh_name = 1,
                        .sh_type = SHT_PROGBITS,
                        .sh_flags = SHF_ALLOC,
                        .sh_offset = offset,
                        .sh_addr = address,
                        .sh_size = size};
}

/* A file without .eh_frame_hdr, with two sections: .eh_frame and the section names. */
static struct image image_with_frames(Elf64_Shdr frames)
{
    const Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = SIZE};
    const Elf64_Shdr names = {.sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = 11};
    struct image image = image_of(&load, 1);
    uint8_t *bytes = (uint8_t *)&image;
    image.header.e_shoff = SECTIONS;
    image.header.e_shentsize = sizeof frames;
    image.header.e_shnum = 2;
    image.header.e_shstrndx = 1;
    memcpy(bytes + NAMES, "\0.eh_frame", 11);
    memcpy(bytes + SECTIONS, &frames, sizeof frames);
    memcpy(bytes + SECTIONS + sizeof frames, &names, sizeof names);
    return image;
}

static bool has_section(const struct image *image, const char *name, Elf64_Phdr *part)
{
    struct elf_file elf;
    bool found;
    write_file(image, sizeof *image);
    assert_true(elf_file_open(&elf, path));
    found = elf_file_section(&elf, name, part);
    elf_file_close(&elf);
    return found;
}

TEST(a_section_is_found_by_its_name)
{
    const Elf64_Shdr frames = frames_of(FRAMES, 0x1700, 64);
    struct image image = image_with_frames(frames);
    Elf64_Phdr part;
    assert_true(has_section(&image, ".eh_frame", &part));
    assert_true(part.p_offset == FRAMES && part.p_vaddr == 0x1700 && part.p_filesz == 64);
    assert_false(has_section(&image, ".eh_fram", &part));
    assert_false(has_section(&image, ".eh_frame.", &part));
}

TEST(damaged_sections_are_none)
{
    struct image good = image_with_frames(frames_of(FRAMES, FRAMES, 64)), image = good;
    Elf64_Shdr frames = frames_of(FRAMES, FRAMES, 64);
    Elf64_Phdr part;
    image.header.e_shstrndx = 2;
    assert_false(has_section(&image, ".eh_frame", &part));
    image = good;
    image.header.e_shoff = UINT64_MAX - 8;
    assert_false(has_section(&image, ".eh_frame", &part));
    image = good;
    image.header.e_shoff = SIZE - sizeof frames;
    assert_false(has_section(&image, ".eh_frame", &part));
    image = good;
    image.header.e_shentsize = 1;
    assert_false(has_section(&image, ".eh_frame", &part));
    frames.sh_name = UINT32_MAX;
    image = image_with_frames(frames);
    assert_false(has_section(&image, ".eh_frame", &part));
    frames.sh_name = 2; /* "eh_frame" */
    image = image_with_frames(frames);
    assert_false(has_section(&image, ".eh_frame", &part));
}

/* Entries of any length that refer to entries anywhere, in parts outside of the segment, or that
 * end too early. */
TEST(any_frames_make_some_table)
{
    static const uint64_t places[] = {FRAMES, 0, SIZE - 20, SIZE - 2, SIZE, UINT64_MAX - 4};
    static const uint64_t sizes[] = {64, 0, 1, SIZE, UINT64_MAX};
    static const uint32_t lengths[] = {0, 4, 12, 20, 0x7f, 1u << 20, UINT32_MAX};
    /* A CIE without augmentation, or the offset back to one. */
    static const uint32_t seconds[] = {0, 4, 24, 28, 0x7fffffff, UINT32_MAX};
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
                for (size_t k = 0; k < sizeof seconds / sizeof seconds[0]; k++) {
                    struct image image = image_with_frames(frames_of(FRAMES, places[p], sizes[s]));
                    const uint32_t entries[] = {20,         0,          0x78010001, 0x10,  0, 0,
                                                lengths[l], seconds[k], 0x400,      0x100, 0, 0};
                    memcpy((uint8_t *)&image + FRAMES, entries, sizeof entries);
                    walk(&image);
                }
            }
        }
    }
}

static int make_path(void **state)
{
    int fd = mkstemp(path);
    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    return run_all_tests(make_path, remove_path);
}
