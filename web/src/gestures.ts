/* Pointer and wheel input of the timeline: moving, zooming, and selecting spans, ranges and areas. */
import { inner, markAt, pictures, rowAt, timeAt } from "./coordinates";
import { LABELS } from "./geometry";
import { LANE_HEIGHT, lanesOfRows, layout, scrollTo } from "./lanes";
import { cellAt, cellIndex, timesOf } from "./pictures";
import { select, selectAt, selectMarkAt } from "./select";
import {
    end,
    folded,
    follow,
    go,
    kind,
    MOST_IN_AREA,
    merged,
    moveView,
    pan,
    range,
    say,
    scroll,
    tab,
    toggle,
    unfolded,
    view,
    zoom,
    zoomBox,
} from "./state";

export type Where = "map" | "head" | "rows";

type Drag =
    | { type: "pan"; x: number; y: number; from: number; to: number; top: number; moved: boolean }
    | { type: "range"; at: number; y: number; moved: boolean; x: number; where: Where }
    | { type: "box"; x: number; y: number; where: Where }
    | { type: "map" };

function moveMap(x: number): void {
    const { from, to } = view.peek();
    const at = ((x - LABELS) / inner()) * end.peek();
    moveView({ from: at - (to - from) / 2, to: at + (to - from) / 2 });
}

/* MARK: Clicks */

/* Notes which part of the lane was clicked on, if several spans are drawn in it. */
function noteMerged(lane: number, at: number): void {
    const picture = pictures[kind.peek()].get(lane);
    const index = picture ? cellIndex(picture, at) : -1;
    const cell = picture && index >= 0 ? cellAt(picture, index) : null;
    merged.value =
        picture && cell?.mixture ? { kind: kind.peek(), lane, ...timesOf(picture, cell) } : null;
}

export function clickRow(x: number, y: number): void {
    const row = rowAt(y);
    if (!row) {
        select(null);
        return;
    }
    if (row.type === "group") {
        folded.value = toggle(folded.value, row.name);
        return;
    }
    if (x < LABELS) {
        if (x < 24 && kind.value === "goroutine")
            unfolded.value = toggle(unfolded.value, row.lane.lane);
        else
            void selectAt(
                kind.value,
                row.lane.lane,
                Math.max(row.lane.begin, view.value.from),
                false,
            );
        return;
    }
    const mark = markAt(row, x, y);
    if (mark) {
        void selectMarkAt(mark.kind, row.lane.lane, mark.mark.at);
        return;
    }
    const at = timeAt(x);
    noteMerged(row.lane.lane, at);
    if (at < row.lane.begin || at > row.lane.end) select({ kind: kind.value, lane: row.lane.lane });
    else void selectAt(kind.value, row.lane.lane, at, false);
}

/* MARK: Drags */

/* The lanes between two heights of the lanes' area. */
function lanesBetween(y0: number, y1: number): { count: number; lanes: number[] } {
    const top = scroll.peek() + Math.max(0, Math.min(y0, y1));
    return lanesOfRows(layout.peek().between(top, scroll.peek() + Math.max(y0, y1) + 1));
}

/* Over the ruler, a drag selects a range of all lanes; over the lanes, of those that it touches. */
function areaOf(drag: Drag & { type: "range" }, x: number, y: number): typeof range.value {
    const at = timeAt(x);
    const area = {
        from: Math.max(0, Math.min(at, drag.at)),
        to: Math.max(1, Math.min(Math.max(at, drag.at), end.peek())),
    };
    if (drag.where !== "rows") return area;
    const { lanes } = lanesBetween(drag.y, y);
    if (lanes.length === 0) return area;
    return { ...area, of: { kind: kind.peek(), lanes } };
}

function endRange(drag: Drag & { type: "range" }, y: number): void {
    if (!drag.moved) {
        range.value = null;
        return;
    }
    tab.value = "range";
    const touched = drag.where === "rows" ? lanesBetween(drag.y, y).count : 0;
    if (touched > MOST_IN_AREA)
        say(`An area has at most ${MOST_IN_AREA} lanes: these are the first of ${touched}.`);
}

