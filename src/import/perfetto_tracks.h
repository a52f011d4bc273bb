/*
 * Perfetto's track events (protos/perfetto/trace/track_event): slices, instants and flows on
 * tracks, most of which are threads'. They become the events of spans.h.
 *
 * Packets of one writer are a sequence: what an interned number means, the clock and the track that
 * are not named, hold for it until it begins anew. Descriptions of tracks and the machine's clocks
 * may come after what needs them: all packets are looked at twice.
 */
#ifndef TRAIL_IMPORT_PERFETTO_TRACKS_H
#define TRAIL_IMPORT_PERFETTO_TRACKS_H

#include "import/perfetto_clocks.h"
#include "import/spans.h"

struct tracks {
    struct import_spans spans;
    struct perfetto_clocks clocks;
    struct idmap tracks;    /* uuid -> struct track */
    struct idmap sequences; /* ID -> struct sequence */
};

bool tracks_init(struct tracks *tracks, struct import_model *model);
void tracks_free(struct tracks *tracks);

/*
 * First of all packets: takes descriptions of tracks, and the machine's clocks; then tracks_learnt.
 */
void tracks_learn(struct tracks *tracks, struct proto packet);
void tracks_learnt(struct tracks *tracks);

/* Then, of all packets again: takes what is of a sequence, and events. */
void tracks_packet(struct tracks *tracks, struct proto packet);

/* Passes what the events mean to the model. Returns false if memory is out. */
bool tracks_mean(struct tracks *tracks, bool has_states);

#endif
