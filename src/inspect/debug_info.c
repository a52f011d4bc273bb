/*
 * Whether a program was built with frame pointers is not recorded anywhere, but its CFI shows how
 * each function finds its frame: from rsp where the compiler omitted frame pointers, from rbp where
 * it set one up (functions with variable-length arrays and the like always do). The share of the
 * second kind, among functions long enough not to be leaves, decides.
 */
#include "inspect/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspect/elf_bounds.h"
#include "inspect/program_elf.h"

#define MOST_TABLE    ((size_t)256 << 20) /* bytes of .eh_frame */
#define SAMPLE        2000                /* functions examined, about */
#define TYPICAL_ENTRY 40                  /* bytes of a function in .eh_frame */
#define LEAST_SIZE    64                  /* bytes of code of a function that counts */
#define LEAST_SAMPLE  8                   /* functions needed for a verdict */
#define STARTUP_DEBUG ((size_t)1 << 20)   /* more bytes than this are the program's own */
#define RBP           6                   /* DWARF register number */

/* MARK: CFI instructions */

struct bytes {
    const uint8_t *at, *end;
};

static uint64_t take_uleb(struct bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; bytes->at < bytes->end; shift += 7) {
        uint8_t byte = *bytes->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return value;
}

static void skip(struct bytes *bytes, uint64_t count)
{
    uint64_t left = (uint64_t)(bytes->end - bytes->at);
    bytes->at += count < left ? count : left;
}

/*
 * The operands of an instruction: a digit is that many bytes, 'u' a LEB128 number (signed and
 * unsigned have the same length), 'b' a block. NULL: unknown instruction, the rest cannot be
 * decoded.
 */
static const char *operands(unsigned instruction)
{
    static const char *const table[] = {
        [DW_CFA_nop] = "",
        [DW_CFA_advance_loc1] = "1",
        [DW_CFA_advance_loc2] = "2",
        [DW_CFA_advance_loc4] = "4",
        [DW_CFA_offset_extended] = "uu",
        [DW_CFA_restore_extended] = "u",
        [DW_CFA_undefined] = "u",
        [DW_CFA_same_value] = "u",
        [DW_CFA_register] = "uu",
        [DW_CFA_remember_state] = "",
        [DW_CFA_restore_state] = "",
        [DW_CFA_def_cfa] = "uu",
        [DW_CFA_def_cfa_register] = "u",
        [DW_CFA_def_cfa_offset] = "u",
        [DW_CFA_def_cfa_expression] = "b",
        [DW_CFA_expression] = "ub",
        [DW_CFA_offset_extended_sf] = "uu",
        [DW_CFA_def_cfa_sf] = "uu",
        [DW_CFA_def_cfa_offset_sf] = "u",
        [DW_CFA_val_offset] = "uu",
        [DW_CFA_val_offset_sf] = "uu",
        [DW_CFA_val_expression] = "ub",
        [DW_CFA_GNU_args_size] = "u",
        [DW_CFA_GNU_negative_offset_extended] = "uu",
    };
    return instruction < sizeof table / sizeof *table ? table[instruction] : NULL;
}

static void skip_operands(struct bytes *bytes, const char *kinds)
{
    for (; *kinds; kinds++) {
        if (*kinds == 'u')
            (void)take_uleb(bytes);
        else if (*kinds == 'b')
            skip(bytes, take_uleb(bytes));
        else
            skip(bytes, (uint64_t)(*kinds - '0'));
    }
}

enum base { BASE_STACK, BASE_FRAME, BASE_OTHER };

/* How a function finds its frame after its prologue. */
static enum base frame_base(struct bytes bytes)
{
    while (bytes.at < bytes.end) {
        unsigned instruction = *bytes.at++;
        if (instruction >> 6 == DW_CFA_offset >> 6)
            (void)take_uleb(&bytes);
        if (instruction >> 6)
            continue;
        if (instruction == DW_CFA_def_cfa_expression)
            return BASE_OTHER; /* a PLT, or a realigned stack */
        struct bytes operand = bytes;
        if ((instruction == DW_CFA_def_cfa || instruction == DW_CFA_def_cfa_sf ||
             instruction == DW_CFA_def_cfa_register) &&
            take_uleb(&operand) == RBP)
            return BASE_FRAME;
        const char *kinds = operands(instruction);
        if (!kinds)
            return BASE_OTHER;
        skip_operands(&bytes, kinds);
    }
    return BASE_STACK;
}

/* MARK: CFI entries */

/* The pointer encoding of a CIE; -1: not known. */
static int pointer_encoding(const Dwarf_CIE *cie)
{
    const uint8_t *data = cie->augmentation_data;
    if (!cie->augmentation || cie->augmentation[0] != 'z' || !data)
        return -1;
    for (size_t i = 1, at = 0; cie->augmentation[i] && at < cie->augmentation_data_size; i++) {
        char c = cie->augmentation[i];
        if (c == 'R')
            return data[at];
        if (c == 'L')
            at++;
        else if (c == 'P')
            at += (data[at] & 7) == DW_EH_PE_absptr || (data[at] & 7) == DW_EH_PE_udata8 ? 9 : 5;
        else if (c != 'S' && c != 'B')
            return -1;
    }
    return DW_EH_PE_absptr;
}

