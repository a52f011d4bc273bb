/* Horizontal positions on the timeline, in CSS pixels. */

import { measure } from "./colors";
import { isPhone } from "./state";

/* Width of the column with the lanes' names. */
export const LABELS = measure(isPhone() ? "lane-names-phone" : "lane-names");

export interface Box {
    x: number;
    y: number;
    width: number;
    height: number;
}

/* Returns the x position of a time, on a timeline `width` pixels wide including the column of names. */
export function scale(from: number, to: number, width: number): (ns: number) => number {
    const perNs = (width - LABELS) / (to - from);
    return (ns) => LABELS + (ns - from) * perNs;
}
