// How soon a generation that has arrived on a pipe is drawn: see bench/README.md.
//
// usage: node bench/live.mjs TRAIL TRACE (after `npm ci` in web); TRACE of format 1.26, with several generations:
// trail-generate --rate=2K --events=12K
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [trail, trace] = process.argv.slice(2);
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);

/* Where generations end: behind EndOfGeneration (52) comes a batch (1) of the next, of no thread (-1). */
const data = readFileSync(trace);
const ends = [];
for (let number = 2; number < 127; number++) {
    const begin = Buffer.concat([Buffer.from([0x34, 0x01, number]), Buffer.alloc(9, 0xff)]);
    const at = data.indexOf(begin);
    if (at > 0) ends.push(at + 1);
}
ends.push(data.length);

const server = spawn(trail, ["view", "--no-open", "-"], { stdio: ["pipe", "pipe", "inherit"] });
server.stdin.write(data.subarray(0, ends[0]));
const url = await new Promise((resolve) =>
    server.stdout.once("data", (line) => resolve(String(line).trim())),
);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
await page.goto(url);
await page.waitForTimeout(3000);

/* From the last byte of a generation to the frame with the picture that reaches into it. */
const times = [];
for (let i = 1; i < ends.length; i++) {
    await page.waitForTimeout(500 + 37 * i);
    const { end } = await page.evaluate(async () => (await fetch("api/status")).json());
    const written = performance.now();
    server.stdin.write(data.subarray(ends[i - 1], ends[i]));
    const answer = await page.waitForResponse((response) => {
        const asked = new URL(response.url());
        return asked.pathname === "/api/picture" && Number(asked.searchParams.get("to")) > end;
    });
    await answer.finished();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    times.push(performance.now() - written);
}
times.sort((a, b) => a - b);
const ms = (time) => `${time.toFixed(0)} ms`;
console.log(`${times.length} generations`);
console.log(
    `drawn after: median ${ms(times[Math.floor(times.length / 2)])}, most ${ms(times.at(-1))}`,
);
server.kill();
await browser.close();
