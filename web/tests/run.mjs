// Drives a browser through the page and compares what it shows with the output of the command.
// Arguments: the trail command, the example scheduler, a trace (default: one of the scheduler). Skipped without
// Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
    color,
    complaints,
    equal,
    given,
    idle,
    LABELS,
    leavePage,
    main,
    measure,
    needBrowser,
    ok,
    openPage,
    openTab as openPanel,
    runJson,
    saved,
    scheduler,
    serve,
    temporaryFolder,
    test,
    trail,
    until,
    withSign,
} from "./browser.mjs";

needBrowser();
const folder = temporaryFolder();
const trace = given ?? join(folder, "all.trace");
if (!given) execFileSync(scheduler, ["--work=all", "-o", trace]);
/* The scheduler's trace has words of its own; the tests name things by those of Go. */
const words = "--words=go";
const main_ = await serve([words, trace]);
process.on("exit", () => {
    main_.server.kill();
});

const base = main_.url.replace(/\?.*/, "");
const token = main_.url.replace(/.*=/, "");
async function ask(path) {
    const response = await fetch(`${base}api/${path}`, {
        headers: { authorization: `Bearer ${token}` },
    });
    return response.json();
}

await until("it has been read", async () => (await ask("status")).done);
const status = await ask("status");
let page;

/* A test of what does not differ between traces, or that takes too long for two: with one only. */
function testOnce(name, run) {
    if (given) test(name, run);
}

async function fragment(name, of = page) {
    await idle(of);
    return of.evaluate((key) => new URLSearchParams(location.hash.slice(1)).get(key), name);
}
async function windowOf(page) {
    return (await fragment("w", page)).split("-").map(Number);
}
function windowNow() {
    return windowOf(page);
}

/* The number of pixels in the lanes whose colour is close to this one. */
function pixels(rgb) {
    return page.evaluate((wanted) => {
        const canvas = document.querySelector("canvas.rows");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let found = 0;
        for (let i = 0; i < data.length; i += 4)
            if (wanted.every((value, k) => Math.abs(data[i + k] - value) < 6)) found++;
        return found;
    }, rgb);
}

/* The rows of the visible table, as the values of its cells, which are exact. */
function cells() {
    return page.evaluate(() =>
        [...document.querySelectorAll(".table tbody tr")].map((row) =>
            [...row.cells].map((cell) => cell.dataset.value ?? cell.title),
        ),
    );
}

/* Waits for the focus: keys typed earlier would act as shortcuts. */
async function openPalette() {
    await page.keyboard.press("/");
    await page.locator(".palette input:focus").waitFor();
}

function openTab(name) {
    return openPanel(page, name);
}

async function reopen(url, options, sign) {
    if (page) await leavePage(page);
    page = await openPage(url, options, sign);
}

/* Shows the whole trace, without the figures above the timeline, unless the fragment says otherwise. */
async function fresh(more = `#w=0-${status.end}&top=0&c=1&all=ir`) {
    await reopen(main_.url + more);
    await until("pictures", async () => (await pixels(color("s-running"))) > 0);
    /* The part above the lanes grows when its data arrives. */
    await idle(page);
}

/* Clicks into the lanes until something is selected. */
async function clickLanes(dx, dy) {
    return until("selected", async () => {
        const rows = await page.locator("canvas.rows").boundingBox();
        await page.mouse.click(rows.x + dx, rows.y + dy);
        return fragment("sel");
    });
}

test("the first picture has running and waiting goroutines, and the facts of the trace", async () => {
    await fresh("");
    ok((await pixels(color("s-ready"))) > 0, "runnable is drawn");
    const facts = await page.textContent(".facts");
    ok(facts.includes(`${status.events.toLocaleString("en-US")} events`), facts);
    const info = runJson("summary", trace);
    equal(status.events, info.events, "events");
    equal(status.end, info.end_ns - info.origin_ns, "length");
});

const IN_HEAD = ["length_ns", "goroutines"];
/* The worst case that the page begins at, in ns since the first event. */
function worstOf(summary) {
    const [worst] = summary.findings;
    if (worst?.begin_ns === undefined) return { isShown: false };
    const [from, to] = [worst.begin_ns - summary.origin_ns, worst.end_ns - summary.origin_ns];
    return { from, to, isShown: to - from <= status.end / 2 };
}

test("the first screen has the tiles and findings of the summary, and begins at the worst case", async () => {
    const summary = runJson("summary", words, trace);
    await page.locator(".tile").first().waitFor();
    const shownTiles = await page
        .locator(".tile")
        .evaluateAll((all) =>
            all.map((tile) => [tile.dataset.key, tile.querySelector("b").textContent, tile.title]),
        );
    const tiles = summary.tiles
        .filter(({ key }) => !IN_HEAD.includes(key))
        .map(({ key, text, note }) => [key, withSign(text), withSign(note)]);
    /* As many as there is room for. */
    const some = tiles.filter(([key]) => shownTiles.some(([shown]) => shown === key));
    equal(shownTiles, some, "tiles");
    equal(shownTiles.length, summary.findings.length === 0 ? 6 : 4, "how many");
    equal(
        await page.locator(".card").evaluateAll((all) => all.map((card) => card.title)),
        summary.findings.slice(0, 3).map(({ text }) => withSign(text)),
        "findings",
    );
    const shown = await page.textContent(".overview");
    ok(!/\d us\b/.test(shown), `one sign for microseconds: ${shown}`);
    const worst = worstOf(summary);
    const [from, to] = await windowNow();
    if (!worst.isShown) equal([from, to], [0, status.end], "the whole trace");
    else
        ok(
            from <= worst.from && to >= worst.to && to - from < 2 * (worst.to - worst.from) + 200,
            `${from} to ${to}, not about ${worst.from} to ${worst.to}`,
        );
});

