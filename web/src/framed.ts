/*
 * The interface of a trace's page inside the page that compares two traces (compare.tsx). Both are served by the
 * same server; pages of other origins cannot frame this one.
 */
import { effect } from "@preact/signals";
import type { Status } from "./api";
import { fragmentKept } from "./history";
import { outer, type Range, status, view } from "./state";

export interface Framed {
    setView: (wanted: Range) => void;
    /* Sets the range of "the whole trace", which covers both traces. */
    setOuter: (wanted: Range) => void;
    /* Shows what a row of differences is about: the lock, task, region or start function of that
     * name. Returns where that is; null: nowhere. */
    show: (of: string, name: string) => Promise<Range | null>;
    onView: (listener: (now: Range) => void) => void;
    onStatus: (listener: (now: Status) => void) => void;
    /* Called with the fragment of the page's address, after it has been stable for a moment. */
    onFragment: (listener: (now: string) => void) => void;
}

export const isFramed = parent !== window;

export function offerFrame(show: Framed["show"]): void {
    if (!isFramed) return;
    document.documentElement.dataset.framed = "";
    const framed: Framed = {
        setView: (wanted) => {
            view.value = wanted;
        },
        setOuter: (wanted) => {
            outer.value = wanted;
        },
        show,
        onView: (listener) => effect(() => listener(view.value)),
        onStatus: (listener) =>
            effect(() => {
                const now = status.value;
                if (now) listener(now);
            }),
        onFragment: (listener) => effect(() => listener(fragmentKept.value)),
    };
    Object.assign(globalThis, { trailFramed: framed });
}
