/*
 * Draws the lanes: states from their pictures, regions and tasks below them, marks of logs and samples, the selected
 * span with arrows for its wake-ups, and stop-the-world pauses across all lanes.
 */
import type { Span } from "./api";
import type { DrawChart } from "./charts";
import { css, nameColor, type Palette, stateColors } from "./colors";
import { drawRange } from "./draw_head";
import { drawPlaced } from "./draw_sql";
import { type Bar, logs, type Mark, metrics, regions, samples, tasks } from "./extras";
import { count, shortName } from "./format";
import { framesOf } from "./frames";
import { LABELS, scale } from "./geometry";
import { groupChart, groupPictures } from "./group_pictures";
import { held } from "./held";
import {
    DEPTH_HEIGHT,
    DEPTHS,
    LANE_HEIGHT,
    layout,
    nameWithin,
    stateHeight,
    titleWithin,
} from "./lanes";
import type { GroupRow, LaneRow } from "./layout";
import { metricCharts } from "./metric_charts";
import { kindWord } from "./panel";
import { type Cell, cellAt, type Drawing, firstCell } from "./pictures";
import { ticks } from "./ruler";
import { placed, placedByLane } from "./sql_track";
import {
    chain,
    kind,
    like,
    mark,
    markFacts,
    path,
    range,
    scroll,
    selected,
    span,
    stateNumber,
    view,
    zoomBox,
} from "./state";

type Context = CanvasRenderingContext2D;

const STRIP = 5;
/* Height of the bar of a lock's holder. */
const HELD = 5;
/* Minimum width in pixels of a span whose stack is requested. */
const WIDE = 24;

interface Scene {
    to: Context;
    width: number;
    height: number;
    colors: Palette;
    chart: DrawChart;
    x: (ns: number) => number;
    regions: Map<number, Bar[]>;
    logs: Map<number, Mark[]>;
    samples: Map<number, Mark[]>;
}

function byLane<T extends { lane: number }>(items: T[] | null): Map<number, T[]> {
    const lanes = new Map<number, T[]>();
    for (const item of items ?? []) {
        const others = lanes.get(item.lane);
        if (others) others.push(item);
        else lanes.set(item.lane, [item]);
    }
    return lanes;
}

/* MARK: Rows */

/* The name of a group, which ends before `end`, with its middle at `y`. */
function drawGroupName(scene: Scene, row: GroupRow, end: number, y: number): void {
    const { to, colors } = scene;
    to.save();
    to.beginPath();
    to.rect(0, y - 12, end, 24);
    to.clip();
    to.fillStyle = colors.text;
    to.font = "600 12px system-ui, sans-serif";
    const name = shortName(row.name) || "no start function";
    const arrow = `${row.folded ? "▸" : "▾"} `;
    const width = end - 8 - to.measureText(arrow).width;
    const title = nameWithin(name, "", width, (text) => to.measureText(text).width);
    to.fillText(arrow + title, 8, y);
    to.restore();
}

/* A folded group: its lanes' states on top of each other. What the height stands for is below the name. */
function drawFolded(scene: Scene, row: GroupRow, y: number): void {
    const { to, colors } = scene;
    const only = like.value ? stateNumber(like.value.state) : 0;
    const box = { x: LABELS, y: y + 2, width: scene.width - LABELS, height: row.height - 5 };
    drawGroupName(scene, row, LABELS - 8, y + 12);
    const picture = groupPictures.get(row.name);
    const atOnce = picture ? `, at most ${count(Math.round(picture.peak))} at once` : "";
    to.fillStyle = colors.faint;
    to.font = "11px system-ui, sans-serif";
    to.fillText(`${membersText(row)}${atOnce}`, 22, y + 27, LABELS - 30);
    if (picture) scene.chart(to, groupChart(picture, only), view.value, box);
}

function membersText(row: GroupRow): string {
    const many = row.lanes.length;
    return `${count(many)} ${kindWord(kind.value, many !== 1)}`;
}

