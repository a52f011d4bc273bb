/* Positions and texts of the ruler's ticks. */
import { moment, niceStep, wallClock } from "./format";
import { axis, origin, type Range, status } from "./state";

export interface Tick {
    at: number;
    text: string;
}

export function ticks(window: Range, pixels: number): Tick[] {
    const step = niceStep(((window.to - window.from) / Math.max(pixels, 1)) * 110);
    const zero = axis.value === "wall" ? 0 : origin.value;
    const first = Math.ceil((window.from - zero) / step) * step + zero;
    const made: Tick[] = [];
    for (let i = 0; i < 100 && first + i * step <= window.to; i++) {
        const at = first + i * step;
        made.push({ at, text: timeText(at, step) });
    }
    return made;
}

/* A point in time in the ruler's format. */
export function timeText(ns: number, step: number): string {
    const wall = status.value?.wall_ns;
    if (axis.value === "wall" && wall) return wallClock(wall + ns, step);
    return moment(ns - origin.value, step);
}
