/* Maps pixels of the timeline's canvases to the trace: the time, the row, and what is drawn
 * there. */
import type { Kind, MarkKind } from "./api";
import { logs, type Mark, samples } from "./extras";
import { LABELS } from "./geometry";
import { layout } from "./lanes";
import type { LaneRow, Row } from "./layout";
import { Pictures } from "./pictures";
import { kind, scroll, size, view } from "./state";

export const pictures: Record<Kind, Pictures> = {
    goroutine: new Pictures("goroutine"),
    proc: new Pictures("proc"),
    thread: new Pictures("thread"),
};

/* The width of the lanes without the column of names. */
export function inner(): number {
    return Math.max(size.peek().width - LABELS, 50);
}

export function timeAt(x: number): number {
    const { from, to } = view.peek();
    return from + ((x - LABELS) / inner()) * (to - from);
}

/* The pointer's position above the canvases; null: elsewhere. */
let pointerX: number | null = null;

export function notePointer(x: number | null): void {
    pointerX = x;
}

export function pointerTime(): number | null {
    return pointerX === null || pointerX < LABELS ? null : timeAt(pointerX);
}

export function rowAt(y: number): Row | undefined {
    return layout.peek().between(y + scroll.peek(), y + scroll.peek() + 1)[0];
}

/* Height of the marks' heads, and horizontal tolerance for clicks, in pixels. */
const MARK_HEIGHT = 8;
const MARK_REACH = 4;

/* The log, or else the sample, whose head is at that position. */
export function markAt(row: LaneRow, x: number, y: number): { kind: MarkKind; mark: Mark } | null {
    if (kind.value !== "goroutine" || y + scroll.value - row.top > MARK_HEIGHT) return null;
    const at = timeAt(x);
    const reach = (MARK_REACH / inner()) * (view.value.to - view.value.from);
    const known: [MarkKind, Mark[] | null][] = [
        ["log", logs.value.value],
        ["sample", samples.value.value],
    ];
    for (const [of, marks] of known) {
        const near = (marks ?? []).filter(
            (one) => one.lane === row.lane.lane && Math.abs(one.at - at) < reach,
        );
        near.sort((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at));
        if (near.length) return { kind: of, mark: near[0] };
    }
    return null;
}