/*
 * Reads the length of a function's code and its instructions. Returns false if that is impossible.
 */
static bool read_function(const Dwarf_FDE *fde, int encoding, uint64_t *length,
                          struct bytes *instructions)
{
    size_t width = (encoding & 7) == DW_EH_PE_udata4                                        ? 4
                   : (encoding & 7) == DW_EH_PE_absptr || (encoding & 7) == DW_EH_PE_udata8 ? 8
                                                                                            : 0;
    struct bytes bytes = {fde->start, fde->end};
    if (encoding < 0 || width == 0 || (size_t)(bytes.end - bytes.at) < 2 * width)
        return false;
    *length = 0;
    memcpy(length, bytes.at + width, width); /* x86-64 only: little-endian */
    skip(&bytes, 2 * width);
    skip(&bytes, take_uleb(&bytes));
    *instructions = bytes;
    return true;
}

/* The CIEs passed so far, by offset: nearly all files have one or two. */
struct encodings {
    Dwarf_Off place[16];
    int encoding[16];
    unsigned count;
};

static int find_encoding(const struct encodings *known, Dwarf_Off place)
{
    for (unsigned i = 0; i < known->count; i++)
        if (known->place[i] == place)
            return known->encoding[i];
    return -1;
}

static void keep_encoding(struct encodings *known, Dwarf_Off place, const Dwarf_CIE *cie)
{
    unsigned most = sizeof known->place / sizeof *known->place;
    unsigned at = known->count < most ? known->count++ : most - 1;
    known->place[at] = place;
    known->encoding[at] = pointer_encoding(cie);
}

static void count_function(struct debug_info *info, const Dwarf_FDE *fde, int encoding)
{
    uint64_t length;
    struct bytes instructions;
    if (!read_function(fde, encoding, &length, &instructions) || length < LEAST_SIZE)
        return;
    enum base base = frame_base(instructions);
    info->functions += base != BASE_OTHER;
    info->framed += base == BASE_FRAME;
}

static void sample_table(struct debug_info *info, const unsigned char *ident, Elf_Data *table)
{
    struct encodings known = {0};
    Dwarf_CFI_Entry entry;
    Dwarf_Off next;
    size_t stride = 1 + table->d_size / ((size_t)SAMPLE * TYPICAL_ENTRY), count = 0;
    for (Dwarf_Off at = 0; at < table->d_size; at = next) {
        next = (Dwarf_Off)-1;
        int wrong = dwarf_next_cfi(ident, table, true, at, &next, &entry);
        if (next == (Dwarf_Off)-1 || next <= at)
            break;
        if (wrong != 0)
            continue;
        if (dwarf_cfi_cie_p(&entry))
            keep_encoding(&known, at, &entry.cie);
        else if (count++ % stride == 0)
            count_function(info, &entry.fde, find_encoding(&known, entry.fde.CIE_pointer));
    }
}

static void decide_frames(struct debug_info *info)
{
    if (info->functions < LEAST_SAMPLE)
        return;
    double share = (double)info->framed / info->functions;
    info->frames = share >= 0.8 ? FRAMES_YES : share <= 0.2 ? FRAMES_NO : FRAMES_MIXED;
}

static void read_frames(struct debug_info *info, Elf *elf, Elf_Scn *section)
{
    size_t length;
    GElf_Ehdr header;
    GElf_Shdr place;
    const char *ident = elf_getident(elf, &length);
    if (!ident || !gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        !gelf_getshdr(section, &place) || place.sh_type == SHT_NOBITS || place.sh_size > MOST_TABLE)
        return;
    Elf_Data *table = elf_rawdata(section, NULL);
    if (table && table->d_buf)
        sample_table(info, (const unsigned char *)ident, table);
    decide_frames(info);
}

/* MARK: Debug information */

/* Whether a unit has code other than that at the entry point, which is the compiler's start-up
 * code. */
static bool is_about_code(Dwarf_Die *unit, uint64_t entry)
{
    Dwarf_Addr base, start, end;
    bool any = false;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
        if (start <= entry && entry < end)
            return false;
        any = any || start < end;
    }
    return any;
}

/*
 * The compiler's start-up files may bring debug information into a program that has none of its
 * own. Returns whether there is more than that.
 */
static bool is_about_program(Elf *elf)
{
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    GElf_Ehdr header;
    bool found = false;
    if (!gelf_getehdr(elf, &header))
        header.e_entry = 0;
    while (dwarf && !found && dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
        found = is_about_code(&die, header.e_entry);
    (void)dwarf_end(dwarf);
    return found;
}

static void read_sections(struct debug_info *info, Elf *elf)
{
    size_t names;
    uint64_t size = 0; /* of .debug_info */
    if (elf_getshdrstrndx(elf, &names) < 0)
        return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || header.sh_type == SHT_NOBITS)
            continue;
        if (header.sh_type == SHT_SYMTAB)
            info->symbols = true;
        else if (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)
            size = header.sh_size;
        else if (strcmp(name, ".eh_frame") == 0)
            read_frames(info, elf, section);
    }
    info->dwarf = size > STARTUP_DEBUG || (size > 0 && is_about_program(elf));
}