function drawGroup(scene: Scene, row: GroupRow, y: number): void {
    const { to, colors } = scene;
    to.fillStyle = colors.raised;
    to.fillRect(0, y, row.folded ? LABELS : scene.width, row.height - 1);
    if (row.folded) {
        drawFolded(scene, row, y);
        return;
    }
    /* The count is at the right of the column of names, and the name ends before it. */
    to.font = "12px system-ui, sans-serif";
    const members = membersText(row);
    const end = LABELS - 8 - to.measureText(members).width;
    to.fillStyle = colors.faint;
    to.fillText(members, end, y + row.height / 2);
    drawGroupName(scene, row, end - 6, y + row.height / 2);
}

function drawName(scene: Scene, row: LaneRow, y: number): void {
    const { to, colors } = scene;
    const isSelected = selected.value?.lane === row.lane.lane && selected.value.kind === kind.value;
    if (isSelected) {
        to.fillStyle = colors.dark ? "#24405c" : "#dcebfb";
        to.fillRect(0, y, LABELS - 1, row.open ? LANE_HEIGHT : row.height);
    }
    to.fillStyle = isSelected ? colors.text : colors.faint;
    to.font = "11.5px system-ui, sans-serif";
    const arrow = kind.value === "goroutine" ? (row.open ? "▾ " : "▸ ") : "";
    const pin = row.pinned ? "★ " : "";
    to.save();
    to.beginPath();
    to.rect(0, y, LABELS - 6, row.height);
    to.clip();
    const before = `${arrow}${pin}`;
    const width = LABELS - 16 - to.measureText(before).width;
    const title = titleWithin(kind.value, row.lane, width, (text) => to.measureText(text).width);
    to.fillText(before + title, 10, y + (row.open ? LANE_HEIGHT : row.height) / 2);
    to.restore();
}

function drawBar(scene: Scene, bar: Bar, y: number, height: number, withText: boolean): void {
    const left = Math.max(scene.x(bar.begin), LABELS);
    const right = Math.min(Math.max(scene.x(bar.end), left + 1), scene.width);
    if (right <= LABELS || left >= scene.width) return;
    const color = bar.merged > 1 ? "" : bar.name;
    drawText(scene, withText ? bar.name : "", left, right, y, height, color);
}

/* Draws the frames of a wide span below it, the outermost on top. */
function drawFrames(
    scene: Scene,
    lane: number,
    cell: Cell,
    left: number,
    right: number,
    y: number,
    rows: number,
) {
    const frames = framesOf(kind.value, lane, cell.first) ?? [];
    frames.slice(0, rows).forEach((name, i) => {
        drawText(
            scene,
            shortName(name),
            left,
            right,
            y + i * DEPTH_HEIGHT,
            DEPTH_HEIGHT - 1,
            shortName(name).split(".")[0],
        );
    });
}

function drawText(
    scene: Scene,
    text: string,
    left: number,
    right: number,
    y: number,
    height: number,
    color: string,
) {
    const { to, colors } = scene;
    to.fillStyle = color ? nameColor(color, colors.dark) : colors.faint;
    to.fillRect(left, y, right - left - 0.5, height);
    if (right - left < 30) return;
    to.fillStyle = colors.text;
    to.font = "10px system-ui, sans-serif";
    to.save();
    to.beginPath();
    to.rect(left, y, right - left - 2, height);
    to.clip();
    to.fillText(text, left + 3, y + height / 2 + 0.5);
    to.restore();
}

