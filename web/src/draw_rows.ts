/*
 * Draws the lanes: states from their pictures, regions and tasks below them, marks of logs and samples, the selected
 * span with arrows for its wake-ups, and stop-the-world pauses across all lanes.
 */
import { type Span, WAITING } from "./api";
import type { DrawChart } from "./charts";
import { font, measure, nameColor, type Palette } from "./colors";
import { drawRange } from "./draw_head";
import { drawPlaced } from "./draw_sql";
import { type Bar, logs, type Mark, metrics, onLanes, regions, samples, tasks } from "./extras";
import { count, NO_NAME, nameWithin, shortName } from "./format";
import { framesOf } from "./frames";
import { type Box, LABELS, scale } from "./geometry";
import { groupChart, groupPictures } from "./group_pictures";
import { held, heldInFinding } from "./held";
import { DEPTH_HEIGHT, DEPTHS, LANE_HEIGHT, layout, stateHeight, titleWithin } from "./lanes";
import type { GroupRow, LaneRow } from "./layout";
import { metricCharts } from "./metric_charts";
import { kindWord } from "./panel";
import { type Cell, cellAt, type Drawing, firstCell } from "./pictures";
import { ticks } from "./ruler";
import { placed, placedByLane } from "./sql_track";
import {
    chain,
    isPhone,
    kind,
    like,
    mark,
    markFacts,
    path,
    pinned,
    range,
    scroll,
    selected,
    span,
    stateNumber,
    view,
    zoomBox,
} from "./state";
import { fitting, type Text, textsOf, timeFits, widthOf } from "./texts";

type Context = CanvasRenderingContext2D;

const STRIP = measure("rule");
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
    texts: Map<number, Text[]>;
}

function byLane<T extends { lane: number }>(items: T[]): Map<number, T[]> {
    const lanes = new Map<number, T[]>();
    for (const item of items) {
        const others = lanes.get(item.lane);
        if (others) others.push(item);
        else lanes.set(item.lane, [item]);
    }
    return lanes;
}

/* MARK: Rows */

const groupName = (row: GroupRow) => shortName(row.name) || NO_NAME;
const groupArrow = (row: GroupRow) => `${row.folded ? "▸" : "▾"} `;

/* Whether the whole name of a group ends before `end`. */
function groupNameFits({ to }: Scene, row: GroupRow, end: number): boolean {
    to.font = font("t-12", "strong");
    return 8 + to.measureText(groupArrow(row) + groupName(row)).width <= end;
}

/* Draws the name of a group, up to `end`, with its middle at `y`. */
function drawGroupName(scene: Scene, row: GroupRow, end: number, y: number): void {
    const { to, colors } = scene;
    to.save();
    to.beginPath();
    to.rect(0, y - 12, end, 24);
    to.clip();
    to.fillStyle = colors.text;
    to.font = font("t-12", "strong");
    const name = groupName(row);
    const arrow = groupArrow(row);
    const width = end - 8 - to.measureText(arrow).width;
    const title = nameWithin(name, "", width, (text) => to.measureText(text).width);
    to.fillText(arrow + title, 8, y);
    to.restore();
}

/* A folded group: the states of its lanes, stacked. What the full height stands for is below the
 * name. */
function drawFolded(scene: Scene, row: GroupRow, y: number): void {
    const { to, colors } = scene;
    const only = like.value ? stateNumber(like.value.state) : 0;
    const box = { x: LABELS, y: y + 2, width: scene.width - LABELS, height: row.height - 5 };
    drawGroupName(scene, row, LABELS - 8, y + 12);
    const picture = groupPictures.get(row.name);
    const atOnce = picture ? `, at most ${count(Math.round(picture.peak))} at once` : "";
    to.fillStyle = colors.faint;
    to.font = font("t-11");
    to.fillText(`${membersText(row)}${atOnce}`, 22, y + 27, LABELS - 30);
    if (picture) scene.chart(to, groupChart(picture, only), view.value, box);
}

