/*
 * Long work in slices, so that the page can draw and answer in between. Work is a generator that
 * yields after each small part. A slice ends when its time is over, and the next one is a separate
 * task. Short work ends in its first slice, before the function that started it returns.
 */
import { effect, type Signal, untracked } from "@preact/signals";
import { begin, finish } from "./busy";

export type Work<T> = Generator<void, T, void>;

/* The length of a slice in ms; it ends with the current part. */
export const SLICE_MS = 8;
/* The most items that are handled between two yields. */
export const PART = 4096;

/* Calls `fn` with each number below `count`. */
export function* each(count: number, fn: (i: number) => void): Work<void> {
    for (let i = 0; i < count; ) {
        for (const stop = Math.min(count, i + PART); i < stop; i++) fn(i);
        yield;
    }
}

/* Messages have no minimum delay, unlike timers, and are not slower in a background page. */
const channel = new MessageChannel();
const next: (() => void)[] = [];
channel.port1.onmessage = () => next.shift()?.();

function inNextTask(fn: () => void): void {
    next.push(fn);
    channel.port2.postMessage(null);
}

let underWay = 0;

/* Passes the result of the work to `take`. The work ends without a result if `isOld()` is true
 * before a slice. */
function run<T>(work: Work<T>, isOld: () => boolean, take: (result: T) => void): void {
    begin();
    underWay++;
    /* Returns whether the work continues. */
    const slice = (): boolean => {
        const end = performance.now() + SLICE_MS;
        while (!isOld()) {
            const step = work.next();
            if (step.done) {
                take(step.value);
                return false;
            }
            if (performance.now() >= end) return true;
        }
        return false;
    };
    const goOn = () => {
        let isMore = false;
        try {
            isMore = slice();
        } finally {
            if (isMore) inNextTask(goOn);
            else {
                underWay--;
                finish();
            }
        }
    };
    goOn();
}

export function inSlices<T>(work: Work<T>): Promise<T> {
    return new Promise((resolve) => run(work, () => false, resolve));
}

/*
 * Keeps `to` at the result of the work that `start` returns; `start` is called again when a signal
 * that it reads has changed. The old result remains until the new one is ready; work that newer
 * work replaces is abandoned.
 */
export function keepAt<T>(to: Signal<T>, start: () => Work<T>): void {
    let newest = 0;
    effect(() => {
        const mine = ++newest;
        const work = start();
        untracked(() =>
            run(
                work,
                () => mine !== newest,
                (result) => {
                    to.value = result;
                },
            ),
        );
    });
}

/* Resolves when no such work is in progress. */
export async function settled(): Promise<void> {
    while (underWay > 0) await new Promise<void>(inNextTask);
}