test("a tile leads to its panel and its moment", async () => {
    const summary = runJson("summary", words, trace);
    const { key, command, begin_ns, end_ns } = summary.tiles.find(
        (tile) => tile.key === (given ? "lock_ns" : "longest_ready_ns"),
    );
    if ((await page.locator(`.tile[data-key=${key}]`).count()) === 0) await openTab("Summary");
    await page.locator(`.tile[data-key=${key}]`).first().click();
    equal([await fragment("tab"), command], given ? ["locks", "locks"] : ["latency", "latency"]);
    const [from, to] = await windowNow();
    ok(from <= begin_ns - summary.origin_ns && to >= end_ns - summary.origin_ns, "its wait");
    const task = summary.tiles.find(({ key }) => key === "slowest_task_ns")?.task;
    if (task !== undefined) {
        await page.locator(".tile[data-key=slowest_task_ns]").first().click();
        equal(
            [await fragment("tab"), await fragment("why")],
            ["requests", `task=${task}`],
            "the task",
        );
    }
    if (summary.findings.length === 0) return;
    await page.getByRole("button", { name: "Close the panel" }).click();
    await page.getByRole("button", { name: "Overview" }).click();
    equal([await page.locator(".card").count(), await fragment("top")], [0, "0"], "folded");
});

test("nothing is asked of another server, and nothing fails", async () => {
    equal(
        [...page.addresses].filter((origin) => origin !== "null"),
        [new URL(base).origin],
        "origins",
    );
    equal(page.errors, [], "errors");
});

testOnce("a key pressed as soon as the page is there can be undone", async () => {
    const slowClock = () => {
        const real = performance.now.bind(performance);
        performance.now = () => real() / 10000;
    };
    const early = await openPage(main_.url, {}, ".facts", slowClock);
    const before = await windowOf(early);
    await early.keyboard.press("w");
    const [from, to] = await windowOf(early);
    ok(to - from < (before[1] - before[0]) * 0.8, "zoomed in");
    await early.keyboard.press("Backspace");
    equal(await windowOf(early), before, "undone");
    await early.context().close();
});

testOnce("keys zoom and pan; undo and redo go back and forward", async () => {
    await fresh();
    const [from, to] = await windowNow();
    await page.keyboard.press("w");
    const [from1, to1] = await windowNow();
    ok(to1 - from1 < (to - from) * 0.8, "zoomed in");
    /* Moves within 700 ms of performance.now() are one step of the history. */
    const pressed = await page.evaluate(() => performance.now());
    await until("a gesture of its own", () =>
        page.evaluate((since) => performance.now() - since > 700, pressed),
    );
    await page.keyboard.press("d");
    const [from2] = await windowNow();
    ok(from2 > from1, "to the right");
    await page.keyboard.press("Backspace");
    equal(await windowNow(), [from1, to1], "undone");
    await page.keyboard.press("Backspace");
    equal(await windowNow(), [from, to], "undone twice");
    await page.keyboard.press("r");
    equal(await windowNow(), [from1, to1], "done again");
    await page.keyboard.press("0");
    equal(await windowNow(), [0, status.end], "the whole trace");
});

testOnce(
    "the wheel zooms about the pointer, a drag pans, the small map moves the window",
    async () => {
        await page.mouse.move((LABELS + 1280) / 2, 400);
        await page.keyboard.down("Control");
        await page.mouse.wheel(0, -600);
        await page.keyboard.up("Control");
        const [from, to] = await windowNow();
        ok(Math.abs((from + to) / 2 - status.end / 2) < status.end * 0.01, "the middle stays");
        await page.mouse.move(700, 400);
        await page.mouse.down();
        await page.mouse.move(650, 400);
        await page.mouse.move(600, 400);
        await page.mouse.up();
        const [from1, to1] = await windowNow();
        ok(from1 > from && Math.abs(to1 - from1 - (to - from)) < 5, "panned by the drag");
        const map = await page.locator("canvas.map").boundingBox();
        await page.mouse.click(map.x + 300, map.y + 10);
        const [from2] = await windowNow();
        ok(from2 < from1, "moved by the map");
        await page.keyboard.press("0");
    },
);

testOnce("lanes by P and by thread, filtered, sorted and grouped", async () => {
    await page.getByRole("button", { name: "Ps", exact: true }).click();
    equal(await fragment("v"), "p", "by P");
    await page.getByRole("button", { name: "Threads", exact: true }).click();
    equal(await fragment("v"), "t", "by thread");
    await page.getByRole("button", { name: "Goroutines", exact: true }).click();
    await page.getByLabel("Filter lanes").fill("no lane has this name");
    await until("no lanes", async () => (await pixels(color("s-running"))) === 0);
    await page.getByLabel("Filter lanes").fill("");
    await page.getByLabel("sort by").selectOption("running");
    await page.getByLabel("group by").selectOption("none");
    await page.keyboard.press("Escape");
    await until("pictures", async () => (await pixels(color("s-running"))) > 0);
    equal([await fragment("s"), await fragment("g")], ["running", "none"], "sort and group");
});

/* The numbers of the lanes in the first rows of the timeline. */
async function firstLanes(many) {
    const found = [];
    for (let i = 0; i < many; i++) {
        if (await fragment("sel")) await page.keyboard.press("Escape");
        const place = await clickLanes(100, 10 + measure("lane-height") * i);
        found.push(Number(/^g(\d+)\./.exec(place)[1]));
    }
    return found;
}