function membersText(row: GroupRow): string {
    const many = row.lanes.length;
    if (isPhone()) return count(many);
    return `${count(many)} ${kindWord(kind.value, many !== 1)}`;
}

function drawGroup(scene: Scene, row: GroupRow, y: number): void {
    const { to, colors } = scene;
    to.fillStyle = colors.chrome;
    to.fillRect(0, y, row.folded ? LABELS : scene.width, row.height - 1);
    if (row.folded) {
        drawFolded(scene, row, y);
        return;
    }
    /* The count is at the right of the column of names, without its word where the name needs the room. */
    const middle = y + row.height / 2;
    const endFor = (members: string) => {
        to.font = font("t-12");
        return LABELS - 8 - to.measureText(members).width;
    };
    const long = membersText(row);
    const short = count(row.lanes.length);
    const members = groupNameFits(scene, row, endFor(long) - 6) ? long : short;
    const end = endFor(members);
    to.fillStyle = colors.faint;
    to.fillText(members, end, middle);
    drawGroupName(scene, row, end - 6, middle);
}

function drawName(scene: Scene, row: LaneRow, y: number): void {
    const { to, colors } = scene;
    const isSelected = selected.value?.lane === row.lane.lane && selected.value.kind === kind.value;
    if (isSelected) {
        to.fillStyle = colors.selected;
        to.fillRect(0, y, LABELS - 1, row.open ? LANE_HEIGHT : row.height);
    }
    to.fillStyle = colors.faint;
    to.font = font("t-12", isSelected ? "medium" : "");
    const arrow = kind.value === "goroutine" ? (row.open ? "▾ " : "▸ ") : "";
    const pin = pinned.value.includes(row.lane.lane) ? "★ " : "";
    to.save();
    to.beginPath();
    to.rect(0, y, LABELS - 6, row.height);
    to.clip();
    const before = `${arrow}${pin}`;
    const width = LABELS - 16 - to.measureText(before).width;
    const title = titleWithin(kind.value, row.lane, width, (text) => to.measureText(text).width);
    const middle = y + (row.open ? LANE_HEIGHT : row.height) / 2;
    /* The name stands out from the number before it. */
    const number = row.lane.name ? title.indexOf(" ", title.search(/\d/)) + 1 : title.length;
    const faint = before + title.slice(0, number);
    to.fillText(faint, 10, middle);
    to.fillStyle = colors.text;
    to.fillText((before + title).slice(faint.length), 10 + to.measureText(faint).width, middle);
    to.restore();
}

/* Where a bar begins and ends on the canvas; null: outside it. */
function edgesOf(scene: Scene, bar: Bar): [number, number] | null {
    const left = Math.max(scene.x(bar.begin), LABELS);
    const right = Math.min(Math.max(scene.x(bar.end), left + 1), scene.width);
    return right <= LABELS || left >= scene.width ? null : [left, right];
}

function drawBar(scene: Scene, bar: Bar, y: number): void {
    const at = edgesOf(scene, bar);
    const color = bar.merged > 1 ? "" : bar.name;
    if (at) drawText(scene, bar.name, ...at, y, DEPTH_HEIGHT - 1, color);
}

