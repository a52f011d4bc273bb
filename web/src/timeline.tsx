/*
 * The timeline: three canvases (overview, head, lanes), redrawn after changes, at most once per frame; and their
 * pointer and wheel input.
 */
import { effect, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type Kind, type MarkKind, stateNames } from "./api";
import { begin, finish } from "./busy";
import { palette as colors } from "./colors";
import { drawHead, drawMap, headHeight, MAP_HEIGHT } from "./draw_head";
import { drawRows } from "./draw_rows";
import {
    logs,
    type Mark,
    metrics,
    ranges,
    regions,
    samples,
    tasks,
    wantExtras,
    wholeMetrics,
} from "./extras";
import { duration } from "./format";
import { framesArrived } from "./frames";
import { LABELS } from "./geometry";
import { LANE_HEIGHT, lanes, laneTitle, layout, type Row, rowsBetween, scrollTo } from "./lanes";
import { arrived, cellAt, cellIndex, type Picture, Pictures } from "./pictures";
import { markWord, select, selectAt, selectMarkAt } from "./select";
import {
    axis,
    chain,
    end,
    folded,
    follow,
    kind,
    like,
    markFacts,
    moveView,
    origin,
    pan,
    path,
    range,
    scroll,
    selected,
    size,
    span,
    status,
    tab,
    toggle,
    unfolded,
    view,
    zoom,
} from "./state";
import { inWords } from "./words";

const all: Record<Kind, Pictures> = {
    goroutine: new Pictures("goroutine"),
    proc: new Pictures("proc"),
    thread: new Pictures("thread"),
};

/* Durations of the last frames in ms, newest last; read by benchmarks. */
export const frameTimes: number[] = [];

/* MARK: Coordinates */

function inner(): number {
    return Math.max(size.peek().width - LABELS, 50);
}

export function timeAt(x: number): number {
    const { from, to } = view.peek();
    return from + ((x - LABELS) / inner()) * (to - from);
}

/* Where the pointer is above the canvases; null: it is elsewhere. */
let pointerX: number | null = null;

export function pointerTime(): number | null {
    return pointerX === null || pointerX < LABELS ? null : timeAt(pointerX);
}

function rowAt(y: number): Row | undefined {
    return rowsBetween(layout.peek(), y + scroll.peek(), y + scroll.peek() + 1)[0];
}

/* MARK: Requests */

function visibleLanes(margin: number): number[] {
    const { height } = size.value;
    const rows = rowsBetween(layout.value, scroll.value - margin, scroll.value + height + margin);
    return rows.flatMap((row) => (row.type === "lane" ? [row.lane.lane] : []));
}

/* Whether the first picture is still to come: until then nothing else is requested, to show it sooner. */
function firstPictureComes(): boolean {
    const { goroutines = 0, procs = 0, threads = 0 } = status.value ?? {};
    const count = { goroutine: goroutines, proc: procs, thread: threads }[kind.value];
    if (arrived.value > 0 || count === 0) return false;
    return lanes.value.length === 0 || visibleLanes(0).length > 0;
}

function ask(): void {
    const now = status.value;
    if (!now || !(end.value > 1)) return;
    const { width } = size.value;
    const pixels = Math.round((width - LABELS) * Math.min(devicePixelRatio, 2));
    const fresh = now.end;
    const has = {
        regions: now.bars?.regions > 0,
        tasks: now.bars?.tasks > 0,
        logs: now.logs > 0,
        samples: now.samples > 0,
    };
    all[kind.value].want(visibleLanes(300), view.value, pixels, end.value, fresh).catch(() => {});
    if (firstPictureComes()) return;
    const wanted = { kind: kind.value, window: view.value, width: Math.round(width - LABELS) };
    wantExtras({ ...wanted, lanes: visibleLanes(0).slice(0, 200), fresh, has });
    wholeMetrics.want(`${now.done} ${Math.round(Math.log2(fresh) * 8)}`, {
        window: { from: 0, to: end.value },
        width: 400,
        lanes: "",
    });
}

/* A canvas with what is drawn now, for export. */
export function timelineImage(): HTMLCanvasElement {
    const parts = [...document.querySelectorAll<HTMLCanvasElement>(".timeline canvas")];
    const whole = document.createElement("canvas");
    whole.width = Math.max(...parts.map((part) => part.width));
    whole.height = parts.reduce((sum, part) => sum + part.height, 0);
    const to = whole.getContext("2d") as CanvasRenderingContext2D;
    let top = 0;
    for (const part of parts) {
        to.drawImage(part, 0, top);
        top += part.height;
    }
    return whole;
}

