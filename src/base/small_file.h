/*
 * Small files and folders that the kernel reports: values, lines and numbered entries below /proc
 * and /sys (proc(5), sysfs(5)). Paths are formats of printf(3), because most have a PID in them.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Reads the first `size` - 1 bytes of a file as text, without trailing white space. False if it
 * cannot be read.
 */
bool small_file_text(char *text, size_t size, const char *path, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads the decimal number at the beginning of a file. False if it cannot be read or has none. */
bool small_file_number(const char *path, long *number);

/*
 * Loops over the lines of a file, which are in lines.text; over none if it cannot be opened. It may
 * be left at any place.
 *
 *     SMALL_FILE_LINES(lines, "/proc/%d/maps", pid)
 *         if (strstr(lines.text, "[heap]"))
 *             return true;
 */
#define SMALL_FILE_LINES(lines, ...)                                                               \
    for (struct small_lines lines                                                                  \
         __attribute__((cleanup(small_lines_close))) = small_lines_open(__VA_ARGS__);              \
         small_lines_next(&lines);)

/* Loops over the entries of a folder that are numbers, such as PIDs: numbers.at. */
#define SMALL_FILE_NUMBERS(numbers, ...)                                                           \
    for (struct small_numbers numbers                                                              \
         __attribute__((cleanup(small_numbers_close))) = small_numbers_open(__VA_ARGS__);          \
         small_numbers_next(&numbers);)

/* The parts of these loops, for callers that need to know whether the file exists. Closing
 * preserves errno. */
struct small_lines {
    FILE *file; /* NULL: it could not be opened; errno says why */
    char *text; /* without the line end */
    size_t room;
};

struct small_lines small_lines_open(const char *path, ...) __attribute__((format(printf, 1, 2)));
bool small_lines_next(struct small_lines *lines);
void small_lines_close(struct small_lines *lines);

struct small_numbers {
    DIR *folder; /* as above */
    int at;
};

struct small_numbers small_numbers_open(const char *path, ...)
    __attribute__((format(printf, 1, 2)));
bool small_numbers_next(struct small_numbers *numbers);
void small_numbers_close(struct small_numbers *numbers);
