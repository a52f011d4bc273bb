/* The holders of a lock over time: recorded, or inferred from the goroutine that ended each wait. Drawn on their lanes. */
import { signal } from "@preact/signals";
import type { Range } from "./state";

/* In ns since the first event. */
export interface Hold extends Range {
    goroutine: number;
    /* The trace ends in it, and its begin may be earlier. */
    isOpen?: boolean;
}

export interface Held {
    lock: string;
    isInferred: boolean;
    /* By lane of goroutines, in time order. */
    byLane: ReadonlyMap<number, Range[]>;
}

/* The lock whose holders are drawn; null: none. */
export const held = signal<Held | null>(null);

interface Ended extends Range {
    /* The goroutine that ended the wait; undefined: none in the trace. */
    waker?: number;
}

/*
 * At each moment the lock is taken to be held by the goroutine that ends the first of the waits that go on. So a wait names
 * the holder for those of its times in which no wait goes on that ends before it.
 */
export function inferHolds(waits: readonly Ended[]): Hold[] {
    const holds: Hold[] = [];
    /* What the waits so far cover, as ranges without overlap, in time order. */
    const covered: Range[] = [];
    for (const { from, to, waker } of [...waits].sort((a, b) => a.to - b.to)) {
        let begin = from;
        let until = to;
        const add = (since: number) => {
            if (waker !== undefined && since < until)
                holds.push({ goroutine: waker, from: since, to: until });
        };
        for (let last = covered.at(-1); last && last.to > from; last = covered.at(-1)) {
            add(last.to);
            until = last.from;
            begin = Math.min(begin, last.from);
            covered.pop();
        }
        add(from);
        covered.push({ from: begin, to });
    }
    return holds.sort((a, b) => a.from - b.from);
}