testOnce(
    "lanes are sorted by their first wait, and by what the table of goroutines counts",
    async () => {
        const { rows: lanes } = await ask("lanes?kind=goroutine&count=50000");
        const { goroutines, origin_ns } = runJson("goroutines", trace);
        const of = (row) =>
            goroutines.find((one) => one.id === row[1] && one.creation_ns - origin_ns === row[3]);
        const sums = {};
        for (const one of goroutines)
            for (const [name, ns] of Object.entries(one.block_ns))
                sums[name] = (sums[name] ?? 0) + ns;
        const [reason] = Object.entries(sums).sort((a, b) => b[1] - a[1])[0];
        const never = 2 ** 60;
        const figures = {
            "first-wait": (row) => (row[13] < 0 ? never : row[13]),
            total: (row) => -of(row).total_ns,
            running: (row) => -of(row).exec_ns,
            runnable: (row) => -of(row).sched_wait_ns,
            waiting: (row) => -Object.values(of(row).block_ns).reduce((a, b) => a + b, 0),
            [`waiting/${reason}`]: (row) => -(of(row).block_ns[reason] ?? 0),
            /* Last, when the answer with the reasons has arrived. */
            mostly: (row) => {
                const [most] = Object.entries(of(row).block_ns).sort((a, b) => b[1] - a[1]);
                return most?.[1] > 0 ? most[0] || "(no reason given)" : "\uffff";
            },
        };
        await fresh(`#w=0-${status.end}&all=ir&g=none&tab=span`);
        for (const [name, figure] of Object.entries(figures)) {
            const [word, for_] = name.split("/");
            await page.getByLabel("sort by").selectOption(word);
            if (for_ !== undefined) {
                const choice = page.getByLabel(/^for /);
                await choice.locator(`option[value='"${for_}"']`).waitFor({ state: "attached" });
                await choice.selectOption(`"${for_}"`);
            }
            equal(await fragment("s"), name, "in the fragment");
            const wanted = lanes
                .map(figure)
                .sort((a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b));
            const shown = (await firstLanes(4)).map((lane) => figure(lanes[lane]));
            equal(shown, wanted.slice(0, 4), name);
        }
        await page.getByLabel("sort by").selectOption("waiting");
        /* As the address opens in another browser. */
        const first = await firstLanes(1);
        await fresh(
            `#w=0-${status.end}&all=ir&g=none&tab=span&s=${encodeURIComponent(`waiting/${reason}`)}`,
        );
        await page.getByLabel(/^for /).locator("option").nth(2).waitFor({ state: "attached" });
        equal(await firstLanes(1), first, "the same first lane");
    },
);

test("the selected span is shown as the API has it; its neighbours, its waker, its lane", async () => {
    const lanes = await ask("lanes?kind=goroutine&count=50000");
    const busiest = lanes.rows.reduce((a, b) => (b[8] > a[8] ? b : a));
    await fresh(`#w=0-${status.end}&all=ir&g=none&s=running`);
    await clickLanes(100, 10);
    await page.waitForSelector(".details h2");
    ok(
        (await page.textContent(".details h2")).startsWith(`G${busiest[1]}`),
        "the lane that ran longest is first",
    );
    const before = await fragment("sel");
    await page.locator(".details").getByRole("button", { name: "After" }).click();
    const place = await until("the next span", async () => {
        const now = await fragment("sel");
        return now !== before && /^g(\d+)\.(\d+)$/.exec(now ?? "");
    });
    const span = await ask(`span?kind=goroutine&lane=${place[1]}&span=${place[2]}`);
    const text = await page.textContent(".details");
    ok(
        text.includes({ syscall: "syscall", runnable: "ready" }[span.state] ?? span.state),
        `${span.state} is told`,
    );
    for (const frame of span.stack.slice(0, 3))
        ok(text.includes(frame.function.split("/").pop()), `${frame.function} is told`);
});

test("the words are those of what made the trace", async () => {
    const own = await serve([trace]);
    try {
        const other = await openPage(own.url);
        const title = given ? "Goroutines" : "Coroutines";
        await openPanel(other, title);
        await other.context().close();
    } finally {
        own.server.kill();
    }
});

test("from a wait to who ended it, and the way of the wake-ups across lanes", async () => {
    const lanes = await ask("lanes?kind=goroutine&count=50000");
    let found;
    for (const row of lanes.rows) {
        for (let span = 1; span < Math.min(row[6], 40) && !found; span++) {
            const one = await ask(`span?kind=goroutine&lane=${row[0]}&span=${span}`);
            if (one.waker && one.waker.lane !== row[0]) found = one;
        }
        if (found) break;
    }
    ok(found, "somebody was woken");
    await fresh(`#w=0-${status.end}&sel=g${found.lane}.${found.span}&tab=span`);
    await page.waitForSelector(".details h2");
    ok((await page.textContent(".details")).includes(`G${found.waker.id}`), "the waker is named");
    await page.keyboard.press("b");
    await until("a chain", async () =>
        (await page.textContent(".details")).includes("Wake-up chain"),
    );
    await page.keyboard.press("j");
    await until("the waker is selected", async () =>
        (await fragment("sel"))?.startsWith(`g${found.waker.lane}.`),
    );
    ok((await page.textContent("[aria-live]")).length > 0, "a screen reader hears it");
});

/* Serves a hand-written trace from tests/data. */
async function byHand(name) {
    const file = join(folder, `${name}.trace`);
    const text = new URL(`../../tests/data/${name}.txt`, import.meta.url).pathname;
    execFileSync(trail, ["assemble", text, "-o", file]);
    return serve([file]);
}

