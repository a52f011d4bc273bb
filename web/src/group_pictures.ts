/*
 * Pictures of folded groups: how many of a group's lanes are in each state, as stacked areas. The
 * full height is the largest number of them that ever exist at the same time, so that moving the
 * window does not change the scale.
 */
import { api, type Query, states } from "./api";
import type { Arrangement } from "./arrange";
import type { Area, Chart } from "./charts";
import { type Palette, palette } from "./colors";
import { lanes } from "./lanes";
import type { GroupRow } from "./layout";
import {
    alphaOf,
    arrived,
    covers,
    type Drawn,
    rangeAround,
    stacking,
    type Wanted,
} from "./pictures";
import { filterWords, group, status } from "./state";

export interface GroupPicture extends Drawn {
    /* The rows that the group is part of; they are not kept alive for it. */
    of: WeakRef<Arrangement>;
    members: number;
    /* The number of members that were counted; numbers for all members are extrapolated. */
    summed: number;
    /* The most lanes at the same time. */
    peak: number;
    columns: number;
    /* By number of the state, then by column. */
    counts: Float32Array[];
    /* The chart as drawn now, with one state in full colours (0: all). */
    chart?: Chart;
    only?: number;
    colors?: Palette;
}

const MOST_KEPT = 200;
/* While the trace is read, existing pictures are renewed after a pause of this many times the
 * duration of the last request. */
const RESTS = 5;
/* The most lanes that a request lists individually: the API's limit. */
const MOST_NAMED = 2048;
/* The least height of a state that occurs, as a fraction of the row: about a pixel. */
const LEAST = 1 / 33;

/* Every k-th lane, as many as a request may list. */
function someOf(members: Uint32Array): Uint32Array {
    const step = Math.ceil(members.length / MOST_NAMED);
    return members.filter((_, i) => i % step === 0);
}

/*
 * How the server finds the members. Large groups are described by what the members have in common,
 * which includes pinned ones; groups by task are known only to the page.
 */
function whichOf(row: GroupRow): Query {
    if (row.lanes.length > MOST_NAMED && group.value === "name")
        return { name: row.name, match: filterWords() };
    if (row.lanes.length > MOST_NAMED && group.value === "creator")
        return { creator: lanes.value.columns.parent[row.lanes[0]], match: filterWords() };
    return { lanes: someOf(row.lanes).join(",") };
}

/* MARK: The chart */

function areasOf(picture: GroupPicture, only: number, colors: Palette): Area[] {
    const { columns, counts, peak } = picture;
    let low = new Float32Array(columns);
    return stacking.map((state) => {
        const below = low;
        low = counts[state].map((count, i) => {
            const its = count > 0 ? Math.max(LEAST, count / peak) : 0;
            return Math.min(1, below[i] + its);
        });
        const alpha = alphaOf(state, only);
        return { color: colors.states[state], low: below, high: low, alpha };
    });
}

/* All states but `only` are pale, unless that is 0. */
export function groupChart(picture: GroupPicture, only: number): Chart {
    const colors = palette.peek();
    if (picture.chart && picture.only === only && picture.colors === colors) return picture.chart;
    const { from, to, columns } = picture;
    picture.chart = { from, to, columns, areas: areasOf(picture, only, colors) };
    picture.only = only;
    picture.colors = colors;
    return picture.chart;
}

/* The column at a time; -1: none. */
export function columnAt(picture: GroupPicture, ns: number): number {
    const share = (ns - picture.from) / (picture.to - picture.from);
    return share >= 0 && share < 1 ? Math.floor(share * picture.columns) : -1;
}

/* MARK: Pictures */

/* By name of the group. The oldest is replaced first. */
class GroupPictures {
    private readonly pictures = new Map<string, GroupPicture>();
    /* One request at a time; the next call of want() requests what is then missing. */
    private busy = false;
    private restsUntil = 0;
    /* When each was last requested, so that all get their turn while the window moves. */
    private readonly turns = new Map<string, number>();
    private turn = 0;

    get(name: string): GroupPicture | undefined {
        return this.pictures.get(name);
    }

    /* Requests the picture of the group that has waited longest; the old picture stays until
     * then. */
    async want(rows: GroupRow[], of: Arrangement, wanted: Wanted): Promise<void> {
        const isRead = status.value?.done ?? false;
        const missing = rows.filter(({ name }) => {
            const picture = this.pictures.get(name);
            if (!picture) return true;
            if (picture.of.deref() === of && covers(picture, wanted)) return false;
            return isRead || performance.now() >= this.restsUntil;
        });
        if (missing.length === 0 || this.busy) return;
        const since = ({ name }: GroupRow) => this.turns.get(name) ?? 0;
        const next = missing.reduce((a, b) => (since(b) < since(a) ? b : a));
        this.turns.set(next.name, ++this.turn);
        this.busy = true;
        const asked = performance.now();
        try {
            await this.ask(next, of, { ...rangeAround(wanted), fresh: wanted.fresh });
        } finally {
            this.busy = false;
            this.restsUntil = performance.now() + RESTS * (performance.now() - asked);
        }
        arrived.value++;
    }

    private async ask(row: GroupRow, of: Arrangement, how: Drawn): Promise<void> {
        const { from, to, width } = how;
        const found = await api.group({ kind: "goroutine", from, to, width, ...whichOf(row) });
        const members = row.lanes.length;
        const summed = Math.min(found.summed, members);
        const factor = members / Math.max(1, summed);
        const counts = states.map((state) =>
            Float32Array.from(found.states[state] ?? [], (count) => count * factor),
        );
        const peak = Math.max(1, found.peak * factor);
        this.pictures.delete(row.name);
        this.pictures.set(row.name, {
            ...how,
            of: new WeakRef(of),
            members,
            summed,
            peak,
            columns: found.columns,
            counts,
        });
        for (const name of this.pictures.keys()) {
            if (this.pictures.size <= MOST_KEPT) break;
            this.pictures.delete(name);
            this.turns.delete(name);
        }
    }
}

export const groupPictures = new GroupPictures();
