/*
 * The line that names what made a trace: a string that no event refers to, so that other readers
 * ignore it. A trace without such a line is from a Go program.
 *
 *     trail.made by=record            trail record
 *     trail.made by=host word=fiber   a program with libtrail-record, and its word for a goroutine
 *     trail.made by=import            trail import, of what another recorder wrote
 *
 * The word is the rest of the line: 1 to MAKER_WORD_MAX bytes of UTF-8 without control characters.
 */
#pragma once

#define MAKER_PREFIX   "trail.made by="
#define MAKER_RECORD   MAKER_PREFIX "record"
#define MAKER_HOST     MAKER_PREFIX "host word="
#define MAKER_IMPORT   MAKER_PREFIX "import"
#define MAKER_WORD_MAX 32

/* Size of a line with its NUL. */
#define MAKER_LINE (sizeof MAKER_HOST + MAKER_WORD_MAX)