testOnce(
    "the head of a log or CPU sample has its stack, for the eye and for a screen reader",
    async () => {
        const other = await byHand("everything-1.26");
        try {
            /* A tick is 64 ns: the log is at tick 49, the sample at 55. G 1 is the first lane. */
            await reopen(`${other.url}#w=2624-4032&g=none&tab=span`);
            const labels = LABELS;
            /* Measured each time: the layout of the page may still change. */
            const clickAt = async (ns) => {
                const rows = await page.locator("canvas.rows").boundingBox();
                const share = (ns - 2624) / (4032 - 2624);
                await page.mouse.click(rows.x + labels + share * (rows.width - labels), rows.y + 4);
            };
            for (const [ns, kind, title] of [
                [55 * 64, "s0", "CPU sample of G1"],
                [49 * 64, "l0", "Log of G1"],
            ]) {
                await until(`a click on ${title}`, async () => {
                    await clickAt(ns);
                    return (await fragment("mark")) === kind;
                });
                await page.waitForSelector(".details h2");
                const text = await page.textContent(".details");
                ok(text.startsWith(title), text);
                for (const frame of ["main.serve", "app/main.go:42", "main.main", "app/main.go:7"])
                    ok(text.includes(frame), `${frame} in ${text}`);
                const spoken = await page.textContent("[aria-live]");
                ok(/in main.serve, called by main.main$/.test(spoken), spoken);
            }
            await page.keyboard.press("Escape");
            equal(await fragment("mark"), null, "closed");
            /* With the keyboard only: the lane, its first log, and the span that contains it. */
            await page.keyboard.press("ArrowDown");
            await until("a span", async () => /\.\d/.test(await fragment("sel")));
            await page.keyboard.press("n");
            await until("the log", async () => (await fragment("mark")) === "l0");
            const place = await page.evaluate(() => location.hash);
            await reopen(other.url + place);
            await until("somebody else sees it", async () =>
                (await page.textContent(".details")).startsWith("Log of G1"),
            );
            await page.keyboard.press("ArrowRight");
            await until("its span", async () => /^g0\.\d/.test(await fragment("sel")));
            equal(await fragment("mark"), null, "the span is in its place");
            equal(page.errors, [], "errors");
        } finally {
            other.server.kill();
        }
    },
);

testOnce("a frame shows the source around it, where trail view knows the folder", async () => {
    const root = new URL("../..", import.meta.url).pathname;
    const lines = readFileSync(join(root, "examples/load/main.go"), "utf8").split("\n");
    const { stack } = await ask("mark?kind=log&mark=0");
    const { file, line } = stack[0];
    ok(file.endsWith("examples/load/main.go"), file);
    await fresh("#mark=l0&sel=g0.&tab=span");
    await page.waitForSelector(".stack li");
    equal(await page.locator(".stack [aria-expanded]").count(), 0, "no button without --source");
    const other = await serve([words, `--source=${root}`, trace]);
    try {
        await reopen(`${other.url}#mark=l0&sel=g0.&tab=span`);
        const button = page.getByRole("button", { name: `load/main.go:${line}`, exact: true });
        await button.click();
        const text = await until("the line", () => page.locator(".source mark").textContent());
        equal(text, lines[line - 1], "the line");
        const shown = await page.locator(".source pre > div").allTextContents();
        equal(
            shown.map((of) => of.replace(/^ *\d+ /, "")),
            lines.slice(line - 6, line + 5),
            "what is around it",
        );
        await button.click();
        equal(await page.locator(".source").count(), 0, "closed");
        equal(page.errors, [], "errors");
    } finally {
        other.server.kill();
    }
});

test("a range by a drag over the ruler: its sums are those of the command", async () => {
    await fresh();
    const head = await page.locator("canvas.head").boundingBox();
    await page.mouse.move(head.x + 500, head.y + 10);
    await page.mouse.down();
    await page.mouse.move(head.x + 600, head.y + 10);
    await page.mouse.move(head.x + 800, head.y + 10);
    await page.mouse.up();
    await page.waitForSelector(".stackbar");
    const [from, to] = (await fragment("r")).split("-").map(Number);
    const sums = { running: 0, runnable: 0, syscall: 0 };
    for (const one of runJson("goroutines", `--from=${from}ns`, `--to=${to}ns`, trace).goroutines) {
        /* Go counts a syscall without P that has not ended twice; the lanes do not. */
        const right = { ...one, ...one.corrected };
        sums.running += right.exec_ns;
        sums.runnable += right.sched_wait_ns;
        sums.syscall += right.syscall_ns;
    }
    const shown = await ask(`select?kind=goroutine&from=${from}&to=${to}`);
    const whole = to - from;
    for (const name of Object.keys(sums))
        ok(
            Math.abs(shown.states[name] - sums[name]) <= whole * 1e-3,
            `${name}: ${shown.states[name]}, not ${sums[name]}`,
        );
    const texts = await cells();
    equal(
        texts.slice(0, shown.by_name.length).reduce((sum, row) => sum + Number(row[3]), 0),
        shown.states.running,
        "running in the table",
    );
    await page.keyboard.press("Escape");
});

test("the table of goroutines has the command's figures, and leads to the timeline", async () => {
    await fresh();
    await openTab("Goroutines");
    await until("rows", async () => (await cells()).length > 0);
    const rows = await cells();
    const wanted = runJson("goroutines", trace).goroutines;
    equal(rows.length, Math.min(wanted.length, 200), "rows");
    for (const [id, , total, running, runnable] of rows) {
        const one = wanted.find((of) => String(of.id) === id);
        equal(
            [total, running, runnable].map(Number),
            [one.total_ns, one.exec_ns, one.sched_wait_ns],
            `G${id}`,
        );
    }
    await page.locator(".panel tbody tr").first().click();
    const place = await until("selected", () => fragment("sel"));
    ok(place.startsWith("g"), place);
    const csv = await saved(page, async () => {
        await openTab("Goroutines");
        await page.getByRole("button", { name: "Save as CSV" }).click();
    });
    const lines = String(csv).trim().split("\r\n");
    equal(lines.length, wanted.length + 1, "lines of CSV");
});

