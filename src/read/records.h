/*
 * What a printer of records needs over the public interface.
 */
#ifndef TRAIL_READ_RECORDS_H
#define TRAIL_READ_RECORDS_H

#include <trail/read.h>

/* Has `call` called whenever the source is about to be read, which may wait for its writer. */
void records_before_wait(trail_records *records, void (*call)(void *context), void *context);

#endif
