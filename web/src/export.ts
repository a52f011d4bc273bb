/* Exports the timeline as SVG and PNG, and the command line that extracts a part of the trace. */
import { copyText } from "./clipboard";
import { css, stateColors } from "./colors";
import { LABELS, scale } from "./geometry";
import { laneTitle, layout } from "./lanes";
import type { LaneRow } from "./layout";
import { cellAt } from "./pictures";
import { ticks } from "./ruler";
import { kind, range, scroll, size, status, view } from "./state";
import { download } from "./table";
import { pictureOf, timelineImage } from "./timeline";

function escapeXml(text: string): string {
    return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

const HEIGHT = 20;
const MOST_LANES = 60;

/* Exports the lanes from the top of the screen on, at most 60. */
export async function svgOfView(): Promise<void> {
    const window = view.value;
    const width = Math.max(800, size.value.width);
    const x = scale(window.from, window.to, width);
    const rows: LaneRow[] = [];
    for (const row of layout.value.from(scroll.value - 20)) {
        if (row.type === "lane" && row.top >= scroll.value - 20) rows.push(row);
        if (rows.length === MOST_LANES) break;
    }
    const parts: string[] = [];
    for (const tick of ticks(window, width - LABELS))
        parts.push(
            `<path d="M${x(tick.at).toFixed(1)} 0V${(rows.length + 1) * HEIGHT}" stroke="#dde2e6"/>` +
                `<text x="${(x(tick.at) + 3).toFixed(1)}" y="13">${escapeXml(tick.text)}</text>`,
        );
    rows.forEach((row, i) => {
        const y = (i + 1) * HEIGHT;
        parts.push(
            `<text x="6" y="${y + 13}">${escapeXml(laneTitle(kind.value, row.lane)).slice(0, 200)}</text>`,
        );
        const picture = pictureOf(row.lane.lane);
        if (!picture) return;
        const perPixel = (picture.to - picture.from) / picture.width;
        for (let c = 0; c < picture.count; c++) {
            const cell = cellAt(picture, c);
            const from = Math.max(x(picture.from + cell.x * perPixel), LABELS);
            const to = Math.min(x(picture.from + (cell.x + cell.pixels) * perPixel), width);
            if (to <= from || cell.state === 0) continue;
            const opacity = cell.state === 3 ? ' opacity=".5"' : "";
            const box = `x="${from.toFixed(1)}" y="${y + 3}" width="${(to - from).toFixed(1)}" height="13"`;
            parts.push(`<rect ${box} fill="${css(stateColors[cell.state])}"${opacity}/>`);
        }
    });
    const height = (rows.length + 1) * HEIGHT;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="11">`;
    download(
        "timeline.svg",
        "image/svg+xml",
        `${head}<rect width="100%" height="100%" fill="#fff"/>${parts.join("\n")}</svg>`,
    );
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
    const quoted = /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
    const times = `--from=${Math.max(0, Math.round(from))}ns --to=${Math.round(to)}ns`;
    const command = `trail convert ${times} -o part.trace ${quoted}`;
    void copyText(command, `Copied: ${command}`, `The browser refuses to copy: ${command}`);
}
