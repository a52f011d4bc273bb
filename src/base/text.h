/* Texts of a trace and words of the program: conversion and comparison. */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <trail/read.h>

/* Returns the text of a C string, which it does not copy. */
static inline trail_string text_from(const char *word)
{
    return (trail_string){word, strlen(word)};
}

/* Whether the text begins with `prefix`. */
static inline bool text_begins(trail_string text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

/* Whether the text is `word`. */
static inline bool text_is(trail_string text, const char *word)
{
    return text.size == strlen(word) && text_begins(text, word);
}

static inline bool text_is_one_of(trail_string text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_is(text, words[i]))
            return true;
    return false;
}

/* Whether the text ends with `suffix`. */
static inline bool text_ends(trail_string text, const char *suffix)
{
    size_t size = strlen(suffix);
    return text.size >= size && memcmp(text.data + text.size - size, suffix, size) == 0;
}

static inline bool text_equal(trail_string a, trail_string b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Removes `prefix` from the front of the text. Returns false if it is not there. */
static inline bool text_take(trail_string *text, const char *prefix)
{
    if (!text_begins(*text, prefix))
        return false;
    text->data += strlen(prefix);
    text->size -= strlen(prefix);
    return true;
}

/* Returns the part of a path after the last slash. */
static inline const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static inline trail_string text_path_name(trail_string path)
{
    size_t from = path.size;
    while (from > 0 && path.data[from - 1] != '/')
        from--;
    return (trail_string){path.data + from, path.size - from};
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the value of a hexadecimal digit, -1 for any other character. */
static inline int hex_digit(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Takes the next character of the text of a URL, in which "%2f" stands for one. */
static inline char url_next(const char **at)
{
    const char *text = *at;
    int high = text[0] == '%' ? hex_digit(text[1]) : -1;
    int low = high >= 0 ? hex_digit(text[2]) : -1;
    *at += low >= 0 ? 3 : 1;
    return (char)(low >= 0 ? high * 16 + low : text[0]);
}
