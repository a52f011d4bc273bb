/*
 * Perfetto's track events (protos/perfetto/trace/track_event): slices, instants and flows on
 * tracks, most of which are threads'. They become the events of spans.h.
 *
 * The packets of one writer form a sequence: the meaning of interned numbers and the default clock
 * and track apply to it until its state is reset. Descriptions of tracks and the machine's clocks
 * may come after what needs them, so all packets are read twice.
 */
#pragma once

#include "base/objects.h"
#include "import/perfetto_clocks.h"
#include "import/spans.h"

struct tracks {
    struct import_spans spans;
    struct perfetto_clocks clocks;
    struct objects tracks;    /* uuid -> struct track */
    struct objects sequences; /* ID -> struct sequence */
};

bool tracks_init(struct tracks *tracks, struct import_model *model);
void tracks_free(struct tracks *tracks);

/*
 * First pass, for all packets: takes descriptions of tracks, and the machine's clocks; then
 * tracks_learnt.
 */
void tracks_learn(struct tracks *tracks, struct proto packet);
void tracks_learnt(struct tracks *tracks);

/* Second pass, for all packets: takes sequence state, and events. */
void tracks_packet(struct tracks *tracks, struct proto packet);

/* Passes the meaning of the events to the model. Returns false if out of memory. */
bool tracks_mean(struct tracks *tracks, bool has_states);