/* An unfolded lane: regions by depth, then the stacks of spans that are wide enough. */
function drawDepths(scene: Scene, row: LaneRow, y: number, pictures: Drawing): void {
    const bars = scene.regions.get(row.lane.lane) ?? [];
    const deepest = bars.reduce((most, bar) => Math.max(most, bar.depth + 1), 0);
    const rows = Math.min(deepest, DEPTHS - 4);
    for (const bar of bars) {
        const depth = Math.min(bar.depth, rows - 1);
        drawBar(scene, bar, y + LANE_HEIGHT + depth * DEPTH_HEIGHT, DEPTH_HEIGHT - 1, true);
    }
    const picture = pictures.get(row.lane.lane);
    const window = view.value;
    let drawn = 0;
    for (let i = picture ? firstCell(picture, window.from) : 0; picture && i < picture.count; i++) {
        const cell = cellAt(picture, i);
        const scale = (picture.to - picture.from) / picture.width;
        const left = Math.max(scene.x(picture.from + cell.x * scale), LABELS);
        const right = Math.min(scene.x(picture.from + (cell.x + cell.pixels) * scale), scene.width);
        if (left >= scene.width) break;
        if (cell.mixture || right - left < WIDE) continue;
        if (++drawn > 200) break;
        const top = y + LANE_HEIGHT + rows * DEPTH_HEIGHT;
        drawFrames(scene, row.lane.lane, cell, left, right, top, DEPTHS - rows);
    }
    if (drawn > 0 || bars.length > 0) return;
    scene.to.fillStyle = scene.colors.faint;
    scene.to.font = "11px system-ui, sans-serif";
    scene.to.fillText(
        "zoom in to see stacks; there are no regions here",
        LABELS + 8,
        y + LANE_HEIGHT + 8,
    );
}

function drawLog(to: Context, x: number, y: number, size: number): void {
    to.beginPath();
    to.moveTo(x - size, y + 1);
    to.lineTo(x + size, y + 1);
    to.lineTo(x, y + 3 + size);
    to.fill();
}

/* A line with a head; the head is the part that reacts to clicks. */
function drawSample(to: Context, x: number, y: number, height: number, size: number): void {
    to.fillRect(x, y + 3, 1, height);
    to.fillRect(x - size, y + 1, 2 * size + 1, 2 * size + 1);
}

function drawMarks(scene: Scene, row: LaneRow, y: number): void {
    const { to } = scene;
    to.fillStyle = "#b33a8f";
    for (const { at } of scene.logs.get(row.lane.lane) ?? [])
        if (scene.x(at) >= LABELS) drawLog(to, scene.x(at), y, 4);
    to.fillStyle = scene.colors.dark ? "#ffffff" : "#123";
    for (const { at } of scene.samples.get(row.lane.lane) ?? [])
        if (scene.x(at) >= LABELS) drawSample(to, scene.x(at), y, stateHeight(row) - 2, 1);
}

function drawSelectedMark(scene: Scene): void {
    const facts = markFacts.value;
    const row = facts?.goroutine && layout.value.ofLane(facts.goroutine.lane);
    if (!facts || !row || kind.value !== "goroutine" || scene.x(facts.at) < LABELS) return;
    const y = row.top - scroll.value;
    scene.to.fillStyle = scene.colors.warn;
    if (mark.value?.kind === "log") drawLog(scene.to, scene.x(facts.at), y, 6);
    else drawSample(scene.to, scene.x(facts.at), y, stateHeight(row) - 2, 2);
}

/* Where the lane's goroutine holds the chosen lock: a bar in its states, hollow if that is inferred. */
function drawHeld(scene: Scene, row: LaneRow, y: number): void {
    const now = held.value;
    const ranges = kind.value === "goroutine" ? now?.byLane.get(row.lane.lane) : undefined;
    if (!now || !ranges) return;
    const top = y + 2 + stateHeight(row) - HELD;
    let done = LABELS - 1;
    scene.to.fillStyle = scene.colors.text;
    for (const { from, to } of ranges) {
        const left = Math.max(scene.x(from), LABELS);
        const right = Math.min(Math.max(scene.x(to), left + 1), scene.width);
        if (left > scene.width) break;
        if (right <= Math.max(done + 0.5, LABELS)) continue;
        done = right;
        scene.to.fillRect(left, top, right - left, HELD);
        if (!now.isInferred || right - left < 4) continue;
        scene.to.fillStyle = scene.colors.background;
        scene.to.fillRect(left + 1, top + 1, right - left - 2, HELD - 2);
        scene.to.fillStyle = scene.colors.text;
    }
}

