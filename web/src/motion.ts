/*
 * Keys that move the window while they are held: at an even rate, frame by frame, not by the
 * keyboard's repetition. A short press moves by one step. If reduced motion is requested, each
 * press and repetition is an immediate step.
 */
import { begin, finish } from "./busy";

/* Moves by a number of steps, possibly fractional. */
export type Move = (steps: number) => void;

/* How long a step takes. */
const STEP_MS = 120;
/* The most that one frame moves by, so that a pause of the page does not become a leap. */
const MOST_MS = 50;

interface Motion {
    move: Move;
    done: number;
    held: boolean;
}

/* By the key's position on the keyboard, because the letter changes with Shift. */
const motions = new Map<string, Motion>();
let last = 0;
let scheduled = false;

function advance(motion: Motion, steps: number): void {
    motion.move(steps);
    motion.done += steps;
}

function complete(motion: Motion): void {
    if (motion.done < 1) advance(motion, 1 - motion.done);
}

function frame(now: number): void {
    const passed = last > 0 ? Math.min(Math.max(now - last, 0), MOST_MS) : 1000 / 60;
    last = now;
    for (const [place, motion] of motions) {
        const steps = passed / STEP_MS;
        advance(motion, motion.held ? steps : Math.min(steps, Math.max(1 - motion.done, 0)));
        if (!motion.held && motion.done >= 1) motions.delete(place);
    }
    scheduled = motions.size > 0;
    if (scheduled) requestAnimationFrame(frame);
    else {
        last = 0;
        finish();
    }
}

export function press(place: string, isRepeated: boolean, move: Move): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
        move(1);
        return;
    }
    const before = motions.get(place);
    if (isRepeated || before?.held) return;
    if (before) complete(before);
    motions.set(place, { move, done: 0, held: true });
    if (scheduled) return;
    scheduled = true;
    begin();
    requestAnimationFrame(frame);
}

export function release(place: string): void {
    const motion = motions.get(place);
    if (motion) motion.held = false;
}

/* Completes the step of each key immediately: before another key acts, and when the page loses the
 * keyboard. */
export function settle(): void {
    for (const motion of motions.values()) {
        complete(motion);
        motion.held = false;
    }
}
