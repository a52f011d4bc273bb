/* The table made from this program's .eh_frame must have the rows of the linker's .eh_frame_hdr. */
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/unit.h"
#include "collect/cfi_table.h"

/* Inside the program, and so within 2 GiB of its tables. */
static uint64_t room[1 << 16];

struct row {
    int32_t start, fde;
};

/* The first module is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *context)
{
    struct cfi_module *module = context;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr;
        struct cfi_range range = {low, low + part->p_memsz};
        if (part->p_type == PT_GNU_EH_FRAME)
            module->header = range;
        else if (part->p_type == PT_LOAD && part->p_flags & PF_R && module->ranges < CFI_MAX_RANGES)
            module->readable[module->ranges++] = range;
    }
    return 1;
}

static int32_t word_at(uintptr_t at)
{
    int32_t word;
    memcpy(&word, (const void *)at, sizeof word);
    return word;
}

TEST(the_rows_are_the_linkers)
{
    struct cfi_module module = {.ranges = 0};
    uintptr_t header, frames, made = (uintptr_t)room;
    size_t size, count;
    assert_int_equal(dl_iterate_phdr(find_program, &module), 1);
    header = module.header.low;
    if (!header || word_at(header) != 0x3b031b01)
        skip();
    frames = header + 4 + (uintptr_t)(intptr_t)word_at(header + 4);
    count = (size_t)word_at(header + 8);
    size = cfi_table_size(&module, frames);
    assert_in_range(size, 12, sizeof room);
    cfi_table_make(&module, frames, made, size);
    assert_true(module.header.low == made && module.header.high == made + size);
    assert_int_equal(word_at(made + 8), count);
    for (size_t i = 0; i < count; i++) {
        uintptr_t at = 12 + i * sizeof(struct row);
        assert_true(made + (uintptr_t)(intptr_t)word_at(made + at) ==
                    header + (uintptr_t)(intptr_t)word_at(header + at));
        assert_true(made + (uintptr_t)(intptr_t)word_at(made + at + 4) ==
                    header + (uintptr_t)(intptr_t)word_at(header + at + 4));
    }
}

TEST(nothing_is_made_of_no_entries)
{
    static const uint32_t none[4];
    uintptr_t at = (uintptr_t)none;
    struct cfi_module module = {.readable = {{at, at + sizeof none}}, .ranges = 1};
    assert_int_equal(cfi_table_size(&module, at), 0);
    assert_int_equal(cfi_table_size(&module, at - 4), 0);
    assert_int_equal(cfi_table_size(&module, at + sizeof none - 2), 0);
}