function drawLane(scene: Scene, row: LaneRow, y: number, pictures: Drawing): void {
    const { to } = scene;
    const only = like.value ? stateNumber(like.value.state) : 0;
    const box = { x: LABELS, y: y + 2, width: scene.width - LABELS, height: stateHeight(row) };
    drawName(scene, row, y);
    if (!pictures.draw(to, row.lane.lane, view.value, box, only)) {
        to.fillStyle = scene.colors.raised;
        to.fillRect(LABELS, y + 7, scene.width - LABELS, 3);
    }
    const rows = placed.value && placedByLane.value.get(row.lane.lane);
    if (rows && kind.value === "goroutine") drawPlaced(to, rows, scene.x, box, scene.colors);
    drawHeld(scene, row, y);
    if (row.open) drawDepths(scene, row, y, pictures);
    else
        for (const bar of scene.regions.get(row.lane.lane) ?? [])
            if (bar.depth === 0) drawBar(scene, bar, y + 2 + stateHeight(row), STRIP, false);
    drawMarks(scene, row, y);
}

/* MARK: Overlays */

function rowTop(lane: number): number | null {
    const row = layout.value.ofLane(lane);
    return row ? row.top - scroll.value : null;
}

function laneStateHeight(lane: number): number {
    const row = layout.value.ofLane(lane);
    return row ? stateHeight(row) : LANE_HEIGHT - 9;
}

function arrow(scene: Scene, from: number, to: number, at: number, color: string): void {
    const context = scene.to;
    const x = scene.x(at);
    const middle = (LANE_HEIGHT - 9) / 2 + 2;
    const y0 = Math.max(-10, Math.min(from + middle, scene.height + 10));
    const y1 = Math.max(-10, Math.min(to + middle, scene.height + 10));
    if (x < LABELS || x > scene.width || y0 === y1) return;
    const back = y1 > y0 ? -6 : 6;
    context.strokeStyle = color;
    context.fillStyle = color;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, y0);
    context.lineTo(x, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x - 4, y1 + back);
    context.lineTo(x + 4, y1 + back);
    context.lineTo(x, y1);
    context.fill();
}

function drawSpanBox(scene: Scene, of: Span, color: string): void {
    const top = rowTop(of.lane);
    if (top === null) return;
    const left = Math.max(scene.x(of.begin), LABELS);
    const right = Math.min(Math.max(scene.x(of.end), left + 3), scene.width);
    if (right < LABELS || left > scene.width) return;
    scene.to.strokeStyle = color;
    scene.to.lineWidth = 2;
    scene.to.strokeRect(left, top + 1, right - left, laneStateHeight(of.lane) + 2);
}

function drawSelected(scene: Scene): void {
    const now = span.value;
    if (!now || selected.value?.kind !== kind.value) return;
    const own = rowTop(now.lane);
    drawSpanBox(scene, now, scene.colors.text);
    if (own === null || kind.value !== "goroutine") return;
    const waker = now.waker && rowTop(now.waker.lane);
    const ender = now.ender && rowTop(now.ender.lane);
    if (typeof waker === "number") arrow(scene, waker, own, now.begin, scene.colors.warn);
    if (typeof ender === "number") arrow(scene, ender, own, now.end, scene.colors.warn);
    for (const woken of now.wakes ?? []) {
        const top = rowTop(woken.lane);
        if (top !== null) arrow(scene, own, top, woken.at, scene.colors.accent);
    }
}

function drawChain(scene: Scene): void {
    if (kind.value !== "goroutine") return;
    for (const step of chain.value) {
        drawSpanBox(scene, step, scene.colors.warn);
        const own = rowTop(step.lane);
        const by = step.waker ?? step.ender;
        const from = by ? rowTop(by.lane) : null;
        const at = step.waker ? step.begin : step.end;
        if (own !== null && from !== null) arrow(scene, from, own, at, scene.colors.warn);
    }
}

