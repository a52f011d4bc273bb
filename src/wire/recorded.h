/*
 * The lines that count what a recording by trail record took and missed: strings of the last
 * generation that no event refers to, so that other readers ignore them.
 *
 *     trail.recorded WORD pid=N count=N cpu=NS recorder=NS name=TEXT
 *
 * WORD is a row of recorded.def, which has the meaning of its fields; the other fields are 0. TEXT
 * is the rest of the line: any bytes, possibly none.
 */
#pragma once

#define RECORDED_PREFIX   "trail.recorded "
#define RECORDED_NAME_MAX 256
#define RECORDED_LINE     (RECORDED_NAME_MAX + 160) /* including its NUL */
