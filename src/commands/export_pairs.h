/*
 * Lists of pairs, "service.name=shop,deployment.environment=test", in the format of OpenTelemetry's
 * environment variables: values are percent-encoded where necessary (W3C Baggage).
 */
#pragma once

#include <stdbool.h>
#include <trail/export.h>

/* Zero-initialised: empty. Owns its texts. */
struct pairs {
    trail_export_attribute *items;
    size_t count, capacity;
};

/*
 * Adds the pairs of a list, replacing those with the same key. Returns false if it is not a list or
 * if out of memory.
 */
bool pairs_add(struct pairs *pairs, const char *list);

/* Adds one pair, which is not encoded. Returns false if out of memory. */
bool pairs_set(struct pairs *pairs, const char *key, const char *value);

void pairs_free(struct pairs *pairs);
