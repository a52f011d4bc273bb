// Tasks of users, each from opening the page to the answer in at most three clicks, and questions, of traces of C and of Go,
// each answered by at most two. TRAIL_PICTURES: a folder for a picture of each task's answer, whose name is one word.
// Arguments: the trail command, the tree's folder, trail-generate. Skipped without Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
    equal,
    given as generate,
    idle,
    leavePage,
    main,
    measure,
    needBrowser,
    ok,
    openPage,
    runJson,
    serve,
    tableOf,
    test,
    trail,
    until,
    withSign,
} from "./browser.mjs";
import { example, folder, fragment, ofOne, rowsWhenThere } from "./traces.mjs";

needBrowser();
const MOST_CLICKS = 3;

/*
 * One task. `open` returns { url, server }; `run` receives the page, a function that clicks, and the server, and returns
 * when the answer is seen.
 */
function task(name, what, open, run, sign = ".facts", most = MOST_CLICKS) {
    test(`${name}: ${what}`, async () => {
        const { server, url } = await open();
        let page;
        try {
            page = await openPage(url, {}, sign);
            let clicks = 0;
            const click = async (place) => {
                clicks++;
                await place.click();
                await idle(page);
            };
            await run(page, click, server);
            ok(clicks <= most, `${clicks} clicks`);
            equal(page.errors, [], "errors");
            await idle(page);
            if (process.env.TRAIL_PICTURES && /^[\w-]+$/.test(name))
                await page.screenshot({
                    path: join(process.env.TRAIL_PICTURES, `task-${name}.png`),
                });
            await leavePage(page);
            page = undefined;
        } finally {
            await page?.context().close();
            server?.kill();
        }
    });
}

const serving =
    (...names) =>
    () =>
        serve(names.map(example));
const tile = (page, key) => page.locator(`.tile[data-key=${key}]`);
const rowsText = (page) => page.locator(".table tbody tr").allInnerTexts();

async function windowOf(page) {
    await idle(page);
    const text = await page.evaluate(() => new URLSearchParams(location.hash.slice(1)).get("w"));
    return text.split("-").map(Number);
}

task(
    "slow-request",
    "the slowest request waited for a lock that flush held",
    serving("shop-c"),
    async (page, click) => {
        await click(tile(page, "slowest_task_ns"));
        const heading = page.locator(".panel h2", { hasText: "task 7 request: 39.7 ms" });
        await heading.waitFor();
        const rows = await until("its way", async () => {
            const found = await rowsText(page);
            return found.some((row) => /wakes/.test(row)) && found;
        });
        /* As the source has it: flush sleeps with cache_mu held, and the request waits for that. */
        const line = rows.find((row) => /wakes thread 5 from mutex cache_mu/.test(row));
        ok(/thread 3 flush/.test(line) && /held for 15\.1 ms/.test(line), rows.join("\n"));
        ok((await page.locator(".waterfall").count()) === 2, "beside the median");
        const path = runJson("why", "--task=7", example("shop-c"));
        const [from, to] = await windowOf(page);
        ok(from <= path.begin_ns - path.origin_ns && to >= path.end_ns - path.origin_ns, "shown");
    },
);

task(
    "lock",
    "who holds which lock and waits for which, in a program that is stuck",
    serving("shop-c-stuck"),
    async (page, click) => {
        const card = page.locator(".card").first();
        const text = await card.getAttribute("title");
        ok(/flush \(3\) holds mutex cache_mu and waits for mutex log_mu/.test(text), text);
        ok(/work \(4\) holds mutex log_mu and waits for mutex cache_mu/.test(text), text);
        await click(card.getByRole("button"));
        await until("its wait", async () =>
            /waiting for mutex log_mu/.test(await page.textContent(".panel")),
        );
        /* Its wait is seen whole: from its begin, 15 ms after the first event, to the trace's end. */
        const deadlock = runJson("summary", example("shop-c-stuck"));
        const [from, to] = await windowOf(page);
        const [{ begin_ns, end_ns }] = deadlock.findings;
        ok(from <= begin_ns - deadlock.origin_ns && to >= end_ns - deadlock.origin_ns, "whole");
        /* flush waits for what a worker holds, and that worker for what flush holds. */
        const holder = page.locator(".panel dt:text('Held by') + dd button");
        equal(await holder.textContent(), "thread 4 work", "the holder");
        await click(holder);
        await until("what the holder waits for", async () =>
            /waiting for mutex cache_mu/.test(await page.textContent(".panel")),
        );
        equal(await holder.textContent(), "thread 3 flush", "the holder of the other");
    },
);