function boxOf(drag: Drag & { type: "box" }, x: number, y: number) {
    const isFlat = drag.where !== "rows";
    return {
        left: Math.max(LABELS, Math.min(drag.x, x)),
        right: Math.max(LABELS, drag.x, x),
        top: isFlat ? 0 : Math.min(drag.y, y),
        bottom: isFlat ? Number.POSITIVE_INFINITY : Math.max(drag.y, y),
    };
}

/* Zooms to the times of the box; if it is higher than a lane, its first lane moves to the top. */
function endBox(): void {
    const box = zoomBox.peek();
    zoomBox.value = null;
    if (!box || box.right - box.left < 4) return;
    const from = timeAt(box.left);
    go({ from, to: Math.max(timeAt(box.right), from + 1) });
    if (!Number.isFinite(box.bottom) || box.bottom - box.top <= LANE_HEIGHT) return;
    const first = rowAt(box.top);
    if (first) scrollTo(first.top);
}

export class Gestures {
    private drag: Drag | null = null;
    private readonly touches = new Map<number, { x: number; y: number }>();
    private pinch = 0;

    down(event: PointerEvent, where: Where): void {
        if (event.button !== 0) return;
        const { offsetX: x, offsetY: y } = event;
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        this.touches.set(event.pointerId, { x, y });
        if (this.touches.size === 2) {
            this.drag = null;
            this.pinch = 0;
        } else if (where === "map") {
            this.drag = { type: "map" };
            moveMap(x);
        } else if ((event.ctrlKey || event.metaKey) && x >= LABELS) {
            this.drag = { type: "box", x, y, where };
        } else if ((where === "head" || event.shiftKey) && x >= LABELS) {
            this.drag = { type: "range", at: timeAt(x), moved: false, x, y, where };
        } else {
            this.drag = { type: "pan", x, y, ...view.peek(), top: scroll.peek(), moved: false };
        }
    }

    private pinched(): void {
        const [a, b] = [...this.touches.values()];
        const distance = Math.max(Math.abs(a.x - b.x), 10);
        if (this.pinch) zoom(this.pinch / distance, timeAt((a.x + b.x) / 2));
        this.pinch = distance;
    }

    move(event: PointerEvent): void {
        const { offsetX: x, offsetY: y } = event;
        if (this.touches.has(event.pointerId)) this.touches.set(event.pointerId, { x, y });
        if (this.touches.size === 2) {
            this.pinched();
            return;
        }
        const drag = this.drag;
        if (!drag) return;
        if (drag.type === "map") {
            moveMap(x);
        } else if (drag.type === "range") {
            drag.moved ||= Math.abs(x - drag.x) > 3;
            if (drag.moved) range.value = areaOf(drag, x, y);
        } else if (drag.type === "box") {
            zoomBox.value = boxOf(drag, x, y);
        } else {
            drag.moved ||= Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4;
            if (!drag.moved) return;
            const by = ((drag.x - x) / inner()) * (drag.to - drag.from);
            moveView({ from: drag.from + by, to: drag.to + by });
            scrollTo(drag.top + drag.y - y);
        }
    }

    up(event: PointerEvent, where: Where): void {
        const drag = this.drag;
        this.touches.delete(event.pointerId);
        this.drag = null;
        if (drag?.type === "range") endRange(drag, event.offsetY);
        else if (drag?.type === "box") endBox();
        else if (drag?.type === "pan" && !drag.moved && where === "rows")
            clickRow(event.offsetX, event.offsetY);
    }

    /* Called when the browser takes the pointer away. */
    cancel(event: PointerEvent): void {
        this.touches.delete(event.pointerId);
        this.drag = null;
        zoomBox.value = null;
    }
}

export function onWheel(event: WheelEvent): void {
    event.preventDefault();
    follow.value = false;
    const unit = event.deltaMode === 1 ? 20 : 1;
    if (event.ctrlKey || event.metaKey) {
        zoom(2 ** ((event.deltaY * unit) / 200), timeAt(event.offsetX));
        return;
    }
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (sideways) pan((sideways * unit) / inner());
    if (!event.shiftKey && event.deltaY) scrollTo(scroll.peek() + event.deltaY * unit);
}