test("summary, functions, locks, tasks, regions and the others show what the command says", async () => {
    await openTab("Summary");
    const summary = runJson("summary", trace);
    await until("findings", async () => (await page.textContent(".panel")).includes("events"));
    equal(await page.locator(".panel .findings li").count(), summary.findings.length, "findings");
    await openTab("Functions");
    const groups = runJson("goroutines", "--groups", trace).groups;
    await until("groups", async () => (await cells()).length === groups.length);
    await openTab("Locks");
    const { locks } = runJson("locks", trace);
    await until("locks", async () => (await cells()).length === Math.min(200, locks.length));
    equal(
        (await cells()).reduce((sum, row) => sum + Number(row[3]), 0),
        locks.reduce((sum, lock) => sum + lock.wait_ns, 0),
        "waits for locks",
    );
    for (const [panel, title, command, key] of [
        ["GC", "collections", "gc", "cycles"],
        ["Threads, Ps", "threads", "threads", "threads"],
        ["Threads, Ps", "Ps", "procs", "procs"],
    ]) {
        await openTab(panel);
        await page.getByLabel("Table of").selectOption(title);
        const { length } = runJson(command, trace)[key];
        ok(length > 0, `the trace has ${title}`);
        await until(title, async () => (await cells()).length === Math.min(200, length));
    }
});

test("latency: a bar of the histogram leads to its spans", async () => {
    await openTab("Latency");
    await page.locator(".histogram button:not(:disabled)").last().waitFor();
    const first = page.locator(".panel section", { hasText: "scheduling" });
    const bars = first.locator(".histogram button:not(:disabled)");
    /* Several bars with few spans: no bar may miss a span at its edges. */
    for (let i = (await bars.count()) - 1, seen = 0; i >= 0 && seen < 4; i--) {
        const many = Number(
            /: ([\d,]+)$/.exec(await bars.nth(i).getAttribute("title"))[1].replaceAll(",", ""),
        );
        if (many > 50) continue;
        seen++;
        await bars.nth(i).click();
        await until(`${many} spans`, async () => (await cells()).length === many);
    }
    await bars.last().click();
    await until("spans", async () => (await cells()).length > 0);
    const { scheduling } = runJson("latency", trace);
    ok(page.errors.length === 0, page.errors.join());
    const longest = Math.max(...(await cells()).map((row) => Number(row[3])));
    equal(longest, scheduling.times.max_ns, "the longest");
});

test("the flame graph adds up to the profile, follows the selected range, and zooms by click", async () => {
    await openTab("Stacks");
    await page.getByLabel("Stacks of").selectOption("sync");
    const profile = runJson("profile", "--type=sync", trace);
    const title = await until("a graph", () =>
        page.locator(".boxes button").first().getAttribute("title"),
    );
    ok(profile.ns > 0 && title.includes(" 100 % of "), title);
    const boxes = await page.locator(".boxes button").count();
    await page.locator(".boxes button").nth(2).click();
    await until("fewer boxes", async () => (await page.locator(".boxes button").count()) < boxes);
    await page.getByRole("button", { name: "Whole graph" }).click();
    await page.getByLabel("Stacks of").selectOption("cpu");
    await until("samples or why not", async () => /samples/.test(await page.textContent(".flame")));
});

test("stacks as a tree of calls from both ends, and by function, add up to the profile", async () => {
    await fresh();
    await openTab("Stacks");
    await page.getByLabel("Stacks of").selectOption("sync");
    const profile = runJson("profile", "--type=sync", trace);
    const names = profile.samples.map(({ stack }) => stack.map((i) => profile.frames[i].name));
    const sum = (fits) =>
        profile.samples.reduce((ns, sample, i) => ns + (fits(names[i]) ? sample.ns : 0), 0);
    await page.getByLabel("shown as").selectOption("tree");
    const firstRows = async () => {
        const rows = await until("rows", async () => {
            const found = await cells();
            return found.length > 0 && found;
        });
        return rows[0];
    };
    const [ns, , , outer] = await firstRows();
    equal(
        Number(ns),
        sum((of) => of.at(-1) === outer),
        `what ${outer} called`,
    );
    await page.getByRole("button", { name: "Callers below" }).click();
    const [own, , itself, inner] = await firstRows();
    equal(
        Number(own),
        sum((of) => of[0] === inner),
        `in ${inner}`,
    );
    equal(itself, own, "all of it in the function itself");
    equal(Number((await cells())[1][2]), 0, "nothing in its caller itself");
    await page.getByLabel("shown as").selectOption("functions");
    const rows = await cells();
    const all = [...new Set(names.flat())];
    for (const [name, self, total] of rows) {
        equal(
            Number(self),
            sum((of) => of[0] === name),
            `self of ${name}`,
        );
        equal(
            Number(total),
            sum((of) => of.includes(name)),
            `total of ${name}`,
        );
    }
    equal(rows.length, Math.min(all.length, 200), "functions");
    /* A row leads to the stacks with this function: here from it to its callers. */
    await page.locator(".table tbody tr").first().click();
    await page.getByRole("button", { name: /^Only / }).waitFor();
    const [focused, , , name] = await firstRows();
    equal([name, Number(focused)], [rows[0][0], sum((of) => of.includes(rows[0][0]))], "focused");
    const { isOpen, count } = await page.evaluate(() => {
        const buttons = [...document.querySelectorAll(".table [aria-expanded]")];
        return {
            isOpen: buttons[0]?.getAttribute("aria-expanded") === "true",
            count: document.querySelectorAll(".table tbody tr").length,
        };
    });
    ok(isOpen && count > 1, "what takes most is open");
    await page.locator(".table [aria-expanded]").first().click();
    equal((await cells()).length, 1, "folded");
    equal(page.errors, [], "errors");
});

test("MMU has the command's figures", async () => {
    await openTab("MMU");
    const mmu = runJson("mmu", trace);
    await until("rows", async () => (await cells()).length === mmu.windows_ns.length);
    const rows = await cells();
    rows.forEach((row, i) => {
        equal(Number(row[0]), mmu.windows_ns[i], "window");
        equal(row[2], `${(100 * mmu.mmu[i]).toFixed(1)} %`, "as Go computes it");
    });
});