/* A region of a lane that is not unfolded. */
function drawRail(scene: Scene, bar: Bar, y: number): void {
    const at = edgesOf(scene, bar);
    if (!at) return;
    const { to, colors } = scene;
    to.fillStyle = colors.get("region-wash");
    to.fillRect(at[0], y, at[1] - at[0] - 0.5, STRIP);
    to.fillStyle = colors.get("region");
    to.fillRect(at[0], y + STRIP - 1, at[1] - at[0] - 0.5, 1);
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
    to.font = font("t-11");
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
        drawBar(scene, bar, y + LANE_HEIGHT + depth * DEPTH_HEIGHT);
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
    scene.to.font = font("t-11");
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

/* A line with a head; only the head reacts to clicks. */
function drawSample(to: Context, x: number, y: number, height: number, size: number): void {
    to.fillRect(x, y + 3, 1, height);
    to.fillRect(x - size, y + 1, 2 * size + 1, 2 * size + 1);
}

function drawMarks(scene: Scene, row: LaneRow, y: number): void {
    const { to } = scene;
    to.fillStyle = scene.colors.get("mark");
    for (const { at } of scene.logs.get(row.lane.lane) ?? [])
        if (scene.x(at) >= LABELS) drawLog(to, scene.x(at), y, 4);
    to.fillStyle = scene.colors.text;
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

/* Where the goroutine of the lane holds the chosen lock: its rail, hollow if that is inferred. */
function drawHeld(scene: Scene, row: LaneRow, y: number): void {
    const now = held.value;
    const ranges = kind.value === "goroutine" ? now?.byLane.get(row.lane.lane) : undefined;
    if (!now || !ranges) return;
    const top = y + 2 + stateHeight(row);
    let done = LABELS - 1;
    const color = scene.colors.get("hold");
    scene.to.fillStyle = color;
    for (const { from, to } of ranges) {
        const left = Math.max(scene.x(from), LABELS);
        const right = Math.min(Math.max(scene.x(to), left + 1), scene.width);
        if (left > scene.width) break;
        if (right <= Math.max(done + 0.5, LABELS)) continue;
        done = right;
        scene.to.fillRect(left, top, right - left, STRIP);
        if (!now.isInferred || right - left < 4) continue;
        scene.to.fillStyle = scene.colors.background;
        scene.to.fillRect(left + 1, top + 1, right - left - 2, STRIP - 2);
        scene.to.fillStyle = color;
    }
}

/* "sleep, holds mutex cache_mu": of a span within a hold that is drawn. */
function withHold(row: LaneRow, of: Text): Text {
    const now = kind.value === "goroutine" ? held.value : null;
    const middle = (of.begin + of.end) / 2;
    const ranges = now?.byLane.get(row.lane.lane) ?? [];
    const isHeld = ranges.some(({ from, to }) => from <= middle && middle < to);
    if (!now || !isHeld || (now.isInferred && now !== heldInFinding.value)) return of;
    const holds = `holds ${now.lock}${now.isInferred ? " (inferred)" : ""}`;
    return { ...of, forms: [`${of.forms[0]}, ${holds}`, ...of.forms] };
}

/* The texts of a lane's spans, each where it fits. */
function drawTexts(scene: Scene, row: LaneRow, box: Box): void {
    const { to, colors, width } = scene;
    to.font = font("t-11");
    for (const of of scene.texts.get(row.lane.lane) ?? []) {
        const left = Math.max(scene.x(of.begin), LABELS) + TEXT_GAP;
        const right = Math.min(scene.x(of.end), width) - TEXT_GAP;
        const form = right > left ? fitting(to, withHold(row, of), right - left) : "";
        if (!form) continue;
        const y = box.y + box.height / 2 + 2;
        const isPale = of.state === WAITING && of.wait !== "runtime";
        const solid = of.wait ? colors.get(`s-${of.wait}-text`) : colors.onState[of.state];
        to.fillStyle = isPale ? colors.text : solid;
        to.fillText(form, left, y);
        if (!timeFits(to, of, form, right - left)) continue;
        if (isPale) to.fillStyle = colors.faint;
        to.fillText(of.time, right - widthOf(to, of.time), y);
    }
}

/* Between the edge of a span and its text. */
const TEXT_GAP = 5;

function drawLane(scene: Scene, row: LaneRow, y: number, pictures: Drawing): void {
    const { to } = scene;
    const only = like.value ? stateNumber(like.value.state) : 0;
    const box = { x: LABELS, y: y + 2, width: scene.width - LABELS, height: stateHeight(row) };
    drawName(scene, row, y);
    if (!pictures.draw(to, row.lane, view.value, box, only)) {
        to.fillStyle = scene.colors.gridline;
        to.fillRect(LABELS, y + 7, scene.width - LABELS, 3);
    }
    drawTexts(scene, row, box);
    const rows = placed.value && placedByLane.value.get(row.lane.lane);
    if (rows && kind.value === "goroutine") drawPlaced(to, rows, scene.x, box, scene.colors);
    if (row.open) drawDepths(scene, row, y, pictures);
    else
        for (const bar of scene.regions.get(row.lane.lane) ?? [])
            if (bar.depth === 0) drawRail(scene, bar, y + 2 + stateHeight(row));
    drawHeld(scene, row, y);
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
    drawSpanBox(scene, now, scene.colors.get("selection"));
    if (own === null || kind.value !== "goroutine") return;
    const waker = now.waker && rowTop(now.waker.lane);
    const ender = now.ender && rowTop(now.ender.lane);
    if (typeof waker === "number") arrow(scene, waker, own, now.begin, scene.colors.get("wake"));
    if (typeof ender === "number") arrow(scene, ender, own, now.end, scene.colors.get("wake"));
    for (const woken of now.wakes ?? []) {
        const top = rowTop(woken.lane);
        if (top !== null) arrow(scene, own, top, woken.at, scene.colors.get("wake"));
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

/* Consecutive steps on one lane are one line. */
function pathLines(): { lane: number; begin: number; end: number }[] {
    const lines: { lane: number; begin: number; end: number }[] = [];
    for (const step of path.value) {
        const last = lines[lines.length - 1];
        if (last?.lane === step.lane) last.end = step.end;
        else lines.push({ ...step });
    }
    return lines;
}

/* A line through the lanes, with a dot where it changes lanes. */
function drawPath(scene: Scene): void {
    if (kind.value !== "goroutine" || path.value.length === 0) return;
    const { to, colors } = scene;
    const dots: [number, number][] = [];
    to.save();
    to.beginPath();
    to.rect(LABELS, 0, scene.width - LABELS, scene.height);
    to.clip();
    to.beginPath();
    for (const { lane, begin, end } of pathLines()) {
        const top = rowTop(lane);
        if (top === null) continue;
        const y = top + 2;
        if (dots.length === 0) to.moveTo(scene.x(begin), y);
        else to.lineTo(scene.x(begin), y);
        to.lineTo(scene.x(end), y);
        dots.push([scene.x(begin), y]);
        if (dots.length === 1 || lane !== path.value[path.value.length - 1].lane) continue;
        dots.push([scene.x(end), y]);
    }
    for (const [color, width] of [
        [colors.background, 4],
        [colors.get("critical"), 2],
    ] as const) {
        to.strokeStyle = color;
        to.lineWidth = width;
        to.stroke();
    }
    for (const [x, y] of dots.slice(0, MOST_DOTS)) {
        to.fillStyle = colors.get("critical");
        to.fillRect(x - 3, y - 3, 6, 6);
        to.fillStyle = colors.background;
        to.fillRect(x - 1.5, y - 1.5, 3, 3);
    }
    to.restore();
}

const MOST_DOTS = 400;

/* Each pixel is as dark as the share of its time in which the world was stopped. */
function drawStops(scene: Scene): void {
    const now = metrics.value.value;
    const box = { x: LABELS, y: 0, width: scene.width - LABELS, height: scene.height };
    if (now) scene.chart(scene.to, metricCharts(now, scene.colors).stoppedOver, view.value, box);
}

/* The selected range: over all lanes, or over those to which it is restricted. */
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
        regions: byLane([...onLanes(regions, kind.value), ...onLanes(tasks, kind.value)]),
        logs: byLane(onLanes(logs, kind.value)),
        samples: byLane(onLanes(samples, kind.value)),
        texts: byLane(textsOf(kind.value)),
    };
    to.fillStyle = colors.background;
    to.fillRect(0, 0, width, height);
    to.imageSmoothingEnabled = false;
    to.textBaseline = "middle";
    to.fillStyle = colors.gridline;
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
