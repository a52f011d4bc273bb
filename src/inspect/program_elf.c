/*
 * libelf reads through the descriptor, never through a mapping: if the file shrinks meanwhile, that
 * is an error and not a signal. The header is checked here first, by the kernel's rules, because
 * libelf would allocate memory for as many sections as a header claims.
 */
#include "inspect/program_elf.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/text.h"

#define MOST_HEADERS (65536 / sizeof(Elf64_Phdr)) /* the kernel's limit */
#define MOST_DYNAMIC ((size_t)1 << 20)            /* bytes of tables that are read completely */
#define MOST_STRINGS ((size_t)64 << 20)
#define MOST_SYMBOLS ((size_t)256 << 20)
#define MOST_NOTES   ((size_t)1 << 20)

struct check {
    struct program *program;
    int fd;
    Elf *elf;
    GElf_Ehdr header;
    size_t segments;
    char title[2 * PATH_MAX + 64];

    Elf_Data *dynamic, *strings; /* NULL: none */
    bool pie;                    /* DF_1_PIE: a program, not a library */
    bool is_loader;              /* the dynamic loader itself, which can start programs */
    bool is_go;
};

int program_open(const char *path)
{
    struct stat file;
    return regular_file_open(path, NULL, &file);
}

/* MARK: The header */

/* libelf does not say why it fails, but malloc does. */
static bool lacks_memory(struct check *check)
{
    if (errno == ENOMEM)
        program_refuse(check->program, PROGRAM_NO_MEMORY, "%s: not examined: %s", check->title,
                       strerror(ENOMEM));
    return check->program->verdict == PROGRAM_NO_MEMORY;
}

static void refuse_broken(struct check *check, const char *what)
{
    if (lacks_memory(check))
        return;
    program_refuse(check->program, PROGRAM_NOT_EXECUTABLE,
                   "%s: %s: %s: the file is damaged or incomplete; build or copy it again",
                   check->title, strerror(ENOEXEC), what);
}

struct machine {
    unsigned number;
    const char *name;
};

static const struct machine machines[] = {
    {EM_386, "32-bit x86"},      {EM_X86_64, "x86-64"},    {EM_ARM, "32-bit ARM"},
    {EM_AARCH64, "arm64"},       {EM_RISCV, "RISC-V"},     {EM_S390, "s390x"},
    {EM_PPC64, "64-bit POWER"},  {EM_PPC, "32-bit POWER"}, {EM_MIPS, "MIPS"},
    {EM_LOONGARCH, "LoongArch"}, {EM_SPARCV9, "SPARC"},
};

static const char *machine_name(unsigned number)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].number == number)
            return machines[i].name;
    return NULL;
}

/* e_machine, which has the same offset in both classes. */
static unsigned machine_of(const unsigned char *head)
{
    unsigned a = head[18], b = head[19];
    return head[EI_DATA] == ELFDATA2MSB ? a << 8 | b : b << 8 | a;
}

static size_t read_begin(int fd, void *to, size_t size)
{
    ssize_t n = file_read_at(fd, to, size, 0);
    return n > 0 ? (size_t)n : 0;
}

bool program_sections_sane(int fd)
{
    unsigned char head[sizeof(Elf64_Ehdr)];
    Elf32_Ehdr small;
    Elf64_Ehdr large;
    if (read_begin(fd, head, sizeof head) < sizeof head)
        return false;
    memcpy(&small, head, sizeof small);
    memcpy(&large, head, sizeof large);
    return head[EI_CLASS] == ELFCLASS64 ? large.e_shnum != 0 || large.e_shoff == 0
                                        : small.e_shnum != 0 || small.e_shoff == 0;
}

