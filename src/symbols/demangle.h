/*
 * Demangles C++ and Rust function names with libiberty, the demangler of binutils and gdb: no C++
 * library supports Rust's newer scheme (_R...).
 */
#pragma once

struct demangler;

/* Returns NULL if out of memory. demangler_close accepts NULL. */
struct demangler *demangler_open(void);
void demangler_close(struct demangler *demangler);

/*
 * Returns the readable name, or `name` itself. `name` must outlive the demangler; the result lives
 * as long as both.
 */
const char *demangle(struct demangler *demangler, const char *name);
