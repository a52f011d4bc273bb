/*
 * The points in the protocol of tracer.h at which the actions of other threads matter. In the
 * library they expand to nothing. Tests link a variant that calls the test at these points to make
 * the thread wait, so that a race that starts once in a million runs starts in each.
 */
#pragma once

enum pause {
    PAUSE_ENTERS,   /* busy_ is set, the generation not loaded */
    PAUSE_LOADED,   /* the generation is loaded */
    PAUSE_WAITS,    /* the thread is held, and not busy */
    PAUSE_LEAVES,   /* busy_ is about to be cleared */
    PAUSE_HELD,     /* in the thread that starts a trace: the others are held, or about to be */
    PAUSE_LISTED,   /* v1: the snapshot is complete, and the generation is still 0 */
    PAUSE_SWITCHES, /* the generation is about to change, or has changed before trail_tracing_ */
    PAUSE_SWITCHED, /* the generation has changed, and sections of the old one may continue */
    PAUSE_VISITS,   /* in the thread that visits all others: one of them is locked */
    PAUSE_LISTS,    /* in the thread that ends a generation or trace: a line of the module map */
    PAUSE_STORES,   /* a word of the list of categories is stored, and not all are */
    PAUSE_COPIES    /* a word of the list of categories is copied, and not all are */
};

#ifdef TRACER_PAUSES
void tracer_pause(enum pause at);
#else
#define tracer_pause(at) ((void)0)
#endif