/* Whether the file is for the architecture of this command. */
static bool check_machine(struct check *check, const unsigned char *head)
{
    unsigned char own[20];
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = self >= 0 && read_begin(self, own, sizeof own) == sizeof own;
    if (self >= 0)
        (void)close(self);
    if (!known || (own[EI_CLASS] == head[EI_CLASS] && own[EI_DATA] == head[EI_DATA] &&
                   machine_of(own) == machine_of(head)))
        return true;
    char number[32];
    const char *name = machine_name(machine_of(head)), *here = machine_name(machine_of(own));
    (void)snprintf(number, sizeof number, "ELF machine %u", machine_of(head));
    const char *kind = head[EI_CLASS] != own[EI_CLASS] && machine_of(own) == machine_of(head)
                           ? head[EI_CLASS] == ELFCLASS32 ? ", 32-bit" : ", 64-bit"
                           : "";
    program_refuse(check->program, PROGRAM_FOREIGN,
                   "%s is a program for another architecture (%s%s; this is %s): the recorder "
                   "cannot be loaded into it; build it for this one, or record it there",
                   check->title, name ? name : number, kind, here ? here : "another");
    return false;
}

static bool refuse_type(struct check *check)
{
    program_refuse(check->program, PROGRAM_NOT_EXECUTABLE,
                   "%s: %s: it is an object file or a core dump; link it to a program first",
                   check->title, strerror(ENOEXEC));
    return false;
}

/*
 * Checks what the kernel checks. Returns false if the program was refused or must not be examined.
 */
static bool check_header(struct check *check)
{
    union {
        unsigned char bytes[sizeof(Elf64_Ehdr)];
        Elf64_Ehdr elf;
    } head;
    size_t size = read_begin(check->fd, &head, sizeof head);
    const char *wrong = NULL;
    if (size < 20 || head.bytes[EI_CLASS] < ELFCLASS32 || head.bytes[EI_CLASS] > ELFCLASS64 ||
        head.bytes[EI_DATA] < ELFDATA2LSB || head.bytes[EI_DATA] > ELFDATA2MSB)
        wrong = "its ELF header is invalid";
    else if (!check_machine(check, head.bytes))
        return false;
    else if (size < sizeof head)
        wrong = "it ends within its ELF header";
    else if (head.elf.e_type != ET_EXEC && head.elf.e_type != ET_DYN)
        return refuse_type(check);
    else if (head.elf.e_phentsize != sizeof(Elf64_Phdr) || head.elf.e_phnum == 0 ||
             head.elf.e_phnum > MOST_HEADERS)
        wrong = "its program headers are invalid";
    /* An implausible number of sections: libelf must not be given the file. */
    else if (!program_sections_sane(check->fd))
        return false;
    if (wrong)
        refuse_broken(check, wrong);
    return wrong == NULL;
}

/* MARK: Segments */

static bool segment(const struct check *check, unsigned type, size_t *at, GElf_Phdr *found)
{
    for (; *at < check->segments; ++*at)
        if (gelf_getphdr(check->elf, (int)*at, found) && (!type || found->p_type == type))
            return true;
    return false;
}

static bool find_segment(const struct check *check, unsigned type, GElf_Phdr *found)
{
    size_t at = 0;
    return segment(check, type, &at, found);
}

/* Bytes of the file; NULL if they are outside it, or more than `most`. */
static Elf_Data *chunk(const struct check *check, uint64_t offset, uint64_t size, size_t most,
                       Elf_Type type)
{
    if (size == 0 || size > most || offset > INT64_MAX)
        return NULL;
    return elf_getdata_rawchunk(check->elf, (int64_t)offset, size, type);
}

/* The file offset of an address. Returns false if it is not in the file. */
static bool file_offset(const struct check *check, uint64_t address, uint64_t *offset)
{
    GElf_Phdr load;
    for (size_t at = 0; segment(check, PT_LOAD, &at, &load); at++) {
        if (address < load.p_vaddr || address - load.p_vaddr >= load.p_filesz)
            continue;
        *offset = load.p_offset + (address - load.p_vaddr);
        return *offset >= load.p_offset;
    }
    return false;
}

