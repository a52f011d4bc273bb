// How quick the viewer is, in a browser without a GPU: see bench/README.md.
//
// usage: node bench/view.mjs TRAIL TRACE (after `npm ci` in web)
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [trail, trace] = process.argv.slice(2);
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);

function quantile(values, q) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
function serve(file) {
    const server = spawn(trail, ["view", "--no-open", file], { stdio: ["ignore", "pipe", "inherit"] });
    return new Promise((resolve) =>
        server.stdout.once("data", (data) => resolve({ server, url: String(data).trim() })),
    );
}

/* A browser that has run for a while has drawn on canvases before. */
const other = await serve(new URL("../examples/traces/load-go1.23.trace", import.meta.url).pathname);
await page.goto(other.url);
await page.waitForTimeout(2000);
await page.goto("about:blank");
other.server.kill();

const began = performance.now();
const { server, url } = await serve(trace);
const listening = performance.now() - began;

const navigated = performance.now();
await page.goto(url);
await page.waitForFunction(() => {
    const canvas = document.querySelector("canvas.rows");
    if (!canvas?.width) return false;
    const { data } = canvas.getContext("2d").getImageData(260, 0, 600, 100);
    for (let i = 0; i < data.length; i += 4)
        if (data[i + 1] - data[i] > 60 || data[i] - data[i + 2] > 120) return true;
    return false;
}, null, { polling: 20 });
const picture = performance.now() - navigated;
let status;
do {
    await page.waitForTimeout(50);
    status = await page.evaluate(async () => (await fetch("api/status")).json());
} while (!status.done);
const indexed = performance.now() - began;
const memory = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1] / 1024;

/* What the browser gives a page that only fills three canvases, as large as the timeline's, in each frame. */
async function bareIntervals(count) {
    const bare = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
    await bare.setContent(
        [36, 100, 800].map((height) => `<canvas width="1920" height="${height}"></canvas>`).join(""),
    );
    const intervals = await bare.evaluate(async (many) => {
        const all = [...document.querySelectorAll("canvas")];
        const pens = all.map((canvas) => canvas.getContext("2d", { alpha: false }));
        const found = [];
        let last = performance.now();
        for (let i = 0; i < many; i++) {
            await new Promise(requestAnimationFrame);
            const now = performance.now();
            found.push(now - last);
            last = now;
            for (const pen of pens) {
                pen.fillStyle = i % 2 ? "#fff" : "#eee";
                pen.fillRect(0, 0, pen.canvas.width, pen.canvas.height);
            }
        }
        return found;
    }, count);
    await bare.close();
    return intervals;
}

/*
 * Frames while `step` runs once in each; main-thread work is what the page notes of itself. The steps are written here as
 * text, because they run in the page.
 */
async function frames(count, step) {
    return page.evaluate(
        async ([many, body]) => {
            const intervals = [];
            const send = (type, key) => dispatchEvent(new KeyboardEvent(type, { key }));
            const act = new Function("i", "send", body);
            trailFrameTimes.length = 0;
            let last = performance.now();
            for (let i = 0; i < many; i++) {
                act(i, send);
                await new Promise(requestAnimationFrame);
                const now = performance.now();
                intervals.push(now - last);
                last = now;
            }
            for (const key of "adws") send("keyup", key);
            return { intervals, work: [...trailFrameTimes] };
        },
        [count, step],
    );
}

/* Two keys that are held in turn, 20 frames each. */
function held(keys) {
    return `if (i % 20 === 0) {
        send("keyup", "${keys}"[(i / 20 + 1) % 2]);
        send("keydown", "${keys}"[(i / 20) % 2]);
    }`;
}

/* Scrolls the lanes down, and back again, by 40 pixels a frame. */
const scrolls = `const deltaY = i % 200 < 100 ? 40 : -40;
    const canvas = document.querySelector("canvas.rows");
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, bubbles: true, cancelable: true }));`;

await page.getByLabel("group by").selectOption("none");
await page.keyboard.press("Escape");
await page.waitForTimeout(1500);
const moved = {};
for (const [name, step] of [
    ["panning", held("ad")],
    ["zooming", held("ws")],
    ["scrolling lanes", scrolls],
])
    moved[name] = await frames(400, step);

const bare = await bareIntervals(400);

/* Pictures as the page asks for them: 50 lanes, the width of a screen. */
const requests = await page.evaluate(async (end) => {
    const lanes = Array.from({ length: 50 }, (_, i) => i).join();
    const times = [];
    for (let i = 0; i < 300; i++) {
        const length = Math.ceil(end / 2 ** (i % 12));
        const from = Math.floor(((end - length) * ((i * 37) % 100)) / 100);
        const asked = performance.now();
        const answer = await fetch(`api/picture?kind=goroutine&lanes=${lanes}&from=${from}&to=${from + length}&width=1900`);
        await answer.arrayBuffer();
        times.push(performance.now() - asked);
    }
    return times;
}, status.end);

const ms = (value) => `${value.toFixed(1)} ms`;
console.log(`events ${status.events}, goroutines ${status.goroutines}, spans ${status.spans}`);
console.log(`command to listening ${ms(listening)}; navigation to first picture ${ms(picture)}`);
console.log(`command to fully indexed ${ms(indexed)}; resident memory at most ${memory.toFixed(0)} MiB`);
const spread = (values) =>
    [0.5, 0.95, 0.99, 1].map((q) => ms(quantile(values, q))).join(", ");
for (const [name, { work, intervals }] of Object.entries(moved)) {
    console.log(`${name}, a frame's work: median, p95, p99, worst ${spread(work)}`);
    console.log(`${name}, between frames: median, p95, p99, worst ${spread(intervals)}`);
}
console.log(`a bare page, between frames: median, p95, p99, worst ${spread(bare)}`);
console.log(`a picture request: median ${ms(quantile(requests, 0.5))}, p99 ${ms(quantile(requests, 0.99))}`);
server.kill();
await browser.close();
process.exit(0);