/* MARK: Drawing */

function fit(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    const ratio = devicePixelRatio;
    const wanted = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) {
        [canvas.width, canvas.height] = wanted;
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
    }
    const to = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    to.setTransform(ratio, 0, 0, ratio, 0, 0);
    return to;
}

interface Canvases {
    map: HTMLCanvasElement;
    head: HTMLCanvasElement;
    rows: HTMLCanvasElement;
    box: HTMLElement;
}

function paint(of: Canvases): void {
    const began = performance.now();
    const { width } = size.value;
    const head = headHeight();
    const height = Math.max(of.box.clientHeight - head - MAP_HEIGHT, 40);
    if (height !== size.value.height) size.value = { width, height };
    drawMap(fit(of.map, width, MAP_HEIGHT), width, colors.value);
    drawHead(fit(of.head, width, head), width, colors.value);
    drawRows(fit(of.rows, width, height), width, height, colors.value, all[kind.value]);
    frameTimes.push(performance.now() - began);
    if (frameTimes.length > 2000) frameTimes.shift();
}

/* Reads every signal that a frame depends on, so that a change of any schedules a frame. */
function touch(): void {
    void [
        arrived.value,
        framesArrived.value,
        layout.value,
        scroll.value,
        view.value,
        size.value,
        colors.value,
    ];
    void [
        selected.value,
        span.value,
        range.value,
        chain.value,
        path.value,
        like.value,
        markFacts.value,
        origin.value,
        axis.value,
    ];
    void [ranges.value.value, regions.value.value, tasks.value.value, logs.value.value];
    void [
        samples.value.value,
        metrics.value.value,
        wholeMetrics.value.value,
        end.value,
        kind.value,
    ];
}

function keepPainted(of: Canvases): () => void {
    let asked = 0;
    return effect(() => {
        touch();
        if (asked) return;
        begin();
        asked = requestAnimationFrame(() => {
            asked = 0;
            try {
                paint(of);
                ask();
            } finally {
                finish();
            }
        });
    });
}

/* MARK: Pointer input */

type Drag =
    | { type: "pan"; x: number; y: number; from: number; to: number; top: number; moved: boolean }
    | { type: "range"; at: number; moved: boolean; x: number }
    | { type: "map" };

function moveMap(x: number): void {
    const { from, to } = view.peek();
    const at = ((x - LABELS) / inner()) * end.peek();
    moveView({ from: at - (to - from) / 2, to: at + (to - from) / 2 });
}

/* Height of the marks' heads, and horizontal tolerance for clicks, in pixels. */
const MARK_HEIGHT = 8;
const MARK_REACH = 4;

/* The log, or else the sample, whose head is at that position. */
function markAt(
    row: Row & { type: "lane" },
    x: number,
    y: number,
): { kind: MarkKind; mark: Mark } | null {
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

function clickRow(x: number, y: number): void {
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
    if (at < row.lane.begin || at > row.lane.end) select({ kind: kind.value, lane: row.lane.lane });
    else void selectAt(kind.value, row.lane.lane, at, false);
}

class Gestures {
    private drag: Drag | null = null;
    private readonly touches = new Map<number, { x: number; y: number }>();
    private pinch = 0;

    down(event: PointerEvent, where: "map" | "head" | "rows"): void {
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
        } else if ((where === "head" || event.shiftKey) && x >= LABELS) {
            this.drag = { type: "range", at: timeAt(x), moved: false, x };
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
            const at = timeAt(x);
            if (drag.moved)
                range.value = {
                    from: Math.max(0, Math.min(at, drag.at)),
                    to: Math.max(1, Math.min(Math.max(at, drag.at), end.peek())),
                };
        } else {
            drag.moved ||= Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4;
            if (!drag.moved) return;
            const by = ((drag.x - x) / inner()) * (drag.to - drag.from);
            moveView({ from: drag.from + by, to: drag.to + by });
            scrollTo(drag.top + drag.y - y);
        }
    }

    up(event: PointerEvent, where: "map" | "head" | "rows"): void {
        const drag = this.drag;
        this.touches.delete(event.pointerId);
        this.drag = null;
        if (drag?.type === "range") {
            if (drag.moved) tab.value = "range";
            else range.value = null;
        } else if (drag?.type === "pan" && !drag.moved && where === "rows") {
            clickRow(event.offsetX, event.offsetY);
        }
    }
}