/* Whether the file contains everything that has to be loaded. */
static bool is_whole(const struct check *check)
{
    struct stat file;
    GElf_Phdr load;
    uint64_t size = fstat(check->fd, &file) == 0 ? (uint64_t)file.st_size : 0;
    for (size_t at = 0; segment(check, PT_LOAD, &at, &load); at++)
        if (load.p_offset > size || load.p_filesz > size - load.p_offset)
            return false;
    return true;
}

/* Reads the path of the dynamic loader as the kernel does. Returns false after refusing. */
static bool read_loader(struct check *check)
{
    GElf_Phdr interp;
    if (!find_segment(check, PT_INTERP, &interp))
        return true;
    Elf_Data *path = interp.p_filesz >= 2
                         ? chunk(check, interp.p_offset, interp.p_filesz, PATH_MAX, ELF_T_BYTE)
                         : NULL;
    const char *text = path ? path->d_buf : NULL;
    if (!text || text[path->d_size - 1] != '\0') {
        refuse_broken(check, "the name of its loader cannot be read");
        return false;
    }
    (void)snprintf(check->program->loader, sizeof check->program->loader, "%s", text);
    return true;
}

/* MARK: Libraries */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void keep(char *to, size_t size, const char *text)
{
    if (*to == '\0' && strlen(text) < size)
        (void)snprintf(to, size, "%s", text);
}

/* Notes a library that the program needs, linked by name or by path. */
static void note_library(struct check *check, const char *needed)
{
    struct program *program = check->program;
    const char *name = path_name(needed);
    if (begins(name, "libasan.so") || begins(name, "libclang_rt.asan")) {
        program->sanitizers |= PROGRAM_ASAN;
        if (!strpbrk(needed, " :$"))
            keep(program->first, sizeof program->first, needed);
    } else if (begins(name, "libtsan.so") || begins(name, "libclang_rt.tsan")) {
        program->sanitizers |= PROGRAM_TSAN;
    } else if (begins(name, "liblsan.so")) {
        program->sanitizers |= PROGRAM_LSAN;
    } else if (begins(name, "libgomp.so") || begins(name, "libomp.so") ||
               begins(name, "libiomp5.so")) {
        keep(program->openmp, sizeof program->openmp, name);
    } else if (begins(name, "libjli.so") || begins(name, "libjvm.so")) {
        program->is_java = true;
    }
}

/* The string at an offset of the dynamic string table; "" if there is none. */
static const char *dynamic_string(const struct check *check, uint64_t offset)
{
    if (!check->strings || offset >= check->strings->d_size)
        return "";
    const char *text = (const char *)check->strings->d_buf + offset;
    return memchr(text, '\0', check->strings->d_size - offset) ? text : "";
}

static void find_strings(struct check *check)
{
    uint64_t address = 0, size = 0, offset;
    GElf_Dyn entry;
    for (int i = 0; gelf_getdyn(check->dynamic, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag == DT_STRTAB)
            address = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_STRSZ)
            size = entry.d_un.d_val;
    }
    if (address && file_offset(check, address, &offset))
        check->strings = chunk(check, offset, size, MOST_STRINGS, ELF_T_BYTE);
}

static void read_dynamic(struct check *check)
{
    GElf_Phdr place;
    GElf_Dyn entry;
    if (!find_segment(check, PT_DYNAMIC, &place))
        return;
    check->dynamic = chunk(check, place.p_offset, place.p_filesz, MOST_DYNAMIC, ELF_T_DYN);
    if (!check->dynamic)
        return;
    find_strings(check);
    for (int i = 0; gelf_getdyn(check->dynamic, i, &entry) && entry.d_tag != DT_NULL; i++) {
        if (entry.d_tag == DT_NEEDED)
            note_library(check, dynamic_string(check, entry.d_un.d_val));
        else if (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE))
            check->pie = true;
        else if (entry.d_tag == DT_SONAME)
            check->is_loader = begins(dynamic_string(check, entry.d_un.d_val), "ld-linux");
    }
}

/* MARK: Symbols and sections */

