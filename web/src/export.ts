/* Exports the timeline as SVG and PNG, and the command line that extracts a part of the trace. */

import { WAITING } from "./api";
import { drawPaths } from "./charts";
import { copyText } from "./clipboard";
import { font, IDLE_WAIT, light, measure, type Rgb, UNKNOWN_WAIT } from "./colors";
import { pictures } from "./coordinates";
import { drawHead, drawMap, headHeight, MAP_HEIGHT } from "./draw_head";
import { drawRows } from "./draw_rows";
import { shellWord } from "./format";
import type { Box } from "./geometry";
import { layout } from "./lanes";
import {
    alphaOf,
    cellAt,
    type Drawing,
    gapsOf,
    type Picture,
    sharesAt,
    stacking,
} from "./pictures";
import { kind, type Range, range, scroll, size, status, view } from "./state";
import { SvgContext } from "./svg";
import { download } from "./table";
import { timelineImage } from "./timeline";

/* MARK: SVG */

function fill(to: CanvasRenderingContext2D, box: Box, color: Rgb, alpha: number): void {
    to.fillStyle = `rgb(${color.join(" ")} / ${alpha})`;
    to.fillRect(box.x, box.y, box.width, box.height);
}

/* Pale with an edge on top; a wait for work is a line. */
function drawWait(to: CanvasRenderingContext2D, box: Box, wait: number, alpha: number): void {
    const { ink, wash } = light.waits[wait];
    const edge = Math.min(measure("edge"), box.height);
    if (wait !== IDLE_WAIT) fill(to, box, wash, alpha);
    const top = wait === IDLE_WAIT ? box.y + (box.height - edge) / 2 : box.y;
    fill(to, { ...box, y: top, height: edge }, ink, alpha);
}

/* Where columns of a picture are in the box that shows the window. */
function placesOf(columns: [number, number][], picture: Picture, window: Range, box: Box): Box[] {
    const end = box.x + box.width;
    const perNs = box.width / (window.to - window.from);
    const perPixel = (picture.to - picture.from) / picture.width;
    const at = (pixel: number) => box.x + (picture.from + pixel * perPixel - window.from) * perNs;
    return columns
        .map(([from, to]) => [Math.max(at(from), box.x), Math.min(at(to), end)])
        .filter(([left, right]) => right > left)
        .map(([left, right]) => ({ ...box, x: left, width: right - left }));
}

/* Draws the states of a lane as rectangles, where the screen uses a picture, so that they are sharp
 * at every size. */
function drawStates(
    to: CanvasRenderingContext2D,
    picture: Picture,
    window: Range,
    box: Box,
    only: number,
): void {
    for (let i = 0; i < picture.count; i++) {
        const cell = cellAt(picture, i);
        const [place] = placesOf([[cell.x, cell.x + cell.pixels]], picture, window, box);
        if (!place) continue;
        const shares = cell.mixture ? sharesAt(picture, i) : [];
        const all = Math.max(
            255,
            shares.reduce((sum, share) => sum + share, 0),
        );
        let bottom = box.y + box.height;
        for (const state of cell.mixture ? stacking : [cell.state]) {
            const high = cell.mixture ? (box.height * shares[state]) / all : box.height;
            const alpha = alphaOf(state, only);
            if (high === 0 || alpha === 0) continue;
            bottom -= high;
            const part = { ...place, y: bottom, height: high };
            if (state === WAITING) drawWait(to, part, cell.wait, alpha);
            else fill(to, part, light.states[state], alpha);
        }
    }
}

function vectors(): Drawing {
    const of = pictures[kind.value];
    return {
        get: (lane) => of.get(lane),
        draw: (to, lane, window, box, only) => {
            const picture = of.get(lane.lane);
            if (!picture) return false;
            drawStates(to, picture, window, box, only);
            const gaps = gapsOf(picture, kind.value, lane);
            for (const part of placesOf(gaps, picture, window, box))
                drawWait(to, part, UNKNOWN_WAIT, alphaOf(WAITING, only));
            return true;
        },
    };
}

const LEGEND_LINE = 18;

/* The page's legend as shown: signs and their texts, in lines. Returns its height. */
function drawLegend(to: CanvasRenderingContext2D, width: number): number {
    let x = 8;
    let y = LEGEND_LINE / 2 + 4;
    to.font = font("t-11");
    to.textBaseline = "middle";
    for (const entry of document.querySelectorAll(".legend > span")) {
        const sign = entry.querySelector(".swatch");
        const text = entry.textContent?.trim() ?? "";
        const long = 30 + to.measureText(text).width;
        if (x + long > width && x > 8) {
            x = 8;
            y += LEGEND_LINE;
        }
        if (sign) drawSign(to, getComputedStyle(sign), x, y);
        to.fillStyle = light.text;
        to.fillText(text, x + 16, y);
        x += long;
    }
    return y + LEGEND_LINE / 2 + 4;
}

function drawSign(
    to: CanvasRenderingContext2D,
    of: CSSStyleDeclaration,
    x: number,
    y: number,
): void {
    const width = Number.parseFloat(of.width) || 11;
    const height = Number.parseFloat(of.height) || 11;
    const top = y - height / 2;
    to.fillStyle = of.backgroundColor;
    to.beginPath();
    if (of.clipPath.startsWith("polygon")) {
        to.moveTo(x, top);
        to.lineTo(x + width, top);
        to.lineTo(x + width / 2, top + height);
    } else {
        to.rect(x, top, width, height);
    }
    to.fill();
    if (of.borderTopStyle !== "solid") return;
    to.strokeStyle = of.borderTopColor;
    to.lineWidth = 1;
    to.strokeRect(x + 0.5, top + 0.5, width - 1, height - 1);
}

/* Exports what the screen shows, in light colours: the overview, the ruler and the counters, the
 * lanes, and the legend. */
export function svgOfView(): void {
    const { width, height } = size.value;
    const svg = new SvgContext();
    const to = svg as unknown as CanvasRenderingContext2D;
    const bottom = Math.min(height, Math.max(0, layout.value.height - scroll.value));
    let top = 0;
    const part = (high: number, draw: () => void) => {
        svg.begin(top);
        to.save();
        to.beginPath();
        to.rect(0, 0, width, high);
        to.clip();
        draw();
        to.restore();
        svg.end();
        top += high;
    };
    part(MAP_HEIGHT, () => drawMap(to, width, light, drawPaths));
    part(headHeight(), () => drawHead(to, width, light, drawPaths));
    part(bottom, () => drawRows(to, width, bottom, light, vectors(), drawPaths));
    svg.begin(top);
    top += drawLegend(to, width);
    svg.end();
    download("timeline.svg", "image/svg+xml", svg.document(width, top, light.background));
}

export function pngOfView(): void {
    timelineImage().toBlob((blob) => {
        if (blob) download("timeline.png", "image/png", blob);
    });
}

/* Copies the command line that extracts the selected range, or else the visible window. */
export function cutCommand(): void {
    const { from, to } = range.value ?? view.value;
    const name = status.value?.title ?? "app.trace";
    const times = `--from=${Math.max(0, Math.round(from))}ns --to=${Math.round(to)}ns`;
    const command = `trail convert ${times} -o part.trace ${shellWord(name)}`;
    void copyText(command, `Copied: ${command}`, `The browser refuses to copy: ${command}`);
}
