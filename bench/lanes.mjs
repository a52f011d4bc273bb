// The longest tasks of the page's main thread while a great many lanes are loaded, sorted, filtered, grouped and
// unfolded: see bench/README.md.
//
// usage: node bench/lanes.mjs TRAIL TRACE (after `npm ci` in web)
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [trail, trace] = process.argv.slice(2);
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);

const server = spawn(trail, ["view", "--no-open", trace], { stdio: ["ignore", "pipe", "inherit"] });
const url = await new Promise((resolve) =>
    server.stdout.once("data", (data) => resolve(new URL(String(data).trim()))),
);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
page.setDefaultTimeout(120000);
page.on("pageerror", (error) => console.log(String(error.stack)));

/* The trace is read before it is measured how its lanes are loaded. */
const key = { headers: { Authorization: `Bearer ${url.searchParams.get("token")}` } };
let status;
do {
    await new Promise((resolve) => setTimeout(resolve, 100));
    status = await (await fetch(new URL("/api/status", url), key)).json();
} while (!status.done);

/*
 * The tasks of the page's main thread, as Chromium traces them: the longest by the clock, and by the processor time that it
 * took, which other work on the machine does not lengthen.
 */
function tasksOf(trace) {
    const { traceEvents } = JSON.parse(String(trace));
    const isMain = new Set();
    for (const { name, args, pid, tid } of traceEvents)
        if (name === "thread_name" && args.name === "CrRendererMain") isMain.add(`${pid} ${tid}`);
    const tasks = traceEvents.filter(
        ({ name, pid, tid }) => name === "RunTask" && isMain.has(`${pid} ${tid}`),
    );
    const longest = (of) => Math.max(0, ...tasks.map((task) => (of(task) ?? 0) / 1000));
    const [clock, cpu] = [longest(({ dur }) => dur), longest(({ tdur }) => tdur)];
    return { clock, cpu, long: tasks.filter(({ tdur }) => tdur > 50000).length };
}

async function idle() {
    let quiet = 0;
    while (quiet < 3) {
        const busy = await page.evaluate(
            () =>
                new Promise((done) =>
                    requestAnimationFrame(() =>
                        setTimeout(() =>
                            done(document.documentElement.matches("[data-moving], [data-busy]")),
                        ),
                    ),
                ),
        );
        quiet = busy ? 0 : quiet + 1;
        if (busy) await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

async function measured(name, act) {
    const categories = ["toplevel", "disabled-by-default-devtools.timeline", "__metadata"];
    await browser.startTracing(page, { categories });
    const began = performance.now();
    await act();
    await idle();
    const took = performance.now() - began;
    const { clock, cpu, long } = tasksOf(await browser.stopTracing());
    const figures = [`${cpu.toFixed(0)} ms`, `${clock.toFixed(0)} ms`, long, `${took.toFixed(0)} ms`];
    console.log(`| ${name} | ${figures.join(" | ")} |`);
}

const choose = (label, value) => page.getByLabel(label).selectOption(value);
console.log(`${status.goroutines} goroutines\n`);
console.log("| | longest task, processor time | by the clock | tasks longer than 50 ms | all done after |");
console.log("|---|---:|---:|---:|---:|");
await measured("load", () => page.goto(url.href).then(() => page.waitForSelector(".facts")));
for (const name of ["none", "creator", "task", "name"])
    await measured(`group by ${name}`, () => choose("group by", name));
await choose("group by", "none");
await idle();
const orders = ["id", "name", "begin", "first-wait", "total", "running", "runnable", "waiting", "mostly"];
for (const name of [...orders, "syscall", "appearance"])
    await measured(`sort by ${name}`, () => choose("sort by", name));
for (const text of ["main", "1", "-main", ""])
    await measured(`filter "${text}"`, () => page.getByLabel("Filter lanes").fill(text));
await page.locator("canvas.rows").click({ position: { x: 600, y: 10 } });
await idle();
await measured("unfold", () => page.keyboard.press("Enter"));
await measured("lane below", () => page.keyboard.press("ArrowDown"));
await measured("pin", () => page.keyboard.press("p"));
await measured("by P", () => page.keyboard.press("2"));
await measured("by goroutine", () => page.keyboard.press("1"));
await choose("group by", "name");
await idle();
await measured("fold a group", () => page.locator("canvas.rows").click({ position: { x: 60, y: 34 } }));
server.kill();
await browser.close();
process.exit(0);
