/*
 * The rules read from .eh_frame must be those that readelf prints, for each row of each function of
 * the C library, the loader, this program and the C++ library; and damaged tables must yield some
 * rule or none.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "host/unwind_cfi.h"

/* MARK: Against readelf */

struct module {
    const char *part; /* of its path */
    char path[512];
    uintptr_t bias;
    struct cfi_module cfi;
};

static int see_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct module *m = context;
    (void)size;
    if (m->part ? !strstr(info->dlpi_name, m->part) : info->dlpi_name[0] != 0)
        return 0;
    (void)snprintf(m->path, sizeof m->path, "%s", m->part ? info->dlpi_name : "/proc/self/exe");
    if (!m->part) {
        ssize_t n = readlink("/proc/self/exe", m->path, sizeof m->path - 1);
        m->path[n > 0 ? n : 0] = 0;
    }
    m->bias = info->dlpi_addr;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t low = m->bias + info->dlpi_phdr[i].p_vaddr;
        struct cfi_range range = {low, low + info->dlpi_phdr[i].p_memsz};
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            m->cfi.header = range;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_R &&
            m->cfi.ranges < CFI_MAX_RANGES)
            m->cfi.readable[m->cfi.ranges++] = range;
    }
    return 1;
}

static bool find_module(const char *part, struct module *m)
{
    memset(m, 0, sizeof *m);
    m->part = part;
    return dl_iterate_phdr(see_module, m) == 1;
}

/* A row as readelf prints it; "exp", "vexp" and registers unchanged. */
struct row {
    uintptr_t low, high;
    char end[32], fp[16], ra[16];
};

/* Writes the rule as readelf would; where readelf gives no details, neither does this. */
static void write_rule(const struct cfi_rule *rule, struct row *row)
{
    (void)snprintf(row->end, sizeof row->end, rule->indirect ? "exp" : "%s%+d",
                   rule->base == CFI_SP ? "rsp" : "rbp", rule->offset);
    if (rule->fp == CFI_FP_AT_END)
        (void)snprintf(row->fp, sizeof row->fp, "c%+d", rule->fp_offset);
    else
        (void)snprintf(row->fp, sizeof row->fp, "%s",
                       rule->fp == CFI_FP_SAME    ? "u"
                       : rule->fp == CFI_FP_AT_FP ? "exp"
                                                  : "?");
}

static struct {
    unsigned rows, frames, unknown, wrong;
} seen;

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Whether the rule at one PC agrees with the row. */
static bool agrees(const struct row *row, const struct cfi_rule *rule)
{
    bool followed = starts(row->end, "rsp") || starts(row->end, "rbp");
    struct row ours = {0};
    switch (rule->kind) {
    case CFI_FRAME:
        seen.frames++;
        write_rule(rule, &ours);
        /* trail may have evaluated an expression, such as the one for the PLT. */
        if (strcmp(row->end, "exp") != 0 && strcmp(row->end, ours.end) != 0)
            return false;
        /* A register that is not involved is not printed, or is stored in another register. */
        return strcmp(row->fp, ours.fp) == 0 || (!row->fp[0] && rule->fp == CFI_FP_SAME) ||
               (starts(row->fp, "r") && rule->fp == CFI_FP_LOST);
    case CFI_END:
        return strcmp(row->ra, "u") == 0;
    case CFI_SIGNAL:
        return strcmp(row->end, "exp") == 0 || strcmp(row->ra, "exp") == 0 ||
               strcmp(row->ra, "c+168") == 0;
    case CFI_UNKNOWN:
        seen.unknown++;
        return !followed || strcmp(row->ra, "c-8") != 0;
    default:
        return false;
    }
}

static void check_at(const struct module *m, const struct row *row, uintptr_t at)
{
    struct cfi_rule rule = cfi_find(&m->cfi, m->bias + at);
    struct row ours = {0};
    if (agrees(row, &rule) || seen.wrong++ >= 5)
        return;
    write_rule(&rule, &ours);
    (void)fprintf(stderr, "%s 0x%" PRIxPTR ": kind %d, %s, fp %s; readelf: %s, fp %s, ra %s\n",
                  m->path, at, (int)rule.kind, ours.end, ours.fp, row->end, row->fp, row->ra);
}