task(
    "gc",
    "what garbage collection leaves to the program, and its longest pause",
    serving("load-go1.23"),
    async (page, click) => {
        const { gc, origin_ns } = runJson("summary", example("load-go1.23"));
        const share = `${(100 * gc.share).toFixed(1)} %`;
        equal(await tile(page, "gc_cycles").locator("b").textContent(), share, "the share");
        await click(tile(page, "gc_cycles"));
        await until("the table", async () =>
            (await rowsText(page)).some((row) => /^1\.00 ms/.test(row)),
        );
        const row = (await rowsText(page)).find((one) => /^1\.00 ms/.test(one));
        const left = Number(/([\d.]+) %/.exec(row)[1]);
        ok(Math.abs(left - 100 * gc.mmu["1ms"]) < 0.06, `${row}, not ${gc.mmu["1ms"]}`);
        const [from, to] = await windowOf(page);
        const begin = gc.longest_pause_begin_ns - origin_ns;
        ok(from <= begin && to >= begin + gc.longest_pause_ns, "the longest pause is shown");
    },
);

task(
    "compare",
    "what has become better, and where in both",
    serving("shop-c", "shop-c-fixed"),
    async (page, click) => {
        const { metrics } = runJson(
            "diff",
            "--limit=0",
            example("shop-c"),
            example("shop-c-fixed"),
        );
        const of = (metric, name) =>
            metrics.find((row) => row.metric === metric && row.name === name);
        const task = of("task", "request");
        const times = task.a.p50 / task.b.p50;
        const lock = of("lock.wait", "mutex cache_mu");
        equal([lock.a.count, lock.b.count], [10, 0], "waits");
        const names = () => page.locator("bdi[title]").allTextContents();
        await until("both names", async () =>
            (await names()).join().includes("shop-c.trace,shop-c-fixed.trace"),
        );
        /* The verdict is there without a click. */
        const verdict = await until("the verdict", async () =>
            (await page.textContent(".verdict")).replace("Comparing …", ""),
        );
        const faster = `Task request ${Number(times.toPrecision(3))} times faster`;
        ok(verdict.startsWith(`${faster} (median about 9.00 ms, now 3.20 ms)`), verdict);
        ok(verdict.includes("waits for mutex cache_mu are gone (78.4 ms)"), verdict);
        await click(page.getByRole("button", { name: "Differences" }));
        const rows = await until("the differences", async () => {
            const found = await rowsText(page);
            return found.length > 3 && found;
        });
        const row = rows.findIndex((one) => /locks\s+mutex cache_mu\s+waited/.test(one));
        const { y, height } = await page.locator(".table tbody tr").nth(3).boundingBox();
        ok(y + height <= page.viewportSize().height, "rows are in view");
        const lanesInView = () =>
            Promise.all(
                [0, 1].map((which) =>
                    page
                        .frameLocator("iframe")
                        .nth(which)
                        .locator("canvas.rows")
                        .evaluate((of) => of.getBoundingClientRect().height),
                ),
            );
        const lane = measure("lane-height");
        await until("three lanes of both beside the differences", async () =>
            (await lanesInView()).every((px) => px >= 3 * lane),
        );
        ok(/78\.4 ms\s+0 ns\s+−78\.4 ms\s+gone/.test(rows[row]), rows[row]);
        equal(rows[row].match(/0 ns/g).length, 1, "waits that are not there have no length");
        ok(!rows.some((one) => /\s0 ns\s+0 ns/.test(one)), "what did not change is left out");
        const json = rows.filter((one) =>
            /block|exec|sched|\w[._]wait|goroutine|whole\t/.test(one),
        );
        equal(json, [], "in the page's words");
        /* One click shows the lock in both, and the task in both. */
        await click(page.locator(".table tbody tr").nth(row));
        const first = page.frameLocator("iframe").first();
        const attached = { state: "attached" };
        await first.locator("[role=tabpanel]", { hasText: "mutex cache_mu" }).waitFor(attached);
        await first.locator(".lock-time").waitFor(attached);
        await until("three lanes of both beside the differences", async () =>
            (await lanesInView()).every((px) => px >= 3 * lane),
        );
        const tasks = rows.findIndex((one) => /tasks\s+request\s+duration/.test(one));
        await click(page.locator(".table tbody tr").nth(tasks));
        for (const which of [0, 1])
            await page
                .frameLocator("iframe")
                .nth(which)
                .locator(".panel h2", { hasText: /task \d+ request/ })
                .first()
                .waitFor(attached);
    },
    "iframe",
);

