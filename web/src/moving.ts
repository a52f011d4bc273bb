/*
 * Whether the window moves. Until it rests, pictures of nearly its scale will do: those of the exact one would arrive
 * when it has moved on.
 */
import { effect, signal } from "@preact/signals";
import { begin, finish } from "./busy";
import { type Range, view } from "./state";

/* How many times as long or as short a picture's scale may be meanwhile. */
export const NEARLY = 2;
/* After how many ms without a change it rests. */
const REST_MS = 120;

/* What is requested to show the window: more than it, so that it can be moved. */
export function around(window: Range): Range {
    const margin = (window.to - window.from) / 2;
    const from = Math.max(0, Math.floor(window.from - margin));
    return { from, to: Math.max(from + 1, Math.ceil(window.to + margin)) };
}

export const moving = signal(false);

export function keepMoving(): void {
    let timer = 0;
    let last = view.peek();
    effect(() => {
        const now = view.value;
        if (now.from === last.from && now.to === last.to) return;
        last = now;
        if (!moving.peek()) begin();
        moving.value = true;
        clearTimeout(timer);
        timer = setTimeout(() => {
            moving.value = false;
            finish();
        }, REST_MS);
    });
}