static void check_row(const struct module *m, const struct row *row)
{
    if (row->low >= row->high)
        return;
    seen.rows++;
    check_at(m, row, row->low);
    check_at(m, row, row->high - 1);
}

/* Returns the next word of a line; "r10 (r10)" is one word. */
static char *next_word(char *line, char **save)
{
    char *word = strtok_r(line, " \n", save);
    while (word && word[0] == '(')
        word = strtok_r(NULL, " \n", save);
    return word;
}

/* A table as printed by readelf: a line of names, then lines of rules. */
struct table {
    int fp, ra; /* columns, or -1 */
    uintptr_t end;
    bool fde;
    struct row row;
};

static void read_names(struct table *t, char *line)
{
    char *save = NULL;
    int i = 0;
    t->fp = t->ra = -1;
    for (char *name = strtok_r(line, " \n", &save); name;
         name = strtok_r(NULL, " \n", &save), i++) {
        if (strcmp(name, "rbp") == 0)
            t->fp = i;
        if (strcmp(name, "ra") == 0)
            t->ra = i;
    }
}

static void read_row(struct table *t, char *line)
{
    char *save = NULL;
    int i = 0;
    memset(&t->row, 0, sizeof t->row);
    t->row.low = strtoull(line, NULL, 16);
    for (char *word = next_word(line, &save); word; word = next_word(NULL, &save), i++) {
        if (i == 1)
            (void)snprintf(t->row.end, sizeof t->row.end, "%s", word);
        if (i == t->fp)
            (void)snprintf(t->row.fp, sizeof t->row.fp, "%s", word);
        if (i == t->ra)
            (void)snprintf(t->row.ra, sizeof t->row.ra, "%s", word);
    }
}

static void end_row(const struct module *m, struct table *t, uintptr_t high)
{
    t->row.high = high;
    if (t->fde && t->row.end[0])
        check_row(m, &t->row);
    t->row.end[0] = 0;
}

static void read_line(const struct module *m, struct table *t, char *line)
{
    const char *range = strstr(line, " pc="), *header = strstr(line, "LOC ");
    if (range || strstr(line, " CIE ")) {
        end_row(m, t, t->end);
        t->fde = range != NULL;
        t->end = range ? strtoull(strstr(range, "..") + 2, NULL, 16) : 0;
    } else if (header) {
        read_names(t, line);
    } else if (strlen(line) > 17 && strspn(line, "0123456789abcdef") == 16 && line[16] == ' ' &&
               !strstr(line, "ZERO")) {
        end_row(m, t, strtoull(line, NULL, 16));
        read_row(t, line);
    }
}

static void compare_module(const char *part)
{
    struct table t = {.fp = -1, .ra = -1};
    char command[600], line[1024];
    struct module m;
    FILE *readelf;
    memset(&seen, 0, sizeof seen);
    if (!find_module(part, &m)) {
        print_message("# no %s\n", part);
        return;
    }
    (void)snprintf(command, sizeof command, "LC_ALL=C readelf -wF '%s' 2>/dev/null", m.path);
    readelf = popen(command, "r");
    assert_non_null(readelf);
    while (fgets(line, sizeof line, readelf)) {
        if (!strstr(line, ".debug_frame"))
            read_line(&m, &t, line);
    }
    end_row(&m, &t, t.end);
    /* readelf also complains about broken debug links. */
    (void)pclose(readelf);
    if (seen.rows == 0) {
        print_message("# no readelf\n");
        return;
    }
    print_message("# %s: %u rows, %u are frames, %u unknown\n", m.path, seen.rows, seen.frames / 2,
                  seen.unknown / 2);
    assert_int_equal(seen.wrong, 0);
    assert_true(seen.frames > seen.rows);
}

TEST(of_this_program)
{
    compare_module(NULL);
}

TEST(of_the_c_library)
{
    compare_module("/libc.so");
}