task(
    "huge",
    "the goroutine that was ready longest, of more than a page of the server has",
    () => {
        const path = join(folder, "huge.trace");
        execFileSync(generate, ["--events=2M", "--goroutines=120000", "-o", path]);
        return serve([path]);
    },
    async (page, click) => {
        const path = join(folder, "huge.trace");
        const { tiles, origin_ns, goroutines } = runJson("summary", path);
        ok(goroutines > 50000, `only ${goroutines} goroutines`);
        const longest = tiles.find(({ key }) => key === "longest_ready_ns");
        await click(page.getByRole("tab", { name: "Findings", exact: true }));
        await click(tile(page, "longest_ready_ns").first());
        await until("its lane", async () =>
            (await page.textContent(".beside")).includes(`G${longest.goroutine} `),
        );
        const [from, to] = await windowOf(page);
        ok(from <= longest.begin_ns - origin_ns && to >= longest.end_ns - origin_ns, "its time");
        /* It begins 2 us before the first second is over, which "1000.00 ms" would be no word for. */
        const begin = (longest.begin_ns - origin_ns) / 1e9;
        const times = await page.textContent(".beside dt:text('From, to') + dd");
        equal(times.split(" – ")[0], `${begin.toFixed(5)} s`, "in the unit of its rounded value");
    },
);

task(
    "live",
    "what a program does that is still running",
    () => serve(["-"], true),
    async (page, click, server) => {
        /* Of three seconds, and so of some generations. */
        const path = join(folder, "live.trace");
        execFileSync(generate, ["--events=300K", "--rate=100K", "-o", path]);
        const bytes = readFileSync(path);
        server.stdin.write(bytes.subarray(0, Math.floor(bytes.length * 0.8)));
        await until("events", async () => /[1-9]\d* events/.test(await page.textContent(".facts")));
        ok(await page.locator(".progress").isVisible(), "it is still arriving");
        /* The lanes move while more of them arrive: the key is surer of one than a click. */
        const press = { click: () => page.keyboard.press("ArrowDown") };
        await click(press);
        /* Pressed before the first lanes have come, it does nothing. */
        await until("a span", async () => {
            if (await page.locator(".panel").isHidden()) await press.click();
            return /running|ready|waiting/.test(await page.textContent(".panel"));
        });
        server.stdin.end(bytes.subarray(Math.floor(bytes.length * 0.8)));
        await page.locator(".progress").waitFor({ state: "detached" });
    },
);

/* The overview of a trace that no server reads. */
async function hasTilesOf(page, path) {
    await tile(page, "slowest_task_ns").waitFor();
    const tiles = await page
        .locator(".tile")
        .evaluateAll((all) => all.map((one) => [one.dataset.key, one.title]));
    const known = runJson("summary", path).tiles.map(({ key, note }) => [key, withSign(note)]);
    equal(
        tiles,
        known.filter(([key]) => tiles.some(([shown]) => shown === key)),
        "tiles",
    );
}

task(
    "dropped",
    "a file that is dropped on the page, by what it waited for",
    serving("load-go1.23"),
    async (page, click) => {
        await page
            .locator("label", { hasText: "Open a file" })
            .locator("input")
            .setInputFiles(example("shop-c"));
        await page.waitForURL(/\?opened=/);
        await page.waitForSelector(".banner.source");
        await hasTilesOf(page, example("shop-c"));
        await click(tile(page, "lock_ns"));
        const row = await until("the locks", async () => (await rowsText(page))[0]);
        ok(/cache_mu/.test(row), row);
    },
);

task(
    "offline",
    "a file that was sent by mail, without a server",
    () => {
        const output = join(folder, "sent.html");
        execFileSync(trail, ["report", "--embed", example("shop-c"), "-o", output]);
        return { url: pathToFileURL(output).href };
    },
    async (page, click) => {
        await hasTilesOf(page, example("shop-c"));
        await click(page.locator(".card button").first());
        /* flush holds the mutex, asleep. */
        await until("who holds it", async () =>
            /flush.*in sleep/s.test(await page.textContent(".panel")),
        );
    },
);

