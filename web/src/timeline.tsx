/*
 * The timeline: three canvases (overview, head, lanes), redrawn after changes, at most once per frame.
 */
import { effect, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { begin, finish } from "./busy";
import { drawPainted } from "./charts";
import { palette as colors } from "./colors";
import { notePointer, pictures, timeAt } from "./coordinates";
import { drawHead, drawMap, headHeight, MAP_HEIGHT } from "./draw_head";
import { drawRows } from "./draw_rows";
import { logs, metrics, regions, samples, tasks, wantExtras, wholeMetrics } from "./extras";
import { framesArrived } from "./frames";
import { LABELS } from "./geometry";
import { Gestures, onWheel } from "./gestures";
import { groupPictures } from "./group_pictures";
import { held } from "./held";
import { onContextMenu } from "./lane_menu";
import { lanes, layout } from "./lanes";
import type { GroupRow, Row } from "./layout";
import { moving } from "./moving";
import { arrived } from "./pictures";
import { timeText } from "./ruler";
import { counter, placed } from "./sql_track";
import {
    axis,
    chain,
    charts,
    end,
    kind,
    leads,
    like,
    markFacts,
    moveView,
    origin,
    path,
    range,
    scroll,
    selected,
    size,
    span,
    status,
    view,
    zoomBox,
} from "./state";
import { shown, summary } from "./summary";
import { texts, wantTexts } from "./texts";
import { type Tip, TipBox, tipAt } from "./tip";

/* Durations of the last frames in ms, newest last; read by benchmarks. */
export const frameTimes: number[] = [];

/* MARK: Requests */

function visibleRows(margin: number): Row[] {
    const { height } = size.value;
    return layout.value.between(scroll.value - margin, scroll.value + height + margin);
}

function visibleLanes(margin: number): number[] {
    return visibleRows(margin).flatMap((row) => (row.type === "lane" ? [row.lane.lane] : []));
}

function foldedGroups(): GroupRow[] {
    return visibleRows(0)
        .filter((row) => row.type === "group")
        .filter((row) => row.folded);
}

/* Whether the first picture has yet to arrive: until then nothing else is requested, to show it
 * sooner. */
function firstPictureComes(): boolean {
    const { goroutines = 0, procs = 0, threads = 0 } = status.value ?? {};
    const count = { goroutine: goroutines, proc: procs, thread: threads }[kind.value];
    if (arrived.value > 0 || count === 0) return false;
    return lanes.value.count === 0 || visibleLanes(0).length > 0;
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
    const window = view.value;
    const wanted = { window, pixels, endNs: end.value, fresh, roughly: moving.value };
    pictures[kind.value].want(visibleLanes(300), wanted).catch(() => {});
    if (firstPictureComes()) return;
    if (!moving.value) {
        const shown = { lanes: visibleLanes(0).slice(0, 200), pictures: pictures[kind.value] };
        wantTexts({ kind: kind.value, window, pixels: width - LABELS, ...shown, fresh });
    }
    groupPictures.want(foldedGroups(), layout.value.of, wanted).catch(() => {});
    const extras = { kind: kind.value, window, width: Math.round(width - LABELS) };
    wantExtras({ ...extras, lanes: visibleLanes(0).slice(0, 200), fresh, has });
    wholeMetrics.want(`${now.done} ${Math.round(Math.log2(fresh) * 8)}`, {
        window: { from: 0, to: end.value },
        width: 400,
        lanes: "",
    });
}

/* A canvas with the current drawing, for export. */
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
    const lanesDrawn = pictures[kind.value];
    drawMap(fit(of.map, width, MAP_HEIGHT), width, colors.value, drawPainted);
    drawHead(fit(of.head, width, head), width, colors.value, drawPainted);
    lanesDrawn.beginFrame();
    drawRows(fit(of.rows, width, height), width, height, colors.value, lanesDrawn, drawPainted);
    lanesDrawn.endFrame();
    frameTimes.push(performance.now() - began);
    if (frameTimes.length > 2000) frameTimes.shift();
}

/* Reads every signal that a frame depends on, so that a change to any of them schedules a frame. */
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
        zoomBox.value,
        chain.value,
        path.value,
        like.value,
        markFacts.value,
        origin.value,
        axis.value,
    ];
    void [placed.value, counter.value, held.value, moving.value, charts.value];
    void [shown.value, summary.value];
    void [texts.value.value, leads.value];
    void [regions.value.value, tasks.value.value, logs.value.value];
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

/* A line at the pointer, with its time on the ruler. */
function Crosshair(props: { at: number }) {
    const { from, to } = view.value;
    return (
        <div class="crosshair" style={{ left: `${props.at}px` }}>
            <span>{timeText(timeAt(props.at), (to - from) / 1000)}</span>
        </div>
    );
}

/* `height`: in pixels; 0: what there is. */
export function Timeline(props: { height: number; children?: ComponentChildren }) {
    const box = useRef<HTMLDivElement>(null);
    const map = useRef<HTMLCanvasElement>(null);
    const head = useRef<HTMLCanvasElement>(null);
    const rows = useRef<HTMLCanvasElement>(null);
    const tip = useSignal<Tip | null>(null);
    /* Where the pointer is, in pixels. */
    const cross = useSignal<number | null>(null);

    useEffect(() => {
        const of = { box: box.current, map: map.current, head: head.current, rows: rows.current };
        if (!of.box || !of.map || !of.head || !of.rows) return;
        const canvases = of as Canvases;
        const gestures = new Gestures();
        const observer = new ResizeObserver(() => {
            /* Hidden by a panel, on a phone. */
            if (canvases.box.clientWidth === 0) return;
            size.value = { width: canvases.box.clientWidth, height: size.peek().height - 0.001 };
        });
        observer.observe(canvases.box);
        for (const where of ["map", "head", "rows"] as const) {
            const canvas = canvases[where];
            canvas.addEventListener("pointerdown", (event) => gestures.down(event, where));
            canvas.addEventListener("pointermove", (event) => gestures.move(event));
            canvas.addEventListener("pointerup", (event) => gestures.up(event, where));
            canvas.addEventListener("pointercancel", (event) => gestures.cancel(event));
            canvas.addEventListener("pointermove", (event) => notePointer(event.offsetX));
            canvas.addEventListener("pointermove", (event) => {
                cross.value = event.offsetX >= LABELS ? event.offsetX : null;
            });
            canvas.addEventListener("pointerleave", () => notePointer(null));
            canvas.addEventListener("pointerleave", () => {
                cross.value = null;
            });
            canvas.addEventListener("contextmenu", (event) => onContextMenu(event, where));
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
    }, [tip, cross]);

    return (
        <div
            class="timeline"
            ref={box}
            style={props.height ? `flex: none; height: ${props.height}px` : ""}
        >
            <canvas class="map" ref={map} role="img" aria-label="The whole trace" />
            <canvas class="head" ref={head} role="img" aria-label="Ruler and counters" />
            <canvas
                class="rows"
                ref={rows}
                role="img"
                aria-label="Timeline. The keys move in it; ? shows them. The selection is described below."
            />
            {cross.value !== null && <Crosshair at={cross.value} />}
            {tip.value && <TipBox of={tip.value} />}
            {props.children}
        </div>
    );
}