TEST(of_the_loader)
{
    compare_module("/ld-linux");
}

TEST(of_libstdcxx)
{
    (void)dlopen("libstdc++.so.6", RTLD_NOW);
    compare_module("/libstdc++");
}

TEST(of_libcrypto)
{
    (void)dlopen("libcrypto.so.3", RTLD_NOW);
    compare_module("/libcrypto");
}

/* MARK: Damage */

/* Reads memory that includes ASan's red zones between variables. */
__attribute__((no_sanitize("address"))) static void
copy_bytes(unsigned char *to, const volatile unsigned char *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
}

/* Returns the segment with this program's tables, in memory of exactly its size. */
static unsigned char *copy_tables(const struct module *m, struct cfi_module *copy)
{
    for (size_t i = 0; i < m->cfi.ranges; i++) {
        struct cfi_range range = m->cfi.readable[i];
        size_t size = range.high - range.low, at = m->cfi.header.low - range.low;
        unsigned char *bytes;
        if (at >= size)
            continue;
        bytes = malloc(size);
        assert_non_null(bytes);
        copy_bytes(bytes, (const unsigned char *)range.low, size);
        *copy = (struct cfi_module){.ranges = 1};
        copy->readable[0] = (struct cfi_range){(uintptr_t)bytes, (uintptr_t)bytes + size};
        copy->header.low = (uintptr_t)bytes + at;
        copy->header.high = copy->header.low + (m->cfi.header.high - m->cfi.header.low);
        return bytes;
    }
    fail_msg("no segment has the tables");
    return NULL;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* The sanitizers detect reads outside of them; the test's time limit detects endless loops. */
TEST(damaged_tables)
{
    struct cfi_module copy;
    struct module m;
    unsigned char *bytes;
    unsigned kinds[CFI_UNKNOWN + 1] = {0};
    uintptr_t moved, low;
    uint64_t state = 1;
    size_t size;
    assert_true(find_module(NULL, &m));
    bytes = copy_tables(&m, &copy);
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): copy_tables fills it. */
    moved = copy.header.low - m.cfi.header.low;
    low = copy.header.low;
    size = copy.readable[0].high - low;
    for (int i = 0; i < 200000; i++) {
        uintptr_t at = (uintptr_t)(i % 2 ? (void *)next_random : (void *)compare_module) + moved;
        size_t where = next_random(&state) % size;
        unsigned char *byte = (unsigned char *)low + where, old = *byte;
        *byte = (unsigned char)next_random(&state);
        kinds[cfi_find(&copy, at + next_random(&state) % 64).kind]++;
        /* Damage accumulates, but only for a while; in some cases the header is intact. */
        if (i % 64 == 0 || where < 64)
            copy_bytes((unsigned char *)low, (const unsigned char *)m.cfi.header.low, size);
        else if (i % 2)
            *byte = old;
    }
    print_message("# %u none, %u frames, %u unknown\n", kinds[CFI_NONE], kinds[CFI_FRAME],
                  kinds[CFI_UNKNOWN]);
    assert_true(kinds[CFI_NONE] > 0 && kinds[CFI_FRAME] > 1000);
    free(bytes);
}

TEST(small_headers)
{
    struct module m;
    struct cfi_module cut;
    assert_true(find_module("/libc.so", &m));
    cut = m.cfi;
    for (uintptr_t size = 0; size < 64; size++) {
        cut.header.high = cut.header.low + size;
        assert_int_equal(cfi_find(&cut, (uintptr_t)&lfind).kind, CFI_NONE);
    }
    cut = m.cfi;
    cut.ranges = 0;
    assert_int_equal(cfi_find(&cut, (uintptr_t)&lfind).kind, CFI_NONE);
    assert_int_equal(cfi_find(&m.cfi, (uintptr_t)&lfind).kind, CFI_FRAME);
    assert_int_equal(cfi_find(&m.cfi, 0).kind, CFI_NONE);
    assert_int_equal(cfi_find(&m.cfi, UINTPTR_MAX).kind, CFI_NONE);
}
