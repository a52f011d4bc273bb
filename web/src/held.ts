/* The holders of a lock over time, as recorded, or inferred from the goroutine that ended each
 * wait. Drawn on their lanes. */
import { computed, signal } from "@preact/signals";
import type { Range } from "./state";

/* In ns since the first event. */
export interface Hold extends Range {
    goroutine: number;
    /* The trace ends during it, and it may have begun earlier. */
    isOpen?: boolean;
}

export interface Held {
    lock: string;
    isInferred: boolean;
    /* By lane of goroutines, in time order. */
    byLane: ReadonlyMap<number, Range[]>;
}

/* Those of the finding that is shown, and of the lock that is looked at; null: none. */
export const heldInFinding = signal<Held | null>(null);
export const heldInPanel = signal<Held | null>(null);

/* The lane that holds the lock at a time; null: none is known. */
export function heldAt(of: Held | null, at: number): number | null {
    for (const [lane, holds] of of?.byLane ?? [])
        if (holds.some((hold) => hold.from <= at && at < hold.to)) return lane;
    return null;
}

/* The lock whose holders are drawn. */
export const held = computed(() => heldInPanel.value ?? heldInFinding.value);

interface Ended extends Range {
    /* The goroutine that ended the wait; undefined: none in the trace. */
    waker?: number;
}

/*
 * At each moment, the lock is assumed to be held by the goroutine that ends the first of the
 * current waits. A wait therefore names the holder for those of its times at which no wait is open
 * that ends earlier.
 */
export function inferHolds(waits: readonly Ended[]): Hold[] {
    const holds: Hold[] = [];
    /* What the waits so far cover, as disjoint ranges in time order. */
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