/* MARK: Questions */

/* Text of the page, whose units are bound to their numbers. */
const shownIn = async (page, place) => (await page.textContent(place)).replaceAll("\u00a0", " ");
/* Typing is one action, and Enter another. */
const typed = (page, text) => ({
    click: async () => {
        await page.keyboard.press("/");
        await page.keyboard.type(text);
        await page.locator(".palette [role=option]").first().waitFor();
    },
});
const enter = (page) => ({ click: () => page.keyboard.press("Enter") });

const shops = { "shop-c": { waiter: "take" }, "shop-go": { waiter: "lookUp" } };
function ask(question, run, suffix = "", traces = Object.keys(shops)) {
    for (const name of traces)
        task(
            `${question}, ${name}`,
            "answered by at most two clicks",
            serving(name + suffix),
            (page, click) => run(page, click, name),
            ".facts",
            2,
        );
}

ask("which lock is contended, and who holds it", async (page, _, name) => {
    await page.locator(".details h2", { hasText: "flush" }).waitFor();
    const lock =
        name === "shop-c" ? /flush_once .* held mutex cache_mu/ : /flushOnce .* held a lock/;
    ok(lock.test(await shownIn(page, ".card")), "lock and holder");
});

ask("which request is the slowest, and why", async (page, click, name) => {
    const { tiles } = runJson("summary", example(name));
    const { task: id, text } = tiles.find(({ key }) => key === "slowest_task_ns");
    await click(tile(page, "slowest_task_ns"));
    await page.locator(".panel h2", { hasText: `task ${id} request: ${text}` }).waitFor();
    /* As the sources have it: it waits for supply's answer and for flush's lock. Seen without scrolling. */
    const cause = page.locator(".request .say");
    await cause.waitFor();
    const said = await cause.textContent();
    for (const by of ["supply", "flush"])
        ok(new RegExp(`ms [^;]*, (held|woken) by [^;]*${by}`).test(said), said);
    const { y, height } = await cause.boundingBox();
    ok(y + height <= 800, `the cause ends at ${y + height}`);
});

ask(
    "what is deadlocked",
    async (page, _, name) => {
        const [finding] = runJson("summary", example(`${name}-stuck`)).findings;
        await page.locator(".details .say").waitFor();
        ok((await shownIn(page, ".card")).includes(finding.heading), "the heading");
        ok((await shownIn(page, ".details .say")).includes(finding.details), "who");
        const lane = await shownIn(page, ".details h2");
        ok(new RegExp(`^(G|thread )${finding.goroutine} `).test(lane), lane);
    },
    "-stuck",
);

ask("what the idle CPUs wait for", async (page, click) => {
    await click(tile(page, "idle_ns"));
    await until("why", async () =>
        /idle 9\d\.\d %: .*, \d.* % waiting for locks/.test(await shownIn(page, ".heat")),
    );
});

ask("what happens from 20 to 30 ms", async (page, click) => {
    await click(typed(page, "20-30 ms"));
    await click(enter(page));
    await page.locator(".panel h2", { hasText: /^10\.0 ms, from 20/ }).waitFor();
});

ask(
    "which functions wait for the other side of a pipe or socket",
    async (page, click, name) => {
        const { ns, frames, samples } = runJson("profile", "--type=net", example(name));
        const calls = {};
        for (const { ns: length, stack } of samples) {
            const names = stack.map((frame) => frames[frame].name).reverse();
            names.forEach((_, i) => {
                const call = names.slice(0, i + 1).join("\n");
                calls[call] = (calls[call] ?? 0) + length;
            });
        }
        await click(typed(page, "network"));
        await click(enter(page));
        await page.locator(".flame .boxes button").first().waitFor();
        equal(await fragment(page, "tab"), "flame", "the panel");
        const boxes = page.locator(".flame .boxes button");
        const shown = (await boxes.evaluateAll((all) => all.map((of) => of.title)))
            .map((title) => title.split("\n")[0])
            .filter((of) => of !== "all");
        /* Boxes that would be about as narrow as a pixel are left out. */
        const wanted = Object.keys(calls)
            .filter((call) => calls[call] >= 0.0012 * ns)
            .map((call) => call.split("\n").at(-1));
        ok(wanted.length > 1, wanted.join());
        equal(shown.sort(), wanted.sort(), "functions");
    },
    "",
    ["shop-c", "load-go1.23"],
);

