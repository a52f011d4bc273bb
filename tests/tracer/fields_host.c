/*
 * Reads fields and logs them: see fields.py.
 *
 *     fields-host FORMAT TRACE
 *
 * Lines of the input: "i NAME VALUE", "d NAME BITS", "t NAME TEXT" add a field; NAME and TEXT are
 * bytes in hexadecimal, "-" if empty; BITS are the bits of a double. "log" logs the fields added
 * since the last one.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trail/record.h>

#define FIELDS 64

static trail_field fields[FIELDS];
static size_t count;

static char *bytes_of(const char *hex)
{
    size_t size = strlen(hex) / 2;
    char *bytes = calloc(1, size + 1);
    for (size_t i = 0; bytes && i < size; i++) {
        unsigned byte = 0;
        (void)sscanf(hex + 2 * i, "%2x", &byte);
        bytes[i] = (char)byte;
    }
    return bytes;
}

static trail_field field_of(char kind, const char *name, const char *value)
{
    uint64_t bits;
    double number;
    if (kind == 'i')
        return trail_field_int(name, strtoll(value, NULL, 10));
    if (kind == 't')
        return trail_field_text(name, bytes_of(value));
    bits = strtoull(value, NULL, 16);
    memcpy(&number, &bits, sizeof number);
    return trail_field_double(name, number);
}

static void obey(char *line)
{
    char name[4096], value[8192], kind;
    if (sscanf(line, "%c %4095s %8191s", &kind, name, value) == 3 && count < FIELDS) {
        fields[count++] = field_of(kind, bytes_of(name), value);
        return;
    }
    trail_log_fields_(0, "fields", fields, count);
    while (count > 0) {
        const trail_field *field = &fields[--count];
        free((char *)(uintptr_t)field->name);
        if (field->kind == TRAIL_FIELD_TEXT)
            free((char *)(uintptr_t)field->value.text);
    }
}

int main(int argc, char **argv)
{
    trail_options options = {.format = argc > 2 ? atoi(argv[1]) : 0};
    char line[16384];
    trail_error err;
    int fd = argc > 2 ? open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    setlocale(LC_ALL, "");
    if (fd < 0 || !trail_start_fd(&options, fd, &err))
        return 1;
    while (fgets(line, sizeof line, stdin))
        obey(line);
    trail_log_fields(7, "macro", trail_field_int("a", -1), trail_field_double("b", 0.1),
                     trail_field_text("c", NULL));
    if (!trail_stop(&err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    /* The arguments are not evaluated while nothing is recorded. */
    trail_log_fields(7, "macro", trail_field_int("a", (abort(), 1)));
    return 0;
}