static void read_build_id(struct debug_info *info, Elf *elf)
{
    const void *bytes;
    ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
    if (size <= 0 || (size_t)size * 2 >= sizeof info->build_id)
        return;
    for (ssize_t i = 0; i < size; i++)
        (void)snprintf(info->build_id + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
}

/* Sets `file` if it is a regular file and not the program itself. */
static bool try_file(char file[PATH_MAX], const char *self, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool try_file(char file[PATH_MAX], const char *self, const char *format, ...)
{
    struct stat made, own;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(file, PATH_MAX, format, args);
    va_end(args);
    if (n > 0 && n < PATH_MAX && stat(file, &made) == 0 && S_ISREG(made.st_mode) &&
        !(stat(self, &own) == 0 && own.st_dev == made.st_dev && own.st_ino == made.st_ino))
        return true;
    *file = '\0';
    return false;
}

bool debug_info_linked(const char *path, const char *link, char file[PATH_MAX])
{
    const char *slash = strrchr(path, '/'), *from = slash ? path : ".";
    int folder = slash ? (int)(slash - path) : 1;
    if (*link == '\0' || strchr(link, '/'))
        return false;
    return try_file(file, path, "%.*s/%s", folder, from, link) ||
           try_file(file, path, "%.*s/.debug/%s", folder, from, link) ||
           try_file(file, path, "/usr/lib/debug%.*s/%s", folder, from, link);
}

static void find_file(struct debug_info *info, const char *self)
{
    if (*info->build_id && try_file(info->file, self, "/usr/lib/debug/.build-id/%.2s/%s.debug",
                                    info->build_id, info->build_id + 2))
        return;
    (void)debug_info_linked(self, info->link, info->file);
}

void debug_info_look(struct debug_info *info, const char *path)
{
    memset(info, 0, sizeof *info);
    int fd = program_open(path);
    if (fd < 0)
        return;
    errno = 0;
    if (!elf_bounds_problem(fd)) {
        Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
        if (elf && elf_kind(elf) == ELF_K_ELF) {
            GElf_Word crc;
            const char *link = dwelf_elf_gnu_debuglink(elf, &crc);
            (void)snprintf(info->link, sizeof info->link, "%s", link ? link : "");
            read_build_id(info, elf);
            read_sections(info, elf);
            info->looked = errno != ENOMEM;
        }
        (void)elf_end(elf);
    }
    info->no_memory = errno == ENOMEM;
    if (info->looked)
        find_file(info, path);
    (void)close(fd);
}

bool debug_info_has_names(const struct debug_info *info)
{
    return info->symbols || info->dwarf || *info->file;
}

bool debug_info_has_lines(const struct debug_info *info)
{
    return info->dwarf || *info->file;
}

/* MARK: Packages */

/* Runs dpkg-query -S and stores the beginning of its output. */
static size_t ask_dpkg(const char *path, char *said, size_t size)
{
    char *argv[] = {"dpkg-query", "-S", (char *)(uintptr_t)path, NULL};
    char *envp[] = {"LC_ALL=C", "PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t child;
    size_t have = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    (void)posix_spawn_file_actions_init(&actions);
    int wrong = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!wrong)
        wrong = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!wrong)
        wrong = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (!wrong)
        wrong = posix_spawnp(&child, argv[0], &actions, NULL, argv, envp);
    bool started = !wrong;
    errno = wrong;
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    while (started && have < size - 1) {
        ssize_t n = read(ends[0], said + have, size - 1 - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    (void)close(ends[0]);
    while (started && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    said[have] = '\0';
    return have;
}

/* "pigz: /usr/bin/pigz" or "libc6:amd64, other: /lib/x". */
static bool first_package(const char *said, char *package, size_t size)
{
    size_t length = strcspn(said, ":, \n");
    if (length == 0 || length >= size || said[length] == '\n' || said[length] == '\0' ||
        strncmp(said, "diversion ", 10) == 0)
        return false;
    (void)snprintf(package, size, "%.*s", (int)length, said);
    return true;
}

bool debug_info_package(const char *path, char *package, size_t size)
{
    char real[PATH_MAX], said[4096];
    /* dpkg would interpret these characters as a pattern. */
    if (!realpath(path, real) || strpbrk(real, "*?[]\\"))
        return false;
    if (ask_dpkg(real, said, sizeof said) > 0 && first_package(said, package, size))
        return true;
    if (errno == ENOMEM)
        return false;
    /* Packages from before the merge of /bin into /usr/bin list the old path. */
    return strncmp(real, "/usr/", 5) == 0 && ask_dpkg(real + 4, said, sizeof said) > 0 &&
           first_package(said, package, size);
}
