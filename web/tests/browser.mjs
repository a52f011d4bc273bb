// Shared by the tests of the page: a server for a trace, a browser, and a list of tests with TAP output.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const [trail, scheduler, given] = process.argv.slice(2, 5);

/* Required, not imported: Node would look through all of it for names to export, which takes longer than to run it. */
const require = createRequire(import.meta.url);
/* Undefined before `npm ci` in web. */
const playwright = (() => {
    try {
        return require("playwright-core");
    } catch {
        return undefined;
    }
})();

/* The browsers of the system. Firefox as it is, by WebDriver BiDi, not the one that playwright patches. */
const browsers = {
    chromium: {
        type: playwright?.chromium,
        paths: [
            process.env.TRAIL_CHROMIUM,
            "/usr/bin/chromium-headless-shell", // starts less
            "/usr/bin/chromium",
            "/usr/bin/chromium-browser",
        ],
        options: { args: ["--no-sandbox"] },
    },
    firefox: {
        type: playwright?.firefox,
        paths: [process.env.TRAIL_FIREFOX, "/usr/bin/firefox-esr"],
        options: {
            channel: "moz-firefox",
            /* Firefox adds noise to what canvases return, another for each site and session. */
            firefoxUserPrefs: {
                "privacy.fingerprintingProtection": false,
                "privacy.fingerprintingProtection.pbmode": false,
                "privacy.baselineFingerprintingProtection": false,
            },
        },
    },
};
export const browserName = process.env.TRAIL_BROWSER ?? "chromium";
const { type, paths, options: launchOptions } = browsers[browserName];
const executablePath = type && paths.find((path) => path && existsSync(path));

/* Ends the process, with its tests counted as skipped, if there is no browser. */
export function needBrowser() {
    if (executablePath) return;
    console.log(`1..0 # SKIP no ${browserName}, or nothing of npm: npm ci in web`);
    process.exit(0);
}

/* The value of a token of src/tokens.css; of a colour its parts. */
const sheet = readFileSync(new URL("../src/tokens.css", import.meta.url), "utf8");
export function measure(name) {
    return Number.parseFloat(new RegExp(`--${name}: *([^;]+);`).exec(sheet)[1]);
}
export function color(name, theme = "light") {
    const from = theme === "dark" ? sheet.indexOf("[data-theme") : 0;
    const [, hex] = new RegExp(`--${name}: *#([0-9a-f]{6})`).exec(sheet.slice(from));
    return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}
/* The width of the column of names. */
export const LABELS = measure("lane-names");

/* Panels by their group. What is in none is data. */
const groups = {
    Selection: ["Span", "Range"],
    Findings: ["Summary"],
    Waiting: ["Locks", "Latency"],
    Requests: ["Tasks and regions", "Critical path"],
    CPU: ["Functions", "Stacks", "P heat map", "MMU", "GC", "Threads, Ps"],
};

/* Opens a panel, by its group and then its own tab. */
export async function openTab(page, name) {
    const [group = "Data"] = Object.entries(groups).find(([, names]) => names.includes(name)) ?? [];
    const isOpen = async (tab) => (await tab.getAttribute("aria-selected")) === "true";
    const outer = page.getByRole("tab", { name: group, exact: true });
    if (!(await isOpen(outer))) await outer.click();
    if (name === "Summary") return;
    const tab = page.getByRole("tab", { name, exact: true });
    /* Without a range, the span is the only panel of its group. */
    if (name === "Span" && (await tab.count()) === 0) return;
    if (!(await isOpen(tab))) await tab.click();
}

/* Returns a new folder, which is removed at the end of the process. */
export function temporaryFolder() {
    const folder = mkdtempSync(join(tmpdir(), "trail-web-"));
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
    return folder;
}

/* Returns the parsed output of `trail NAME --json ...`. */
export function runJson(...words) {
    return JSON.parse(
        execFileSync(trail, [words[0], "--json", ...words.slice(1)], { maxBuffer: 1 << 28 }),
    );
}

