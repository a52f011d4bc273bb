/*
 * The lines by which a trace of trail record says what the recording took and missed: strings of its last generation that no
 * event refers to, so that other readers ignore them.
 *
 *     trail.recorded WORD pid=N count=N cpu=NS recorder=NS name=TEXT
 *
 * WORD is a row of recorded.def, which has the meaning of the fields; others are 0. TEXT is the rest of the line, of any bytes,
 * and may be empty.
 */
#ifndef TRAIL_WIRE_RECORDED_H
#define TRAIL_WIRE_RECORDED_H

#define RECORDED_PREFIX   "trail.recorded "
#define RECORDED_NAME_MAX 256
#define RECORDED_LINE     (RECORDED_NAME_MAX + 160) /* with its NUL */

#endif