ask("who wakes a function", async (page, click, name) => {
    await click(typed(page, shops[name].waiter));
    await click(enter(page));
    const by = await page.locator(".details dt:text('Woken by') + dd").textContent();
    const [, id] = /^(?:G|thread )(\d+) /.exec(await shownIn(page, ".details h2"));
    const length = await shownIn(page, ".details dt:text('Duration') + dd");
    const waits = tableOf(example(name), "states").filter(
        ({ goroutine, state, duration_ns }) =>
            goroutine === id &&
            state === "Waiting" &&
            length === `${(duration_ns / 1e6).toPrecision(3)} ms`,
    );
    equal(
        [/^(?:G|thread )(\d+) /.exec(by)?.[1]],
        [...new Set(waits.map((of) => of.waker))],
        length,
    );
    ok((await shownIn(page, ".details")).includes(shops[name].waiter), "the function");
});

ask("who was ready longest without running", async (page, click, name) => {
    const longest = runJson("summary", example(name)).tiles.find(
        ({ key }) => key === "longest_ready_ns",
    );
    await click(page.getByRole("tab", { name: "Findings", exact: true }));
    await click(tile(page, "longest_ready_ns").last());
    await until("its lane", async () =>
        new RegExp(`^(G|thread )${longest.goroutine} `).test(await shownIn(page, ".beside h2")),
    );
});

ask(
    "what garbage collection takes",
    async (page, click, name) => {
        const { windows_ns, mmu, mmu_corrected } = runJson("mmu", example(name));
        await click(tile(page, "gc_cycles"));
        await page.locator(".panel .uplot").waitFor();
        const rows = await rowsWhenThere(page);
        const figures = (of) => Object.values(of).map((text) => Number.parseFloat(text));
        equal(rows.length, windows_ns.length, "windows");
        for (const [window, once, go] of rows.map(figures)) {
            const at = windows_ns.indexOf(window);
            ok(Math.abs(once - 100 * mmu_corrected[at]) < 0.06, `${window}: ${once} %`);
            ok(Math.abs(go - 100 * mmu[at]) < 0.06, `${window}: ${go} % as Go computes it`);
        }
    },
    "",
    ["load-go1.23"],
);

for (const name of Object.keys(shops))
    task(
        `has it become better, ${name}`,
        "the verdict is there at once",
        serving(name, `${name}-fixed`),
        async (page) => {
            await until("the verdict", async () =>
                /^Task request \d\.\d+ times faster/.test(await shownIn(page, ".verdict")),
            );
            const verdict = page.locator(".verdict");
            ok(!(await verdict.textContent()).includes("<"), "callers in words");
            const size = await verdict.evaluate((of) => getComputedStyle(of).fontSize);
            equal(Number.parseFloat(size), measure("t-16"), "larger than what is around it");
        },
        "iframe",
        0,
    );

/* 40 goroutines are created in 95 ms, and stay blocked. */
function leaking() {
    const created = Array.from(
        { length: 40 },
        (_, i) => `GoCreate dt=${i ? 2374950 : 1000000} new_g=${10 + i} new_stack=1 stack=1
GoBlock dt=10 reason_string=1 stack=1
GoStart dt=10 g=${10 + i} g_seq=1
GoUnblock dt=10 g=1 g_seq=${1 + 2 * i} stack=1
GoBlock dt=10 reason_string=1 stack=2
GoStart dt=10 g=1 g_seq=${2 + 2 * i}`,
    );
    const strings = { 1: "chan receive", 2: "main.worker", 3: "main.go", 4: "main.main" };
    const stacks = `EventBatch gen=1 m=18446744073709551615 time=99000000 size=auto
Stacks
Stack id=1 nframes=1
\tpc=4096 func=4 file=3 line=10
Stack id=2 nframes=1
\tpc=8192 func=2 file=3 line=20
`;
    return serve([ofOne("leak", created.join("\n"), strings, stacks)]);
}

task(
    "what leaks",
    "the goroutines that stay blocked, at once",
    leaking,
    async (page) => {
        await page.locator(".details h2", { hasText: /^G10 / }).waitFor();
        ok(/leak/i.test(await shownIn(page, ".card")), await shownIn(page, ".card"));
    },
    ".facts",
    0,
);

await main();
