/*
 * Charts over columns of time, such as the number of goroutines by state. A chart is described once
 * and drawn in two ways: on the screen from a picture that is painted once, because browsers
 * without a GPU need several ms per frame for long paths; in SVG as paths.
 */
import { pixelOf, type Rgb } from "./colors";
import type { Box } from "./geometry";
import { canvasOf, drawPart, emptyImage } from "./images";
import type { Range } from "./state";

type Context = CanvasRenderingContext2D;

/* A part of the chart's height in each column, in one colour: from `low` to `high`, where 0 is the
 * bottom and 1 the top. */
export interface Area {
    color: Rgb;
    low: ArrayLike<number>;
    high: ArrayLike<number>;
    /* From 0 to 1, for all columns or for each; if omitted: 1. */
    alpha?: number | ArrayLike<number>;
}

export interface Chart extends Range {
    columns: number;
    /* Later ones cover earlier ones. */
    areas: Area[];
    /* Each column has one colour from top to bottom: the picture is one pixel high. */
    flat?: boolean;
    painted?: OffscreenCanvas;
}

function alphaOf({ alpha = 1 }: Area, i: number): number {
    return typeof alpha === "number" ? alpha : (alpha[i] ?? 1);
}

/* Draws the visible part of a chart into a box as wide as the window. */
export type DrawChart = (to: Context, chart: Chart, window: Range, box: Box) => void;

/* MARK: On the screen */

/* Heights are whole pixels, so that each pixel has exactly the colour of its area. */
function paintArea(area: Area, image: ImageData): void {
    const { width, height } = image;
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < width; i++) {
        const alpha = alphaOf(area, i);
        if (alpha === 0) continue;
        const pixel = pixelOf(area.color, alpha);
        const from = Math.round(height * (1 - area.high[i]));
        const until = Math.round(height * (1 - area.low[i]));
        for (let y = from; y < until; y++) pixels[y * width + i] = pixel;
    }
}

/* A column is one pixel wide. */
function painted(chart: Chart, height: number): OffscreenCanvas {
    if (chart.painted?.height === height) return chart.painted;
    const image = emptyImage(chart.columns, height);
    for (const area of chart.areas) paintArea(area, image);
    chart.painted = canvasOf(image);
    return chart.painted;
}

export const drawPainted: DrawChart = (to, chart, window, box) => {
    const height = chart.flat ? 1 : Math.ceil(box.height * devicePixelRatio);
    const smoothing = to.imageSmoothingEnabled;
    to.imageSmoothingEnabled = false;
    drawPart(to, painted(chart, height), chart, window, box);
    to.imageSmoothingEnabled = smoothing;
};

/* MARK: In SVG */

/* The column after those that are like the first one. */
function endOfAlike(area: Area, first: number, columns: number): number {
    const isAlike = (i: number) =>
        area.low[i] === area.low[first] &&
        area.high[i] === area.high[first] &&
        alphaOf(area, i) === alphaOf(area, first);
    let end = first + 1;
    while (end < columns && isAlike(end)) end++;
    return end;
}

/* One path or, if the columns differ in their alpha, rectangles; equal columns are merged. */
export const drawPaths: DrawChart = (to, chart, window, box) => {
    const perNs = box.width / (window.to - window.from);
    const step = (chart.to - chart.from) / chart.columns;
    const at = (i: number) => box.x + (chart.from + i * step - window.from) * perNs;
    for (const area of chart.areas) {
        const color = area.color.join(" ");
        const isEven = !(typeof area.alpha === "object");
        to.fillStyle = `rgb(${color} / ${alphaOf(area, 0)})`;
        to.beginPath();
        for (let i = 0, end = 0; i < chart.columns; i = end) {
            end = endOfAlike(area, i, chart.columns);
            const left = Math.max(at(i), box.x);
            const right = Math.min(at(end), box.x + box.width);
            const tall = box.height * (area.high[i] - area.low[i]);
            if (right <= left || tall <= 0 || alphaOf(area, i) === 0) continue;
            const top = box.y + box.height * (1 - area.high[i]);
            if (isEven) to.rect(left, top, right - left, tall);
            else {
                to.fillStyle = `rgb(${color} / ${alphaOf(area, i)})`;
                to.fillRect(left, top, right - left, tall);
            }
        }
        if (isEven) to.fill();
    }
};
