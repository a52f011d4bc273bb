/*
 * The page of one trace within the page that compares two (compare.tsx): what that may ask of it, and be told by it.
 * The other page is of the same server; nobody else can frame this one.
 */
import { effect } from "@preact/signals";
import { fragmentKept, outer, type Range, status, view } from "./state";

export interface Framed {
    setView: (wanted: Range) => void;
    /* The time that "the whole trace" is about, which has both traces in it. */
    setOuter: (wanted: Range) => void;
    onView: (told: (now: Range) => void) => void;
    onStatus: (told: (now: { end: number; done: boolean; wall?: number }) => void) => void;
    /* The fragment of its address, when that has come to rest. */
    onFragment: (told: (now: string) => void) => void;
}

export const isFramed = parent !== window;

export function offerFrame(): void {
    if (!isFramed) return;
    document.documentElement.dataset.framed = "";
    const framed: Framed = {
        setView: (wanted) => {
            view.value = wanted;
        },
        setOuter: (wanted) => {
            outer.value = wanted;
        },
        onView: (told) => effect(() => told(view.value)),
        onStatus: (told) =>
            effect(() => {
                const now = status.value;
                if (now) told({ end: now.end, done: now.done, wall: now.wall_ns });
            }),
        onFragment: (told) => effect(() => told(fragmentKept.value)),
    };
    Object.assign(globalThis, { trailFramed: framed });
}
