/* The holds of a lock that recordings have logs of, and the lanes of the goroutines that had it. */
import { api } from "./api";
import { parseDuration } from "./format";
import type { Held, Hold } from "./held";
import { laneOf, lanes } from "./lanes";
import { end, type Range } from "./state";

/* "held: mutex cache_mu 15.1ms", "held: mutex cache_mu ~15.1ms" */
function lengthOfHold(text: string): number | null {
    return parseDuration(/ ~?(\S+)$/.exec(text)?.[1] ?? "");
}

/* In time order. */
export interface Holds extends Range {
    of: Hold[];
    /* There are more than are here, which are those that end from `from` to `to`. */
    isCut: boolean;
}

export const noHolds: Holds = { of: [], isCut: false, from: 0, to: Number.POSITIVE_INFINITY };

function goroutineOf(lane: number): number | undefined {
    return lanes.peek().get(lane)?.id;
}

/* The hold that the trace ends in: its goroutine's last log "holds: mutex cache_mu", which came at its begin or later. */
async function openHold(lock: string, holder: number | undefined): Promise<Hold[]> {
    if (holder === undefined) return [];
    const text = `holds: ${lock}`;
    const { results } = await api.logsWith(text, { last: 1 });
    const last = results.find((one) => one.text.endsWith(text) && goroutineOf(one.lane) === holder);
    if (!last) return [];
    return [{ goroutine: holder, from: last.at, to: end.peek(), isOpen: true }];
}

/*
 * The first holds of a lock, "mutex cache_mu", that end at a time or later; with the goroutine that holds it when the trace
 * ends, if that is known, also that hold.
 */
export async function holdsOf(lock: string, from: number, holder?: number): Promise<Holds> {
    if (!lock) return noHolds;
    const words = `held: ${lock} `;
    const [{ results, more }, open] = await Promise.all([
        api.logsWith(words, { from }),
        openHold(lock, holder),
    ]);
    const ended = results.flatMap(({ text, lane, at }) => {
        const ns = text.includes(words) ? lengthOfHold(text) : null;
        const goroutine = goroutineOf(lane);
        return ns === null || goroutine === undefined ? [] : [{ goroutine, from: at - ns, to: at }];
    });
    const to = more ? (results.at(-1)?.at ?? from) : Number.POSITIVE_INFINITY;
    return { of: [...ended, ...open], isCut: more || from > 0, from, to };
}

/* The holds by lane, in time order; null: none is on a lane. */
export function onLanes(lock: string, holds: Hold[], isInferred: boolean): Held | null {
    const byLane = new Map<number, Range[]>();
    for (const hold of lanes.peek().count > 0 ? holds : []) {
        const lane = laneOf(hold.goroutine, hold.from);
        if (lane === null) continue;
        const others = byLane.get(lane);
        if (others) others.push(hold);
        else byLane.set(lane, [hold]);
    }
    for (const of of byLane.values()) of.sort((a, b) => a.from - b.from);
    return byLane.size > 0 ? { lock, isInferred, byLane } : null;
}