static void note_symbol(struct check *check, const char *name)
{
    if (strcmp(name, "__asan_init") == 0)
        check->program->sanitizers |= PROGRAM_ASAN;
    else if (strcmp(name, "__tsan_init") == 0)
        check->program->sanitizers |= PROGRAM_TSAN;
    else if (strcmp(name, "__msan_init") == 0)
        check->program->sanitizers |= PROGRAM_MSAN;
    else if (strcmp(name, "__lsan_init") == 0)
        check->program->sanitizers |= PROGRAM_LSAN;
    else if (strcmp(name, "JLI_Launch") == 0)
        check->program->is_java = true;
}

static bool has_text(const Elf_Data *data, const char *text)
{
    return memmem(data->d_buf, data->d_size, text, strlen(text)) != NULL;
}

static void read_symbols(struct check *check, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Scn *names = elf_getscn(check->elf, header->sh_link);
    GElf_Shdr names_header;
    if (header->sh_size > MOST_SYMBOLS || !names || !gelf_getshdr(names, &names_header) ||
        names_header.sh_type != SHT_STRTAB || names_header.sh_size > MOST_SYMBOLS)
        return;
    /* Most programs have none of these names: then the symbols need not be read. */
    Elf_Data *text = elf_getdata(names, NULL);
    if (!text || !text->d_buf || text->d_size == 0 ||
        ((const char *)text->d_buf)[text->d_size - 1] != '\0' ||
        (!has_text(text, "san_init") && !has_text(text, "JLI_Launch")))
        return;
    Elf_Data *symbols = elf_getdata(section, NULL);
    GElf_Sym symbol;
    for (int i = 0; symbols && gelf_getsym(symbols, i, &symbol); i++)
        if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < text->d_size)
            note_symbol(check, (const char *)text->d_buf + symbol.st_name);
}

/*
 * Go's linker writes a section with the version: 14 bytes of magic, two bytes of format, and, in
 * the format of Go 1.18 and later, at offset 32 the version's length (below 128) and text.
 */
static void read_go_version(struct check *check, const GElf_Shdr *header)
{
    Elf_Data *data = chunk(check, header->sh_offset, header->sh_size, MOST_NOTES, ELF_T_BYTE);
    const unsigned char *text = data ? data->d_buf : NULL;
    if (!text || data->d_size < 34 || !(text[15] & 2) || text[32] >= 64 ||
        text[32] > data->d_size - 33 || !begins((const char *)text + 33, "go1."))
        return;
    (void)snprintf(check->program->go_version, sizeof check->program->go_version, "%.*s",
                   (int)text[32], (const char *)text + 33);
}

static void read_sections(struct check *check)
{
    size_t names;
    if (elf_getshdrstrndx(check->elf, &names) < 0)
        return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(check->elf, section)) != NULL;) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header))
            continue;
        const char *name = elf_strptr(check->elf, names, header.sh_name);
        if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB)
            read_symbols(check, section, &header);
        if (!name)
            continue;
        if (strcmp(name, ".go.buildinfo") == 0)
            read_go_version(check, &header);
        if (strcmp(name, ".go.buildinfo") == 0 || strcmp(name, ".note.go.buildid") == 0)
            check->is_go = true;
    }
}

/* Finds Go's build ID, which remains when sections are stripped. */
static void read_notes(struct check *check)
{
    GElf_Phdr place;
    for (size_t at = 0; segment(check, PT_NOTE, &at, &place); at++) {
        Elf_Type type = place.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
        Elf_Data *notes = chunk(check, place.p_offset, place.p_filesz, MOST_NOTES, type);
        GElf_Nhdr note;
        size_t offset = 0, next, name, content;
        while (notes && (next = gelf_getnote(notes, offset, &note, &name, &content)) > 0) {
            if (note.n_type == 4 && note.n_namesz == 4 &&
                memcmp((const char *)notes->d_buf + name, "Go", 3) == 0)
                check->is_go = true;
            offset = next;
        }
    }
}

