/*
 * The moments between two steps of the protocol in tracer.h at which it matters what other threads
 * do. In the library they are nothing. Some tests are linked with a library that calls the test at
 * these moments, where it makes the thread wait: what happens once in a million starts then happens
 * in each.
 */
#ifndef TRAIL_TRACER_PAUSE_H
#define TRAIL_TRACER_PAUSE_H

enum pause {
    PAUSE_ENTERS,   /* busy_ is set, the generation not loaded */
    PAUSE_LOADED,   /* the generation is loaded */
    PAUSE_WAITS,    /* the thread is held, and not busy */
    PAUSE_LEAVES,   /* busy_ is about to be cleared */
    PAUSE_HELD,     /* by the thread that starts a trace: the others are held, or about to be */
    PAUSE_LISTED,   /* v1: what there is was listed, and the generation is still 0 */
    PAUSE_SWITCHES, /* the generation is about to be changed, or was, with trail_tracing_ not yet */
    PAUSE_SWITCHED, /* the generation was changed, and sections of the former may go on */
    PAUSE_VISITS,   /* by the thread that visits all others: one of them is locked */
    PAUSE_LISTS /* by the thread that ends a generation or trace: a line of the map of modules */
};

#ifdef TRACER_PAUSES
void tracer_pause(enum pause at);
#else
#define tracer_pause(at) ((void)0)
#endif

#endif