/* The rows of a table of `trail export --to=csv`, by the names of their columns. */
export function tableOf(path, table) {
    const text = execFileSync(trail, ["export", "--to=csv", `--table=${table}`, path], {
        encoding: "utf8",
        maxBuffer: 1 << 28,
    });
    const lines = [[]];
    for (const [, cell, end] of text.matchAll(/("(?:[^"]|"")*"|[^,\n]*)(,|\n)/g)) {
        lines.at(-1).push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
        if (end === "\n") lines.push([]);
    }
    const [titles, ...rows] = lines.slice(0, -1);
    return rows.map((row) => Object.fromEntries(titles.map((title, i) => [title, row[i]])));
}

/* A text of the command as the page shows it. */
export function withSign(text) {
    return text.replaceAll(/(\d) us\b/g, "$1 µs");
}

export function serve(words, input) {
    const server = spawn(trail, ["view", "--no-open", ...words], {
        stdio: [input ? "pipe" : "ignore", "pipe", "pipe"],
    });
    return new Promise((resolve, reject) => {
        let text = "";
        server.stdout.on("data", (data) => {
            text += data;
            if (text.includes("\n")) resolve({ server, url: text.trim() });
        });
        server.on("exit", (code) => reject(new Error(`trail view ended: ${code}`)));
    });
}

const SIZE = { width: 1280, height: 800 };
let browser;
/* Pages that can be used again: a new one is a new process, whose start takes CPU time. */
const unused = [];

/* WebDriver BiDi has no dark colours: here the query by which the page asks for them matches. */
function beDark() {
    const ask = globalThis.matchMedia.bind(globalThis);
    globalThis.matchMedia = (query) => ask(query.includes("dark") ? "all" : query);
}

/* Returns an empty page of a context with these options. */
async function newPage(options) {
    browser ??= await type.launch({ executablePath, timeout: PATIENCE, ...launchOptions });
    const context = await browser.newContext({
        viewport: SIZE,
        acceptDownloads: true,
        ...options,
    });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const { viewport, colorScheme, reducedMotion, ...others } = options;
    if (browserName !== "chromium" && colorScheme === "dark") await page.addInitScript(beDark);
    page.kind = JSON.stringify(others);
    page.on("pageerror", (error) => page.errors.push(String(error.stack)));
    page.on("console", (line) => {
        if (line.type() === "error") page.errors.push(line.text());
    });
    page.on("request", (request) => page.addresses.add(new URL(request.url()).origin));
    return page;
}

/* An unused page of a context that differs at most in what can be changed afterwards, with that changed, or none. */
async function usedPage({ viewport, colorScheme, reducedMotion, ...others }) {
    const at = unused.findIndex((page) => page.kind === JSON.stringify(others));
    if (at < 0) return null;
    const [page] = unused.splice(at, 1);
    await page.setViewportSize(viewport ?? SIZE);
    await page.emulateMedia({
        colorScheme: colorScheme ?? "light",
        reducedMotion: reducedMotion ?? "no-preference",
    });
    return page;
}

/* `sign`: a selector that appears when the page has started; `first`: a function that runs before the page's code. */
export async function openPage(url, options = {}, sign = ".facts", first = undefined) {
    const page = (await usedPage(options)) ?? (await newPage(options));
    page.errors = [];
    page.addresses = new Set();
    if (first) page.first = await page.addInitScript(first);
    await page.goto(url);
    await page.waitForSelector(sign);
    return page;
}

/* Ends the use of a page, whose server still runs: it can then be opened as if it were new. */
export async function leavePage(page) {
    try {
        if (browserName !== "chromium") throw new Error("its history cannot be emptied");
        await page.unrouteAll({ behavior: "ignoreErrors" });
        await page.first?.dispose();
        page.first = undefined;
        await page.mouse.move(-1, -1);
        await page.context().clearCookies();
        /* A document without code, which has the same storage. */
        await page.goto(new URL("app.css", page.url()).href);
        await page.evaluate(() => {
            localStorage.clear();
            sessionStorage.clear();
        });
        page.session ??= await page.context().newCDPSession(page);
        await page.session.send("Page.resetNavigationHistory");
        unused.push(page);
    } catch {
        await page.context().close();
    }
}