test("the heat map of Ps has the shares that the command adds up, and leads to the timeline", async () => {
    const to = status.end;
    await fresh(`#w=0-${to}&tab=heat`);
    /* Few columns, so that each has some running time; but not those of a telephone. */
    await page.setViewportSize({ width: 490, height: 800 });
    const canvas = page.locator(".heat canvas");
    const columns = await until("few columns", async () => {
        const many = Number(await canvas.getAttribute("data-columns"));
        return many < 130 && many;
    });
    const { procs } = runJson("procs", trace);
    const high = Math.max(6, Math.min(22, Math.floor(160 / procs.length)));
    const edge = (i) => Math.floor((to * i) / columns);
    const swatches = await page.evaluate(() =>
        [...document.querySelectorAll(".heatlegend i")].map(
            (of) => getComputedStyle(of).backgroundColor,
        ),
    );
    const colorAt = (x, y) =>
        page.evaluate(
            ([x, y]) => {
                const of = document.querySelector(".heat canvas");
                const [r, g, b] = of.getContext("2d").getImageData(x, y, 1, 1).data;
                return `rgb(${r}, ${g}, ${b})`;
            },
            [x, y],
        );
    let some = 0;
    let judged = 0;
    /* Scattered columns, until enough have been compared. */
    for (let i = 0; i < columns && (judged < 6 || some === 0); i++) {
        const column = (i * 37) % columns;
        const window = [edge(column), edge(column + 1)];
        const rows = runJson("procs", `--from=${window[0]}ns`, `--to=${window[1]}ns`, trace).procs;
        /* The command lists no Ps for a window without events. */
        if (rows.length === 0) continue;
        judged++;
        for (const lane of [0, 1, 2].filter((of) => of < procs.length)) {
            const [x, y] = [48 + column * 4 + 2, 18 + lane * high + 2];
            await canvas.hover({ position: { x, y } });
            const text = await page.textContent("#heatcell");
            const [, id, percent] = /^P(\d+) .*: (\d+) % running$/.exec(text);
            const row = rows.find((of) => String(of.id) === id);
            const share = (row?.running_ns ?? 0) / (window[1] - window[0]);
            ok(Math.abs(Number(percent) / 100 - share) < 0.015, `${text}, not ${share}`);
            if (share > 0.05 && share < 0.95) some++;
            /* Not on the frame drawn around the cell under the pointer. */
            if (share === 0 || share === 1)
                equal(await colorAt(x, y), swatches[share * 4], `the colour of ${text}`);
        }
    }
    ok(judged > 2 && some > 0, "some are neither 0 nor 1");
    const [x, y] = [48 + Math.floor(columns / 2) * 4 + 2, 18 + 2];
    await canvas.click({ position: { x, y } });
    equal(await fragment("v"), "p", "by P");
    const { rows: lanes } = await ask("lanes?kind=proc");
    const laneOf = (row) =>
        lanes.find((of) => of[1] === procs.map(({ id }) => id).sort((a, b) => a - b)[row])[0];
    const isSelected = async (row) => (await fragment("sel"))?.startsWith(`p${laneOf(row)}.`);
    await until("the P is selected", () => isSelected(0));
    const [from1, to1] = await windowNow();
    ok(from1 <= edge(columns / 2) && to1 >= edge(columns / 2) && to1 - from1 < to / 10, "there");
    /* With the keyboard only, from the list of commands. */
    await openPalette();
    await page.keyboard.type("heat map");
    await page.keyboard.press("Enter");
    await canvas.focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
    const text = await page.textContent("#heatcell");
    ok(procs.length < 2 || /^P\d+ from .* % running$/.test(text), text);
    await page.keyboard.press("Enter");
    await until("the second P", () => isSelected(1));
    equal(page.errors, [], "errors");
});

testOnce("search finds functions and goroutines, goes to a time, and runs commands", async () => {
    await fresh();
    const lanes = await ask("lanes?kind=goroutine&count=10");
    await openPalette();
    await page.keyboard.type(`G${lanes.rows[0][1]}`);
    await page.locator("#found div").first().waitFor();
    await page.keyboard.press("Enter");
    await until("selected", async () =>
        (await fragment("sel"))?.startsWith(`g${lanes.rows[0][0]}.`),
    );
    await openPalette();
    await page.keyboard.type("2ms");
    await page.keyboard.press("Enter");
    const [from, to] = await windowNow();
    ok(from <= 2e6 && to >= 2e6, `${from} to ${to}`);
    await openPalette();
    await page.keyboard.type("dark colours");
    await page.keyboard.press("Enter");
    await until("dark", () =>
        page.evaluate(() => document.documentElement.dataset.theme === "dark"),
    );
    ok(page.errors.length === 0, page.errors.join());
});

testOnce("the fragment shows somebody else the same", async () => {
    await fresh();
    await page.keyboard.press("w");
    await page.getByLabel("sort by").selectOption("waiting");
    await openTab("Functions");
    const drawn = () => page.locator("canvas.rows").screenshot();
    await idle(page);
    const first = await drawn();
    const place = await page.evaluate(() => location.hash);
    await fresh(place);
    equal(await page.evaluate(() => location.hash), place, "the fragment");
    await until("the same picture", async () => (await drawn()).equals(first));
});

testOnce("a narrow window comes to rest: its pictures are asked for once", async () => {
    /* 170 pixels for the lanes; for the window plus half of it on each side, cut at 0, 311.67 pixels. */
    await fresh("#w=832039-3328161");
    await page.setViewportSize({ width: 400, height: 800 });
    await idle(page);
});

