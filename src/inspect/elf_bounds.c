/* Adds up what the compressed sections of an ELF file unpack to: see elf_bounds.h. */
#include "inspect/elf_bounds.h"

#include <endian.h>
#include <gelf.h>
#include <lzma.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "inspect/program_elf.h"

/* Compilers' debug information shrinks to a third or a fifth; zlib reaches 1:1032, xz 1:7000. */
#define MOST_RATIO 32
#define ALWAYS     ((uint64_t)64 << 20) /* bytes that any file may unpack to */

#define XZ_MEMORY ((uint64_t)64 << 20) /* liblzma's dictionary */

const char elf_bounds_no_elf[] = "not an ELF program";

/* The size of an xz file's contents; if more than `most`, a lower bound. Its index may lie. */
static uint64_t xz_size(const Elf_Data *packed, uint64_t most)
{
    unsigned char piece[16384];
    uint64_t size = 0;
    lzma_stream xz = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&xz, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
        return UINT64_MAX;
    xz.next_in = packed->d_buf;
    xz.avail_in = packed->d_size;
    lzma_ret result = LZMA_OK;
    while (result == LZMA_OK && size <= most) {
        xz.next_out = piece;
        xz.avail_out = sizeof piece;
        result = lzma_code(&xz, LZMA_FINISH);
        size += sizeof piece - xz.avail_out;
    }
    lzma_end(&xz);
    return result == LZMA_MEMLIMIT_ERROR ? UINT64_MAX : size;
}

/* The size to which a section unpacks; 0: not compressed. */
static uint64_t unpacked(Elf_Scn *section, const GElf_Shdr *header, const char *name, uint64_t most)
{
    GElf_Chdr compression;
    uint64_t size;
    if (header->sh_type == SHT_NOBITS)
        return 0;
    if (header->sh_flags & SHF_COMPRESSED)
        return gelf_getchdr(section, &compression) ? compression.ch_size : 0;
    bool is_old = strncmp(name, ".zdebug", 7) == 0;
    if (!is_old && strcmp(name, ".gnu_debugdata") != 0)
        return 0;
    const Elf_Data *data = elf_rawdata(section, NULL);
    if (!data || !data->d_buf)
        return 0;
    if (!is_old)
        return xz_size(data, most);
    if (data->d_size < 12)
        return 0;
    memcpy(&size, (const char *)data->d_buf + 4, sizeof size); /* after "ZLIB" */
    return be64toh(size);
}

static bool sections_bounded(Elf *elf, uint64_t most)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) < 0)
        return true;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header))
            continue;
        const char *name = elf_strptr(elf, names, header.sh_name);
        uint64_t size = unpacked(section, &header, name ? name : "", most);
        if (size > most)
            return false;
        most -= size;
    }
    return true;
}

/* Bytes of the file without its holes, which cost nothing to make; some file systems do not report
 * them. */
static uint64_t stored_size(const struct stat *status)
{
    uint64_t size = (uint64_t)status->st_size, stored = (uint64_t)status->st_blocks * 512;
    return stored > 0 && stored < size ? stored : size;
}

const char *elf_bounds_problem(int fd)
{
    char magic[SELFMAG];
    struct stat status;
    if (file_read_at(fd, magic, sizeof magic, 0) != SELFMAG ||
        memcmp(magic, ELFMAG, SELFMAG) != 0 || fstat(fd, &status) < 0)
        return elf_bounds_no_elf;
    if (elf_version(EV_CURRENT) == EV_NONE || !program_sections_sane(fd))
        return "damaged ELF file: more sections than a program has";
    uint64_t most = ALWAYS + MOST_RATIO * stored_size(&status);
    if ((uint64_t)status.st_size > most)
        return "nearly all of the file is holes";
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
    bool bounded = !elf || sections_bounded(elf, most);
    (void)elf_end(elf);
    return bounded ? NULL : "its compressed sections are too large: unpack them with objcopy";
}
