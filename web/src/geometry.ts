/* Where things are on the timeline, in CSS pixels. */

/* The column of the lanes' names. */
export const LABELS = 230;

export interface Box {
    x: number;
    y: number;
    width: number;
    height: number;
}

/* Where a moment is, on a timeline `width` wide with the column of names. */
export function scale(from: number, to: number, width: number): (ns: number) => number {
    const perNs = (width - LABELS) / (to - from);
    return (ns) => LABELS + (ns - from) * perNs;
}
