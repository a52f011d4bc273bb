/*
 * Whether the window is moving. Until it rests, pictures of nearly its scale are good enough: those
 * of the exact scale would arrive after it has moved on.
 */
import { effect, signal } from "@preact/signals";
import { begin, finish } from "./busy";
import { type Range, view } from "./state";

/* The factor by which a picture's scale may differ while moving. */
export const NEARLY = 2;
/* The window rests after this many ms without a change. */
const REST_MS = 120;

/* The range to request for the window: more than the window, so that it can be moved. */
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