/* A line through the lanes: along each segment, and down or up to the lane of the next. */
function drawPath(scene: Scene): void {
    if (kind.value !== "goroutine" || path.value.length === 0) return;
    const { to } = scene;
    let isFirst = true;
    to.save();
    to.beginPath();
    to.rect(LABELS, 0, scene.width - LABELS, scene.height);
    to.clip();
    to.strokeStyle = scene.colors.warn;
    to.lineWidth = 2.5;
    to.beginPath();
    for (const segment of path.value) {
        const top = rowTop(segment.lane);
        if (top === null) continue;
        const y = top + 2 + laneStateHeight(segment.lane) / 2;
        if (isFirst) to.moveTo(scene.x(segment.begin), y);
        else to.lineTo(scene.x(segment.begin), y);
        isFirst = false;
        to.lineTo(scene.x(segment.end), y);
    }
    to.stroke();
    to.restore();
}

/* Each pixel is as dark as the share of it that the world was stopped. */
function drawStops(scene: Scene): void {
    const now = metrics.value.value;
    const box = { x: LABELS, y: 0, width: scene.width - LABELS, height: scene.height };
    if (now)
        scene.chart(scene.to, metricCharts(now, scene.colors.dark).stoppedOver, view.value, box);
}

/* The selected range: over all lanes, or over those that it is restricted to. */
function drawArea(scene: Scene): void {
    const of = range.value?.of;
    if (!of) {
        drawRange(scene.to, scene.x, { y: 0, height: scene.height }, scene.colors);
        return;
    }
    if (of.kind !== kind.value) return;
    for (const lane of of.lanes) {
        const row = layout.value.ofLane(lane);
        const y = row ? row.top - scroll.value : scene.height;
        if (row && y < scene.height && y + row.height > 0)
            drawRange(scene.to, scene.x, { y, height: row.height }, scene.colors);
    }
}

function drawZoomBox(scene: Scene): void {
    const box = zoomBox.value;
    if (!box) return;
    const top = Math.max(box.top, 1);
    const bottom = Math.min(box.bottom, scene.height - 1);
    scene.to.strokeStyle = scene.colors.text;
    scene.to.lineWidth = 1;
    scene.to.setLineDash([4, 3]);
    scene.to.strokeRect(box.left + 0.5, top + 0.5, box.right - box.left, bottom - top);
    scene.to.setLineDash([]);
}

export function drawRows(
    to: Context,
    width: number,
    height: number,
    colors: Palette,
    pictures: Drawing,
    chart: DrawChart,
) {
    const window = view.value;
    const inner = width - LABELS;
    const scene: Scene = {
        to,
        width,
        height,
        colors,
        chart,
        x: scale(window.from, window.to, width),
        regions: byLane([...(regions.value.value ?? []), ...(tasks.value.value ?? [])]),
        logs: byLane(logs.value.value),
        samples: byLane(samples.value.value),
    };
    to.fillStyle = colors.background;
    to.fillRect(0, 0, width, height);
    to.imageSmoothingEnabled = false;
    to.textBaseline = "middle";
    to.fillStyle = colors.line;
    for (const tick of ticks(window, inner))
        to.fillRect(Math.round(scene.x(tick.at)), 0, 1, height);
    for (const row of layout.value.between(scroll.value, scroll.value + height)) {
        const y = row.top - scroll.value;
        if (row.type === "group") drawGroup(scene, row, y);
        else drawLane(scene, row, y, pictures);
    }
    drawStops(scene);
    drawChain(scene);
    drawSelected(scene);
    drawSelectedMark(scene);
    to.save();
    to.beginPath();
    to.rect(LABELS, 0, inner, height);
    to.clip();
    drawArea(scene);
    drawZoomBox(scene);
    to.restore();
    drawPath(scene);
    to.fillStyle = colors.line;
    to.fillRect(LABELS - 1, 0, 1, height);
}

export const legend = stateColors.slice(1).map((color) => css(color));
