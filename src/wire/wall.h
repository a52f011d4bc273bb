/*
 * The line by which traces in formats before 1.25, which have no clock readings (§5.1), record the
 * wall clock: a string that no event refers to, so that other readers ignore it. `trail record`,
 * libtrail-record and conversions of their traces write it in each generation.
 *
 *     trail.clock mono=NS wall=SEC.NSEC
 *
 * NS is the trace's time of the reading, SEC.NSEC the wall clock at that moment, since 1970, NSEC
 * with nine digits.
 */
#pragma once

#define WALL_PREFIX "trail.clock "
#define WALL_LINE   96 /* including its NUL */

/* The first version of the format with clock readings of its own. */
#define WALL_READINGS 25
