/*
 * Finds, in a module's .eh_frame, where the frame of a PC ends and where the caller's frame pointer
 * is saved. Only for x86-64, and only for the registers that a walk needs: rsp, rbp and the return
 * address. A rule that needs another register is CFI_UNKNOWN.
 *
 * The tables are not trusted: each byte is read only if it lies in a segment that the module has
 * mapped readable, and the work is bounded by the tables' length.
 *
 * (System V ABI for x86-64, 3.7; LSB Core, "Exception Frames"; DWARF 4, 6.4.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_range {
    uintptr_t low, high; /* [low, high) */
};

#define CFI_MAX_RANGES 12

struct cfi_module {
    struct cfi_range header; /* .eh_frame_hdr; empty: none */
    struct cfi_range readable[CFI_MAX_RANGES];
    size_t ranges;
};

enum cfi_kind {
    CFI_NONE,    /* no entry covers the PC, or the tables are damaged */
    CFI_FRAME,   /* see struct cfi_rule; the return address is the word below the frame's end */
    CFI_SIGNAL,  /* the kernel's frame of a signal */
    CFI_END,     /* the outermost function */
    CFI_UNKNOWN, /* there is a rule that struct cfi_rule cannot express */
};

enum cfi_base { CFI_SP, CFI_FP };

enum cfi_fp {
    CFI_FP_SAME,
    CFI_FP_AT_END, /* saved at the frame's end + fp_offset */
    CFI_FP_AT_FP,  /* saved at the frame pointer + fp_offset */
    CFI_FP_LOST,
};

/*
 * The frame's end ("canonical frame address") is base + offset; indirect: *(base + inner) + offset.
 */
struct cfi_rule {
    enum cfi_kind kind;
    enum cfi_base base;
    enum cfi_fp fp;
    bool indirect;
    int32_t offset, inner, fp_offset;
};

/* Whether [at, at + size) lies in one of the module's segments. */
bool cfi_is_readable(const struct cfi_module *module, uintptr_t at, size_t size);

/*
 * Advances *at, an address in .eh_frame, to the next entry and sets *start to the start of the
 * entry's function; 0: none. False at the end of the entries.
 */
bool cfi_next(const struct cfi_module *module, uintptr_t *at, uintptr_t *start);

/* Returns the rule for the instruction that contains the address `at`. */
struct cfi_rule cfi_find(const struct cfi_module *module, uintptr_t at);