/* The bytes of the file that the page saves while `act` runs. WebDriver BiDi reports no downloads of Firefox. */
export async function saved(page, act) {
    if (browserName === "chromium") {
        const [download] = await Promise.all([page.waitForEvent("download"), act()]);
        return readFileSync(await download.path());
    }
    await page.evaluate(() => {
        const made = new Map();
        const make = URL.createObjectURL;
        URL.createObjectURL = (data) => {
            const address = make(data);
            made.set(address, data);
            return address;
        };
        HTMLAnchorElement.prototype.click = function () {
            if (this.download) globalThis.savedFile = made.get(this.href).text();
        };
    });
    await act();
    return Buffer.from(
        await until("a file is saved", () => page.evaluate(() => globalThis.savedFile)),
    );
}

/* All inputs of a kind, as before a release, instead of a part. */
export const ALL = Boolean(process.env.TRAIL_TEST_ALL);

/* The violations that axe reports. In the dark, only colours differ. Of what passes, axe keeps one node a rule. */
export async function complaints(page, colorScheme = "light") {
    if (!(await page.evaluate(() => "axe" in globalThis)))
        await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await page.evaluate((options) => globalThis.axe.run(document, options), {
        resultTypes: ["violations"],
        ...(colorScheme === "dark" && !ALL ? { runOnly: ["color-contrast"] } : {}),
    });
    return violations.map((of) => `${of.id}: ${of.nodes[0].html} ${of.nodes[0].failureSummary}`);
}

export const tests = [];
export function test(name, run) {
    tests.push([name, run]);
}

export function equal(got, wanted, what) {
    const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
    if (a !== b) throw new Error(`${what}: ${a?.slice(0, 300)}, not ${b?.slice(0, 300)}`);
}

export function ok(value, what) {
    if (!value) throw new Error(what);
}

/* Time limit in ms for conditions that never become true; generous, because the machine may be slow. */
export const PATIENCE = Number(process.env.TRAIL_PATIENCE ?? 120000);

/* Waits until `ask` returns a truthy value, and returns it. */
export async function until(what, ask) {
    const end = Date.now() + PATIENCE;
    let last;
    while (Date.now() < end) {
        last = await ask();
        if (last) return last;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`it never was so: ${what}`);
}

/*
 * Waits until the page and its frames have no pending requests, scheduled frames or changes of the address. What has
 * just been done to the page may start such work one animation frame later.
 */
export async function idle(page) {
    await until("nothing is under way", () =>
        page.evaluate(async () => {
            const frames = [...document.querySelectorAll("iframe")];
            const roots = [document, ...frames.map((of) => of.contentDocument)].map(
                (of) => of?.documentElement,
            );
            for (let i = 0; i < 3; i++) {
                /* Work deferred until after an animation frame begins right after it. */
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                if (!roots.every((of) => of?.matches(":not([data-moving], [data-busy])")))
                    return false;
            }
            return true;
        }),
    );
}

export async function main() {
    const wanted = process.env.TRAIL_TEST_FILTER;
    const chosen = tests.filter(([name]) => !wanted || name.includes(wanted));
    console.log(`1..${chosen.length}`);
    let failed = 0;
    let number = 0;
    for (const [name, run] of chosen) {
        number++;
        const begin = Date.now();
        try {
            const skipped = await run();
            console.log(`ok ${number} - ${name}${skipped ? ` # SKIP ${skipped}` : ""}`);
        } catch (error) {
            failed++;
            console.log(`not ok ${number} - ${name}`);
            for (const line of String(error.stack).slice(0, 1500).split("\n"))
                console.log(`# ${line}`);
        }
        const seconds = (Date.now() - begin) / 1000;
        if (seconds >= 1) console.log(`# ${seconds.toFixed(1)} s`);
    }
    /* Closing may take long if the server of a page has ended. */
    await Promise.race([browser?.close(), new Promise((resolve) => setTimeout(resolve, 3000))]);
    process.exit(failed ? 1 : 0);
}