function onWheel(event: WheelEvent): void {
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

/* MARK: Tooltip */

interface Tip {
    x: number;
    y: number;
    title: string;
    text: string;
}

function tipAt(x: number, y: number): Tip | null {
    const row = rowAt(y);
    if (!row || x < LABELS) return null;
    if (row.type === "group") return null;
    const at = timeAt(x);
    const title = laneTitle(kind.value, row.lane);
    const found = markAt(row, x, y);
    if (found) {
        const { mark } = found;
        const word = markWord(found.kind);
        const text = mark.count > 1 ? `${mark.count} ${word}s` : mark.text || word;
        return { x, y, title, text: `${text}: a click shows the stack` };
    }
    const below = y + scroll.value - row.top;
    const bars = [...(regions.value.value ?? []), ...(tasks.value.value ?? [])];
    const bar = bars.find((of) => {
        if (of.lane !== row.lane.lane || of.begin > at || of.end < at) return false;
        return row.open
            ? below >= LANE_HEIGHT && of.depth === Math.floor((below - LANE_HEIGHT) / 13)
            : below > 15;
    });
    if (bar)
        return { x, y, title: bar.name, text: `${bar.kind}, ${duration(bar.end - bar.begin)}` };
    const picture = all[kind.value].get(row.lane.lane);
    const index = picture ? cellIndex(picture, at) : -1;
    if (!picture || index < 0) return null;
    const cell = cellAt(picture, index);
    if (cell.mixture) return { x, y, title, text: "several short spans: zoom in" };
    const scale = (picture.to - picture.from) / picture.width;
    return {
        x,
        y,
        title,
        text: `${inWords(stateNames[cell.state])}, about ${duration(cell.pixels * scale)}`,
    };
}

export function Timeline() {
    const box = useRef<HTMLDivElement>(null);
    const map = useRef<HTMLCanvasElement>(null);
    const head = useRef<HTMLCanvasElement>(null);
    const rows = useRef<HTMLCanvasElement>(null);
    const tip = useSignal<Tip | null>(null);

    useEffect(() => {
        const of = { box: box.current, map: map.current, head: head.current, rows: rows.current };
        if (!of.box || !of.map || !of.head || !of.rows) return;
        const canvases = of as Canvases;
        const gestures = new Gestures();
        const observer = new ResizeObserver(() => {
            size.value = { width: canvases.box.clientWidth, height: size.peek().height - 0.001 };
        });
        observer.observe(canvases.box);
        for (const where of ["map", "head", "rows"] as const) {
            const canvas = canvases[where];
            canvas.addEventListener("pointerdown", (event) => gestures.down(event, where));
            canvas.addEventListener("pointermove", (event) => gestures.move(event));
            canvas.addEventListener("pointerup", (event) => gestures.up(event, where));
            canvas.addEventListener("pointermove", (event) => {
                pointerX = event.offsetX;
            });
            canvas.addEventListener("pointerleave", () => {
                pointerX = null;
            });
            canvas.addEventListener("wheel", onWheel, { passive: false });
        }
        canvases.rows.addEventListener("dblclick", () => {
            const now = span.value;
            if (now)
                moveView({
                    from: now.begin - (now.end - now.begin) * 0.2,
                    to: now.end + (now.end - now.begin) * 0.2,
                });
        });
        canvases.rows.addEventListener("pointermove", (event) => {
            tip.value = event.buttons ? null : tipAt(event.offsetX, event.offsetY);
        });
        canvases.rows.addEventListener("pointerleave", () => {
            tip.value = null;
        });
        const stop = keepPainted(canvases);
        return () => {
            stop();
            observer.disconnect();
        };
    }, [tip]);

    return (
        <div class="timeline" ref={box}>
            <canvas class="map" ref={map} role="img" aria-label="The whole trace" />
            <canvas class="head" ref={head} role="img" aria-label="Ruler and counters" />
            <canvas
                class="rows"
                ref={rows}
                role="img"
                aria-label="Timeline. The keys move in it; ? shows them. The selection is described below."
            />
            {tip.value && (
                <div
                    class="tip"
                    style={{
                        left: `${Math.min(tip.value.x + 14, size.value.width - 320)}px`,
                        top: `${tip.value.y + headHeight() + MAP_HEIGHT + 16}px`,
                    }}
                >
                    <b>{tip.value.title}</b>
                    <br />
                    {tip.value.text}
                </div>
            )}
        </div>
    );
}

export function pictureOf(lane: number): Picture | undefined {
    return all[kind.peek()].get(lane);
}

/* Numbers of the visible lanes, from top to bottom. */
export function shownLanes(): number[] {
    return layout.peek().rows.flatMap((row) => (row.type === "lane" ? [row.lane.lane] : []));
}