/* MARK: Verdict */

/* What works for every program: docs/importing.md. */
#define KERNEL_VIEW "'perf sched record', then 'trail import'"

static bool is_glibc(const char *loader)
{
    const char *name = path_name(loader);
    return begins(name, "ld-linux") || begins(name, "ld64.so.") || begins(name, "ld.so.1");
}

static void refuse_static(struct check *check)
{
    if (check->is_loader)
        return;
    if (check->header.e_type == ET_DYN && check->dynamic && !check->pie)
        program_refuse(check->program, PROGRAM_STATIC,
                       "%s is a shared library, or a static program: it requests no dynamic "
                       "loader, which would load the recorder; record a program that uses it",
                       check->title);
    else
        program_refuse(check->program, PROGRAM_STATIC,
                       "%s is linked statically%s: there is no dynamic loader that could load the "
                       "recorder; link it without %s, link libtrail-record into it "
                       "(trail/record.h), or record the scheduler: " KERNEL_VIEW,
                       check->title, check->dynamic ? " (static-pie)" : "",
                       check->dynamic ? "-static-pie" : "-static");
}

static void check_loader(struct check *check)
{
    const char *loader = check->program->loader;
    struct stat file;
    if (begins(path_name(loader), "ld-musl-"))
        program_refuse(check->program, PROGRAM_OTHER_LIBC,
                       "%s is linked with musl (its loader is %s): the recorder is made for glibc "
                       "and cannot be loaded into it; build it with glibc, link libtrail-record "
                       "into it (trail/record.h), or record the scheduler: " KERNEL_VIEW,
                       check->title, loader);
    else if (!is_glibc(loader))
        program_refuse(
            check->program, PROGRAM_OTHER_LIBC,
            "%s has a loader that is not glibc's, %s: the recorder is made for glibc and "
            "cannot be loaded into it; build it with glibc",
            check->title, loader);
    /* stat(2), because qemu-user applies its root folder (-L) to that, but not to access(2). */
    else if (stat(loader, &file) < 0)
        program_refuse(
            check->program, PROGRAM_NOT_FOUND,
            "%s: the loader that it requests, %s: %s; install the libc that it was built "
            "with",
            check->title, loader, strerror(errno));
}

static void check_kind(struct check *check)
{
    const char *version = check->program->go_version;
    if (check->is_go)
        program_refuse(
            check->program, PROGRAM_GO,
            "%s is a Go program%s%s%s: its goroutines are not threads, and cannot be "
            "seen from outside; Go records itself: runtime/trace, or net/http/pprof and "
            "curl .../debug/pprof/trace, then trail or go tool trace; the scheduler's view "
            "of its threads: " KERNEL_VIEW,
            check->title, *version ? " (" : "", version, *version ? ")" : "");
    else if (*check->program->loader == '\0')
        refuse_static(check);
    else
        check_loader(check);
}

void program_inspect_elf(struct program *program, int fd)
{
    struct check check = {.program = program, .fd = fd};
    (void)program_title(program, check.title, sizeof check.title);
    errno = 0;
    if (!check_header(&check) || elf_version(EV_CURRENT) == EV_NONE)
        return;
    check.elf = elf_begin(fd, ELF_C_READ, NULL);
    if (!check.elf) {
        (void)lacks_memory(&check);
        return;
    }
    if (elf_kind(check.elf) != ELF_K_ELF || !gelf_getehdr(check.elf, &check.header) ||
        elf_getphdrnum(check.elf, &check.segments) < 0 || check.segments != check.header.e_phnum) {
        refuse_broken(&check, "its program headers cannot be read");
    } else if (!is_whole(&check)) {
        refuse_broken(&check, "it ends before its segments do");
    } else if (read_loader(&check)) {
        read_dynamic(&check);
        read_sections(&check);
        read_notes(&check);
        program->looked = !lacks_memory(&check);
        if (program->looked)
            check_kind(&check);
    }
    (void)elf_end(check.elf);
}
