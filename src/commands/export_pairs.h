/*
 * Lists of pairs, "service.name=shop,deployment.environment=test", as OpenTelemetry's environment
 * variables have them: values are percent-encoded where necessary (W3C Baggage).
 */
#ifndef TRAIL_COMMANDS_EXPORT_PAIRS_H
#define TRAIL_COMMANDS_EXPORT_PAIRS_H

#include <stdbool.h>
#include <trail/export.h>

/* Zero-initialised is empty. The texts are its own. */
struct pairs {
    trail_export_attribute *items;
    size_t count, capacity;
};

/*
 * Adds the pairs of a list; one whose key is there replaces it. Returns false if the list is none or
 * if out of memory.
 */
bool pairs_add(struct pairs *pairs, const char *list);

/* Adds one pair, not encoded. Returns false if out of memory. */
bool pairs_set(struct pairs *pairs, const char *key, const char *value);

void pairs_free(struct pairs *pairs);

#endif