testOnce("bookmarks stay, and can be given a text", async () => {
    await fresh();
    await page.keyboard.press("m");
    await openTab("Notes");
    await page.getByLabel("Note", { exact: true }).fill("look here");
    await page.reload();
    await openTab("Notes");
    await until(
        "the note",
        async () => (await page.getByLabel("Note", { exact: true }).inputValue()) === "look here",
    );
});

testOnce("SVG and PNG of the timeline can be saved", async () => {
    for (const [command, start] of [
        ["timeline as SVG", "<svg"],
        ["timeline as PNG", "\x89PNG"],
    ]) {
        await page.keyboard.press("Escape");
        await openPalette();
        await page.keyboard.type(command);
        const data = (await saved(page, () => page.keyboard.press("Enter"))).toString("latin1");
        ok(data.startsWith(start) && data.length > 1000, `${command}: ${data.slice(0, 20)}`);
    }
});

testOnce("the keyboard alone: help, selection, panels", async () => {
    await fresh();
    await page.keyboard.press("?");
    ok(await page.getByRole("dialog", { name: "Keys" }).isVisible(), "help");
    await page.keyboard.press("Escape");
    await page.keyboard.press("ArrowDown");
    await until("selected", () => fragment("sel"));
    const before = await fragment("sel");
    await page.keyboard.press("ArrowRight");
    await until("the next span", async () => (await fragment("sel")) !== before);
    await page.keyboard.press("z");
    const [from, to] = await windowNow();
    const place = /^g(\d+)\.(\d+)$/.exec(await fragment("sel"));
    const span = await ask(`span?kind=goroutine&lane=${place[1]}&span=${place[2]}`);
    const length = span.end - span.begin;
    ok(from <= span.begin && to >= span.end && to - from < 2 * length + 200, "zoomed to it");
    await page.keyboard.press("p");
    ok(await fragment("pin"), "pinned");
});

testOnce("SQL: rows, and errors in DuckDB's words", async () => {
    if (!process.env.TRAIL_DUCKDB) return "no DuckDB";
    await until("the server knows of DuckDB", async () => (await ask("status")).can_sql);
    await fresh();
    await openTab("SQL");
    await page.getByRole("textbox", { name: "SQL" }).waitFor();
    await page.getByRole("textbox", { name: "SQL" }).fill("select count(*) as n from goroutines");
    await page.getByRole("button", { name: /Ask/ }).click();
    const n = runJson("goroutines", trace).goroutines.length;
    await until("the answer", async () => (await cells())[0]?.[0] === String(n));
    await page.getByRole("textbox", { name: "SQL" }).fill("select nonsense");
    await page.getByRole("button", { name: /Ask/ }).click();
    await until("an error", async () =>
        (await page.locator(".error").textContent())?.includes("nonsense"),
    );
});

testOnce("axe finds nothing to complain about, in light and dark, whatever is open", async () => {
    for (const colorScheme of ["light", "dark"]) {
        await reopen(main_.url, { colorScheme, bypassCSP: true });
        await idle(page);
        await page.keyboard.press("ArrowDown");
        await page.waitForSelector(".details h2");
        for (const tab of [
            "",
            "Summary",
            "Functions",
            "Latency",
            "Locks",
            "Tasks and regions",
            "Stacks",
            "P heat map",
            "MMU",
            "Notes",
            "?",
        ]) {
            if (tab === "?") await page.keyboard.press("?");
            else if (tab) await openTab(tab);
            if (tab === "Locks") {
                await page.locator(".table tbody tr").first().click();
                await page.locator(".lock-time .wait-bar").first().waitFor();
            }
            if (tab === "Tasks and regions") {
                await page.locator(".table tbody tr").first().click();
                await page.locator(".waterfall .region").first().waitFor();
            }
            await idle(page);
            equal(await complaints(page, colorScheme), [], `${colorScheme} ${tab}`);
        }
    }
});

testOnce("two traces: what is typed as the offset stays while their names arrive", async () => {
    const other = await serve([given, given]);
    /* The comparing page requests only the names of the traces; these requests are held back here. */
    const holdNames = () => {
        if (window !== top) return;
        const { fetch } = window;
        const released = new Promise((release) => {
            window.release = release;
        });
        window.fetch = async (...args) => {
            await released;
            return fetch(...args);
        };
    };
    const early = await openPage(other.url, {}, "iframe", holdNames);
    try {
        const offset = early.getByLabel("later than A by");
        await offset.fill("5ms");
        await early.evaluate(() => window.release());
        await early.locator(".bar", { has: offset, hasText: ".trace" }).waitFor();
        equal(await offset.inputValue(), "5ms", "the text");
        await offset.press("Enter");
        await until("the offset", async () => (await offset.inputValue()) === "5.00 ms");
    } finally {
        await early.context().close();
        other.server.kill();
    }
});

