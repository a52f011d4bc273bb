/*
 * Families: the goroutines that one goroutine created at one place, and how many of them have
 * ended.
 *
 * A family lives as long as its creator or one of its members is alive.
 */
#pragma once

#include "analyze/names.h"
#include "base/idmap.h"
#include "base/slab.h"

/*
 * How long the member that ended long after all others was waited for, from the end of the others
 * on.
 */
struct family_late {
    int64_t goroutine, since_ns, ns;
    trail_name wait, at; /* what was waited for, and where */
};

struct family {
    trail_name place; /* of the creation: "main.start (main.go:42)" */
    trail_name start; /* start function of the first member */
    int64_t creator;
    uint64_t created, ended;
    uint64_t stay;                /* members that wait forever, as on a nil channel */
    int64_t stays;                /* one of these */
    int64_t created_ns, ended_ns; /* when the last member was created, and ended */
    struct family *next;          /* of the same creator, which is alive */
    bool has_creator;             /* it is in its creator's list */
    bool lost;                    /* a member's state was unknown for some time */
    bool differ;                  /* its members have different start functions */
    struct family_late sent;      /* its creator received from the last member; ns 0: not yet */
    uint64_t sends;               /* how often it did */

    /* Set by families_survey. */
    int64_t left;     /* a member that has not ended: the one that has waited longest */
    bool works;       /* a member has work, or had for most of the time */
    uint64_t receive; /* members that wait to receive from a channel, */
    uint64_t signal;  /* ... and for a sync.Cond */
};

/* Call families_init. */
struct families {
    struct idmap of_creator; /* goroutine -> its first family */
    struct idmap of_member;  /* goroutine that is alive -> its family */
    struct slab slab;
};

void families_init(struct families *families);
void families_free(struct families *families);

/*
 * A goroutine was created; of `of`, only place, start function and time are used. At most this many
 * places of one creator have families: programs have few, and a hostile trace must not cost
 * quadratic time. Returns false if out of memory.
 */
#define FAMILIES_OF_ONE 256
bool families_add(struct families *families, int64_t creator, int64_t member,
                  const struct family *of);

/* A goroutine has ended, or will do nothing more. */
enum family_end { FAMILY_ENDS, FAMILY_STAYS };
void families_end(struct families *families, int64_t goroutine, int64_t now, enum family_end how);

/* Returns the family of a goroutine that is alive; NULL: none is known. */
static inline struct family *families_of(const struct families *families, int64_t goroutine)
{
    return goroutine >= 0 ? idmap_find(&families->of_member, (uint64_t)goroutine) : NULL;
}

/* Its state is unknown from now on. */
void families_lost(struct families *families, int64_t goroutine);

/*
 * Returns the family that `goroutine`, or else the goroutine that created it, completed last, such
 * as the goroutines that a loop created before it waited for all of them. NULL: none is known.
 */
const struct family *families_last(const struct families *families, int64_t goroutine);
