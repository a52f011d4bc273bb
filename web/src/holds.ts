/* The holds of a lock that recordings have logs of, and the lanes of the goroutines that had it. */
import { api } from "./api";
import { idBeside, parseDuration } from "./format";
import type { Held, Hold } from "./held";
import { laneOf, lanes } from "./lanes";
import { end, type Range } from "./state";

/*
 * "held: mutex cache_mu 15.1ms", "held: mutex cache_mu ~15.1ms"; "held: mutex cache_mu 15.1ms by 7" if another goroutine, of
 * the writer's block, had taken the lock.
 */
function holdOf(text: string, writer: number): { ns: number; goroutine: number } | null {
    const [, length = "", by] = / ~?(\S+?)(?: by (\d+))?$/.exec(text) ?? [];
    const ns = parseDuration(length);
    const goroutine = by ? idBeside(writer, Number(by)) : writer;
    return ns === null ? null : { ns, goroutine };
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

declare const WAIT_LOG_WORDS: Record<string, string[]>;

/* How logs name a lock, "rwlock prices": "rwlock to read prices", "rwlock to write prices". */
export function logNames(lock: string): string[] {
    const at = lock.indexOf(" ");
    return (WAIT_LOG_WORDS[lock.slice(0, at)] ?? []).map((words) => words + lock.slice(at));
}

/* The hold that the trace ends in: its goroutine's last log "holds: mutex cache_mu", which came at its begin or later. */
async function openHold(name: string, holder: number | undefined): Promise<Hold[]> {
    if (holder === undefined) return [];
    const text = `holds: ${name}`;
    const { results } = await api.logsWith(text, { last: 1 });
    const last = results.find((one) => one.text.endsWith(text) && goroutineOf(one.lane) === holder);
    if (!last) return [];
    return [{ goroutine: holder, from: last.at, to: end.peek(), isOpen: true }];
}

/* The holds that logs with this name have, to a time if there are more. */
async function endedHolds(name: string, from: number): Promise<{ of: Hold[]; to: number }> {
    const words = `held: ${name} `;
    const { results, more } = await api.logsWith(words, { from });
    const of = results.flatMap(({ text, lane, at }) => {
        const writer = goroutineOf(lane);
        const hold = writer === undefined || !text.includes(words) ? null : holdOf(text, writer);
        return hold ? [{ goroutine: hold.goroutine, from: at - hold.ns, to: at }] : [];
    });
    return { of, to: more ? (results.at(-1)?.at ?? from) : Number.POSITIVE_INFINITY };
}

/*
 * The first holds of a lock, "mutex cache_mu", that end at a time or later; with the goroutine that holds it when the trace
 * ends, if that is known, also that hold.
 */
export async function holdsOf(lock: string, from: number, holder?: number): Promise<Holds> {
    const names = logNames(lock);
    if (names.length === 0) return noHolds;
    const [ended, open] = await Promise.all([
        Promise.all(names.map((name) => endedHolds(name, from))),
        Promise.all(names.map((name) => openHold(name, holder))),
    ]);
    const to = Math.min(...ended.map((part) => part.to));
    const of = ended.flatMap((part) => part.of).filter((hold) => hold.to <= to);
    of.sort((a, b) => a.to - b.to);
    const isCut = to < Number.POSITIVE_INFINITY || from > 0;
    return { of: [...of, ...open.flat()], isCut, from, to };
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
