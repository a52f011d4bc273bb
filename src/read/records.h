/* Extends the public interface of records for printers. */
#pragma once

#include <trail/read.h>

/* Sets a callback that is called before the source is read, which may block. */
void records_before_wait(trail_records *records, void (*call)(void *context), void *context);