testOnce(
    "two traces: one window over both, an offset, their differences, and all of it in the address",
    async () => {
        const [a, b] = ["22", "23"].map((name) => given.replace("1.23", `1.${name}`));
        const other = await serve([a, b]);
        const ends = [a, b].map((file) => {
            const { origin_ns, end_ns } = runJson("summary", file);
            return end_ns - origin_ns;
        });
        /* The windows in the address, when it has stopped changing. */
        const windows = async () => {
            await idle(page);
            const parts = new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
            return ["a", "b"].map((name) =>
                (new URLSearchParams(parts.get(name) ?? "").get("w") ?? "").split("-"),
            );
        };
        const areThere = (wanted) => async () =>
            JSON.stringify((await windows()).map((w) => w.join("-"))) === JSON.stringify(wanted);
        try {
            await reopen(other.url, {}, "iframe");
            const [first, second] = ["The first trace", "The second trace"].map((title) =>
                page.frameLocator(`iframe[title="${title}"]`),
            );
            /* The range of both traces, which has the length of the longer one. */
            const longer = Math.max(...ends);
            await until("both are seen", areThere([`0-${longer}`, `0-${longer}`]));
            /* Until both are read, the windows return to the whole range. */
            for (const of of [first, second])
                await of.locator(".progress").waitFor({ state: "detached" });
            const offset = page.getByLabel("later than A by");
            await offset.fill("5ms");
            await offset.press("Enter");
            await until("the offset", areThere([`0-${longer}`, `-5000000-${longer - 5e6}`]));
            /* Moving one window moves the other, in both directions. */
            await first.locator("canvas.rows").hover();
            await page.keyboard.down("Control");
            await page.mouse.wheel(0, -400);
            await page.keyboard.up("Control");
            const apart = async () => {
                const [[from, to], [from1, to1]] = (await windows()).map((w) =>
                    w
                        .join("-")
                        .match(/^(-?\d+)-(-?\d+)$/)
                        .slice(1)
                        .map(Number),
                );
                return (
                    Math.abs(from - from1 - 5e6) <= 1 && Math.abs(to - to1 - 5e6) <= 1 && to - from
                );
            };
            const zoomed = await until("both are zoomed", async () => {
                const length = await apart();
                return length && length < longer * 0.5 && length;
            });
            await second.locator("canvas.rows").hover();
            await page.keyboard.down("Control");
            await page.mouse.wheel(0, 200);
            await page.keyboard.up("Control");
            await until("and back a little", async () => (await apart()) > zoomed * 1.5);
            /* Lanes and filter are separate. */
            await second.getByRole("button", { name: "Ps", exact: true }).click();
            await first.getByLabel("Filter lanes").fill("main");
            await until("each its own", async () => {
                const hash = await page.evaluate(() => location.hash.slice(1));
                const parts = new URLSearchParams(hash);
                const [of, to] = ["a", "b"].map(
                    (name) => new URLSearchParams(parts.get(name) ?? ""),
                );
                return (
                    of.get("f") === "main" && !of.get("v") && to.get("v") === "p" && !to.get("f")
                );
            });
            /* Drags the strip by a tenth of the window. */
            const [from, to] = (await windows())[0].map(Number);
            const strip = await page.getByRole("slider").boundingBox();
            const by = (1280 - LABELS) / 10;
            await page.mouse.move(strip.x + 20, strip.y + 5);
            await page.mouse.down();
            await page.mouse.move(strip.x + 20 + by / 2, strip.y + 5);
            await page.mouse.move(strip.x + 20 + by, strip.y + 5);
            await page.mouse.up();
            await until("it is dragged", async () => {
                const off = Number(await fragment("off"));
                return Math.abs(off - 5e6 - (to - from) / 10) < (to - from) / 200;
            });
            /* The table of differences. */
            await page.getByRole("button", { name: "Differences" }).click();
            await page.getByRole("button", { name: "Show them" }).click();
            const { metrics } = runJson("diff", "--limit=0", a, b);
            await until(
                "rows",
                async () => (await cells()).length === Math.min(metrics.length, 200),
            );
            const rows = await cells();
            for (const [of, name, figure, ...shown] of rows.slice(0, 20)) {
                const values = JSON.stringify(shown.slice(0, 3).map(Number));
                const those = metrics.filter((row) => row.of === of && row.name === name);
                ok(
                    those.some(
                        ({ a: before, b: after, change }) =>
                            JSON.stringify([before?.value ?? 0, after?.value ?? 0, change]) ===
                            values,
                    ),
                    `${of} ${name} ${figure}: ${values}`,
                );
            }
            /* As the address opens in another browser. */
            const wanted = (await windows()).map((w) => w.join("-"));
            const off = await fragment("off");
            const place = await page.evaluate(() => location.hash);
            await reopen(other.url + place, {}, "iframe");
            await until("the same", areThere(wanted));
            equal(
                [await fragment("off"), await fragment("diff")],
                [off, "1"],
                "offset and differences",
            );
            const again = page.frameLocator('iframe[title="The first trace"]');
            equal(await again.getByLabel("Filter lanes").inputValue(), "main", "the filter");
            equal(page.errors, [], "errors");
            for (const colorScheme of ["light", "dark"]) {
                await reopen(other.url + place, { colorScheme, bypassCSP: true }, ".table");
                equal(await complaints(page, colorScheme), [], colorScheme);
            }
        } finally {
            other.server.kill();
        }
    },
);

test("a damaged trace shows its good part, and says so", async () => {
    const damaged = join(folder, "damaged.trace");
    const bytes = readFileSync(trace);
    writeFileSync(damaged, bytes.subarray(0, Math.floor(bytes.length * 0.7)));
    const other = await serve([damaged]);
    try {
        await reopen(other.url);
        const banner = await until("a banner", () => page.locator(".banner").textContent());
        ok(banner.includes("are of the recovered part"), banner);
    } finally {
        other.server.kill();
    }
});

testOnce("what arrives on a pipe is drawn as it arrives; the server's end is shown", async () => {
    const long = join(folder, "long.trace");
    execFileSync(scheduler, ["--work=pipeline", "--seconds=3", "-o", long]);
    const { events } = runJson("summary", long);
    const bytes = readFileSync(long);
    const other = await serve(["-"], true);
    await reopen(other.url);
    other.server.stdin.write(bytes.subarray(0, Math.floor(bytes.length * 0.9)));
    await until("something", () =>
        page.evaluate(() => /[1-9]\d* events/.test(document.querySelector(".facts").textContent)),
    );
    ok(await page.locator(".progress").isVisible(), "it is still arriving");
    other.server.stdin.end(bytes.subarray(Math.floor(bytes.length * 0.9)));
    await until("all of it", async () =>
        (await page.textContent(".facts")).includes(`${events.toLocaleString("en-US")} events`),
    );
    other.server.kill();
    const banner = await until("a word that it has ended", () =>
        page.locator(".banner").textContent(),
    );
    ok(banner.includes("No answer from the server"), banner);
});

await main();
