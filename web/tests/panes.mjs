// What the panels answer about traces with known content, and how they stand beside the timeline. Arguments: the trail
// command, the tree's folder, trail-generate. Skipped without Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
    color,
    complaints,
    equal,
    idle,
    LABELS,
    main,
    measure,
    needBrowser,
    ok,
    openPage,
    openTab,
    scheduler as root,
    runJson,
    serve,
    test,
    trail,
    until,
    withSign,
} from "./browser.mjs";
import {
    assembled,
    example,
    folder,
    fragment,
    generated,
    ofOne,
    rowsOf,
    rowsWhenThere,
    serving,
} from "./traces.mjs";

needBrowser();

for (const [name, finding] of [
    [
        "shop-c-stuck",
        /flush \(3\) holds mutex cache_mu and waits for mutex log_mu; .*work \(4\) holds mutex log_mu/,
    ],
    ["shop-go-stuck", /Possibly a deadlock: .*4 goroutines had waited for locks/],
])
    test(`${name}: waits that are open at the end count, are marked, name the cycle, and lead to it`, async () => {
        const { locks, origin_ns } = runJson("locks", example(name));
        await serving(example(name), async (open, ask) => {
            const page = await open("#tab=locks");
            const rows = await rowsWhenThere(page);
            equal(
                rows.map((row) => [row["still waiting"], row["waited so far"]]),
                locks.map((lock) => [String(lock.unfinished), String(lock.unfinished_ns)]),
                "open waits",
            );
            equal(
                await page.locator("tr.marked").count(),
                locks.filter((lock) => lock.unfinished > 0).length,
                "marked",
            );
            const text = await until("the cycle", async () => {
                const shown = await page.textContent(".open-waits");
                return /deadlock/i.test(shown) && shown;
            });
            ok(finding.test(text), text);
            /* log_mu and cache_mu, or their calls: each row leads to its own open wait. */
            for (const [i, lock] of locks.entries()) {
                if (lock.unfinished === 0) continue;
                await page.locator(".table tbody tr").nth(i).click();
                const id = lock.longest_unfinished.goroutine;
                const span = await until(`the wait of ${id}`, async () => {
                    const place = /^g(\d+)\.(\d+)$/.exec((await fragment(page, "sel")) ?? "");
                    if (!place) return null;
                    const one = await ask(`span?kind=goroutine&lane=${place[1]}&span=${place[2]}`);
                    return one.id === id && one;
                });
                equal(span.begin, lock.longest_unfinished.begin_ns - origin_ns, "its begin");
                equal([span.state, span.open], ["waiting", true], "it is open");
            }
        });
    });

test("the panels of waits have the sums of a trace that were added up by hand", async () => {
    /* The waits that end, by their times in the text: for a mutex 1040 to 1150; for channels and select 1060 to 1100, 1270 to
     * 1290, 1330 to 1390, 1210 to 1340; asleep 1110 to 1230. What is ready before it runs: 11 times, 270 ns. */
    const [lock, channels, asleep] = [110, [40, 20, 60, 130], 120];
    const sum = (all) => all.reduce((a, b) => a + b, 0);
    const path = join(folder, "why.trace");
    execFileSync(trail, ["assemble", join(root, "tests/data/why-1.26.txt"), "-o", path]);
    await serving(path, async (open) => {
        const page = await open("");
        const group = page.getByRole("tab", { name: "Waiting", exact: true });
        await until("how long all waited", async () =>
            (await group.textContent()).includes(`${sum([lock, ...channels, asleep])} ns`),
        );
        await group.click();
        const rows = await rowsWhenThere(page);
        equal(
            rows.map((row) => [row.lock, row.kind, row.waits, row.waited, row.longest]),
            [["main.main (main.go:7)", "sync.(*Mutex).Lock", "1", `${lock}`, `${lock}`]],
            "locks",
        );
        equal(rows[0]["woken in"], "main.holder (main.go:99)", "what released it");
        await openTab(page, "Latency");
        const section = page.locator(".columns section");
        const textOf = (title) => section.filter({ hasText: title }).textContent();
        await section.first().waitFor();
        const all = [lock, ...channels].sort((a, b) => a - b);
        ok(
            (await textOf("Locks, channels, select")).includes(
                `${all.length} times, ${sum(all)} ns in all; median ${all[2]} ns`,
            ),
            await textOf("Locks, channels, select"),
        );
        ok((await textOf("Scheduling")).includes("11 times, 270 ns in all"), "ready");
        ok((await textOf("Syscalls")).includes("No system call"), "none");
        /* The group opens again at the panel that was looked at last. */
        await page.getByRole("tab", { name: "Data", exact: true }).click();
        await group.click();
        await section.first().waitFor();
    });
});

test("the order of the locks is said until another is chosen", async () => {
    await serving(example("shop-go"), async (open) => {
        const page = await open("#tab=locks");
        await rowsWhenThere(page);
        const tools = page.locator(".table .tools");
        ok(/most waiting first/.test(await tools.textContent()), "the order");
        await page.getByRole("button", { name: "longest" }).click();
        equal(/most waiting first/.test(await tools.textContent()), false, "that of a column");
    });
});

test("a collection that began before the trace, or has not ended, is as long as is seen of it", async () => {
    /* The trace begins at 1000; a collection is active at 1012, and ends at 1512; another one begins at 1612; the last event
     * is at 1812, in the trace's last nanosecond. */
    const events =
        "GCActive dt=10 gc_seq=1\nGCEnd dt=500 gc_seq=2\nGCBegin dt=100 gc_seq=3 stack=0\nGoBlock dt=200 reason_string=1 stack=0";
    await serving(ofOne("collections", events, { 1: "sleep" }), async (open) => {
        const page = await open("#tab=gc");
        const rows = await rowsWhenThere(page);
        equal(
            rows.map((row) => [row.at, row.duration]).sort(),
            [
                ["0", `${1512 - 1000}`],
                [`${1612 - 1000}`, `${1813 - 1612}`],
            ],
            "begin and duration",
        );
        const before = page.locator(".table tbody tr", { hasText: "before the trace" });
        equal(await before.locator("td:nth-child(2)").textContent(), "512 ns", "what is seen");
        equal(await before.locator("td:nth-child(3)").textContent(), "not recorded", "the heap");
    });
});

test("the filter of the lanes holds for the sums of a range, however many lanes match", async () => {
    const path = generated("many", "--goroutines=3000", "--events=60K");
    await serving(path, async (open, ask) => {
        const { rows, names, all } = await ask("lanes?kind=goroutine&count=50000");
        const { end } = await ask("status");
        /* A digit: many match, and many do not. */
        const matching = rows.filter((row) => `${names[row[2]]} ${row[1]}`.includes("1"));
        ok(matching.length > 600 && matching.length < all, `${matching.length} of ${all}`);
        const page = await open(`#f=1&r=0-${end}&tab=range`);
        const text = await until("the sums", () =>
            page.textContent(".panel .about", { timeout: 1000 }).catch(() => ""),
        );
        ok(text.includes(`${matching.length.toLocaleString("en-US")} lanes`), text);
        const shown = (await rowsWhenThere(page)).reduce(
            (sum, row) => sum + Number(row.running),
            0,
        );
        equal(
            shown,
            matching.reduce((sum, row) => sum + row[8], 0),
            "running, of the lanes that match",
        );
        const without = await ask(`select?from=0&to=${end}&match=-1`);
        equal(without.lanes, all - matching.length, "lanes without the word");
    });
});

/* 5000 pauses: of each 100 units of time the world is stopped for 9. */
function stopped() {
    const pauses = "STWBegin dt=91 kind_string=2 stack=0\nSTWEnd dt=9\n";
    const batches = Array.from(
        { length: 50 },
        (_, i) =>
            `EventBatch gen=1 m=100 time=${2000 + i * 10000} size=auto\n${pauses.repeat(100)}`,
    );
    return assembled(
        "stopped",
        `Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=15625000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=120000000
EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=999 g=1 m=100 gstatus=2
${batches.join("")}EventBatch gen=1 m=18446744073709551615 time=600000 size=auto
Strings
String id=2
	data="a test"
EndOfGeneration
`,
    );
}

test("stop-the-world pauses shade a pixel by their share of it, in both strips", async () => {
    await serving(stopped(), async (open, ask) => {
        const { end } = await ask("status");
        const { shares } = await ask(`metrics?from=0&to=${end}&width=1050`);
        const inside = shares.stopped.slice(5, -5);
        const average = inside.reduce((a, b) => a + b, 0) / inside.length;
        ok(Math.abs(average - 0.09) < 0.001, `${average} of the time, not 0.09`);
        /* Without lanes only the pauses and the ruler's lines are drawn, on one colour. */
        const page = await open(`#w=0-${end}&f=no%20such%20lane`, { colorScheme: "light" });
        await until("pauses are drawn", async () => (await greens(page, "rows", 30)) < 254.9);
        const rows = 255 - (await greens(page, "rows", 30));
        /* Fully stopped takes 57 of the 255 at an opacity of 0.24: 9 % of it 5.2, and rounding. */
        ok(rows > 3.5 && rows < 7, `${rows} of the green of the lanes`);
        const strip = await page.evaluate(() => document.querySelector("canvas.head").height - 9);
        const head = 247 - (await greens(page, "head", strip));
        /* Of the strip's background (245) to its red (52). */
        ok(head > 10 && head < 26, `${head} of the green of the strip`);
    });
});

/* The median of the green of a line of pixels in the timeline. */
function greens(page, name, y) {
    return page.evaluate(
        ([name, y]) => {
            const to = document.querySelector(`canvas.${name}`).getContext("2d");
            const { data } = to.getImageData(240, y, 1000, 1);
            const all = [...data].filter((_, i) => i % 4 === 1).sort((a, b) => a - b);
            return all[all.length / 2];
        },
        [name, y],
    );
}

test("a click on a row of a table leaves the table open, with the span beside it", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#tab=goroutines");
        const before = await rowsWhenThere(page);
        await page.locator(".table tbody tr").nth(2).click();
        await page.waitForSelector(".beside .details h2");
        equal(await fragment(page, "tab"), "goroutines", "the panel");
        equal(await rowsOf(page), before, "the list");
        ok(
            (await page.textContent(".beside h2")).startsWith(`G${before[2].goroutine}`),
            "the span",
        );
        await page.locator(".table tbody tr").nth(4).click();
        await until("the next", async () =>
            (await page.textContent(".beside h2")).startsWith(`G${before[4].goroutine}`),
        );
        await page.locator(".beside").getByRole("button", { name: "Close" }).click();
        await until("closed", async () => (await page.locator(".beside").count()) === 0);
        equal(await rowsOf(page), before, "the list is still there");
    });
});

test("a table stays scrolled to where it is when a click opens the span beside it", async () => {
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open("#tab=locks&top=0", { viewport: { width: 860, height: 600 } });
        await rowsWhenThere(page);
        const scroll = (wanted) =>
            page.evaluate((to) => {
                const all = [...document.querySelectorAll(".panel, .list")];
                for (const box of to ? all : []) [box.scrollLeft, box.scrollTop] = to;
                const row = document.querySelector(".table tbody tr").getBoundingClientRect();
                const panel = document.querySelector(".panel").getBoundingClientRect();
                return [row.left - panel.left, row.top - panel.top].map(Math.round);
            }, wanted);
        const home = await scroll([0, 0]);
        const before = await scroll([60, 20]);
        equal(before, [home[0] - 60, home[1] - 20], "scrolled");
        await page
            .locator(".table tbody tr")
            .first()
            .click({ position: { x: 200, y: 8 } });
        await page.waitForSelector(".beside .details h2");
        await idle(page);
        const after = await scroll(null);
        /* Scrolling rounds to pixels of the screen. */
        ok(
            after.every((at, i) => Math.abs(at - before[i]) <= 1),
            `after the click: ${after}, not ${before}`,
        );
    });
});

test("on a phone the cards are one button away from the lanes, and back", async () => {
    await serving(example("shop-c"), async (open) => {
        const phone = await open("", { viewport: { width: 390, height: 844 } });
        const overview = phone.getByRole("button", { name: "Overview", exact: true });
        await overview.waitFor();
        equal(await overview.getAttribute("aria-pressed"), "false", "folded");
        await phone.locator("canvas.rows").waitFor();
        await idle(phone);
        const { top, bottom } = await phone.evaluate(() =>
            document.querySelector("canvas.rows").getBoundingClientRect().toJSON(),
        );
        ok(top >= 0 && Math.min(bottom, 844) - top >= 5 * 22, `lanes from ${top} to ${bottom}`);
        await overview.click();
        await phone.locator(".card").first().waitFor();
        equal(await fragment(phone, "top"), "1", "in the address");
        await overview.click();
        await phone.locator("canvas.rows").waitFor();
        equal(await fragment(phone, "top"), null, "as at first");
        const desk = await open("");
        await desk.locator(".card").first().waitFor();
    });
});

test("only panels that have something to show have a tab, and only columns with texts are shown", async () => {
    const tabs = async (page) => {
        await idle(page);
        return page.getByRole("tab").allTextContents();
    };
    const has = async (page, name) => (await tabs(page)).some((text) => text.startsWith(name));
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=threads");
        equal(await has(page, "MMU"), false, "MMU of a C program");
        equal(await has(page, "GC"), false, "its garbage collections");
        const tables = await page.getByLabel("Table of").locator("option").allTextContents();
        equal(tables, ["threads", "CPU slots"], "tables of a C program");
        equal(await has(await open("#tab=span"), "Range"), false, "a range without a selection");
        equal(await has(await open("#tab=range&r=0-1000000"), "Range"), true, "a range");
        const wide = await open("", { viewport: { width: 1680, height: 1000 } });
        await until("its panels", () => has(wide, "Data"));
        equal(await has(wide, "Selection"), false, "beside the column of the selection");
        const rows = await open("#tab=locks").then(rowsWhenThere);
        const titles = Object.keys(rows[0]);
        equal([titles.includes("taken in"), titles.includes("woken in")], [true, false], "columns");
    });
    await serving(example("load-go1.23"), async (open) => {
        equal(await has(await open("#tab=heat"), "MMU"), true, "MMU of a Go program");
    });
});

test("no time of the ruler is cut at the right edge", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#all=");
        const dark = await page.evaluate((wanted) => {
            const canvas = document.querySelector("canvas.head");
            const { data } = canvas
                .getContext("2d")
                .getImageData(canvas.width - 8, 0, 8, canvas.height);
            const isIt = (i) => wanted.every((part, k) => Math.abs(data[i + k] - part) < 60);
            return [...data.keys()].filter((i) => i % 4 === 0 && isIt(i)).length;
        }, color("text"));
        equal(dark, 0, "pixels of a text");
    });
});

test("at 1280 pixels cards and figures are in view, and their titles have what is cut", async () => {
    for (const name of ["load-go1.23", "shop-c", "shop-go-stuck"]) {
        const { tiles, findings } = runJson("summary", example(name));
        await serving(example(name), async (open) => {
            const page = await open("", { viewport: { width: 1280, height: 800 } });
            await page.locator(".tile").first().waitFor();
            const overview = page.locator(".overview");
            const heights = await overview.evaluate((of) => [of.scrollHeight, of.clientHeight]);
            equal(heights[0], heights[1], "nothing is below the overview's edge");
            const outside = await overview.evaluate((of) => {
                const { right } = of.getBoundingClientRect();
                return [...of.querySelectorAll("button, .card")].filter(
                    (one) => one.getBoundingClientRect().right > right,
                ).length;
            });
            equal(outside, 0, "beyond its right edge");
            /* The fourth line is the reason's. */
            const cut = await page
                .locator(".card h2")
                .evaluateAll((all) =>
                    all
                        .filter((of) => of.scrollHeight > of.clientHeight + 1)
                        .map((of) => Math.round(of.clientHeight / 16)),
                );
            equal(
                cut.filter((lines) => lines !== 3),
                [],
                "lines of headings that are cut",
            );
            const titles = (of) =>
                page.locator(of).evaluateAll((all) => all.map((one) => one.title));
            const notes = tiles.map(({ note }) => withSign(note));
            ok(
                (await titles(".tile")).every((title) => notes.includes(title)),
                "whole notes",
            );
            equal(
                await titles(".card"),
                findings.slice(0, 3).map(({ text }) => withSign(text)),
                "whole texts",
            );
        });
    }
});

test("findings fold beside an open panel, and their tab leads to all of them", async () => {
    for (const name of ["shop-go-stuck", "shop-c"]) {
        const { findings } = runJson("summary", example(name));
        await serving(example(name), async (open) => {
            const page = await open("", { viewport: { width: 1280, height: 800 } });
            await page.locator(".card").first().waitFor();
            await openTab(page, "Latency");
            await page.locator(".chip").first().waitFor();
            equal(await page.locator(".card").count(), 0, "no room for both");
            equal(await page.locator(".chip").count(), Math.min(3, findings.length), "chips");
            const tab = page.getByRole("tab", { name: "Findings", exact: true });
            ok((await tab.textContent()).includes(String(findings.length)), "how many");
            equal(await complaints(page), [], "axe");
            await tab.click();
            await until("all of them", async () => {
                const shown = await page.locator(".panel .findings li").allTextContents();
                return shown.length === findings.length;
            });
        });
    }
});

/* The number of pixels of the lanes in the colour of the critical path. */
function pathPixels(page) {
    return page.evaluate(
        ([left, wanted]) => {
            const canvas = document.querySelector("canvas.rows");
            const { data } = canvas.getContext("2d").getImageData(left, 0, 1000, canvas.height);
            const isIt = (i) => wanted.every((part, k) => data[4 * i + k] === part);
            /* In runs to the right or down that are longer than any stroke of a letter. */
            let found = 0;
            const count = (lines, length, place, least) => {
                for (let line = 0; line < lines; line++)
                    for (let at = 0, run = 0; at < length; at++) {
                        run = isIt(place(line, at)) ? run + 1 : 0;
                        if (run >= least) found++;
                    }
            };
            count(canvas.height, 1000, (y, x) => y * 1000 + x, 9);
            count(1000, canvas.height, (x, y) => y * 1000 + x, 20);
            return found;
        },
        [LABELS, color("critical")],
    );
}

test("the critical path of a task, region, goroutine and window: whose, in time order, over the lanes", async () => {
    const path = example("load-go1.23");
    const { regions } = runJson("regions", path);
    const third = regions.filter(({ name }) => name === regions[0].name)[2];
    await serving(path, async (open) => {
        const page = await open("", { colorScheme: "light" });
        const check = async (title, ...options) => {
            const wanted = runJson("why", ...options, path);
            const heading = page.locator(".panel h2", { hasText: "Critical path of" });
            await until(title, async () => (await heading.textContent()).includes(title));
            const segments = wanted.segments.map(({ begin_ns, end_ns }) => [
                begin_ns - wanted.origin_ns,
                end_ns - begin_ns,
            ]);
            equal(
                (await rowsOf(page)).map((row) => [Number(row.at), Number(row.duration)]),
                segments.sort((a, b) => a[0] - b[0]).slice(0, 200),
                title,
            );
            await until("it is drawn", async () => (await pathPixels(page)) > 20);
            return wanted;
        };

        const why = (row) => row.getByRole("button", { name: "Why?" }).click();
        equal(await pathPixels(page), 0, "nothing is drawn before");
        await openTab(page, "Tasks and regions");
        await page.locator(".table tbody tr").first().click();
        const task = /task=(\d+)/.exec(await fragment(page, "why"))[1];
        await openTab(page, "Critical path");
        const of = await check(`task ${task} round, which ended in G1 `, `--task=${task}`);
        equal(of.goroutine, 1, "the goroutine that ended it");
        await openTab(page, "Tasks and regions");
        await page.getByLabel(/^Kind/).selectOption(`region ${third.name}`);
        await page
            .locator(`.table tbody tr:has(td[data-value="${third.end_ns - third.start_ns}"])`)
            .first()
            .click();
        await openTab(page, "Critical path");
        const found = await check(`region ${third.name}#3`, `--region=${third.name}#3`);
        equal([found.begin_ns, found.end_ns], [third.start_ns, third.end_ns], "that region");
        await page.keyboard.press("Escape");
        await openTab(page, "Goroutines");
        await why(page.locator('.table tbody tr:has(td:first-child[data-value="36"])'));
        await check("Critical path of G36", "--goroutine=36");
        await idle(page);
        await page.evaluate(() => {
            location.hash = "r=5000000-9000000&tab=range";
        });
        await page.getByRole("button", { name: "Critical path of it" }).click();
        await check("the selected range", "--window", "--from=5000000ns", "--to=9000000ns");
    });
});

/* The waits for a lock from the command line, in ns since the first event. */
function waitsFor(path, pattern, fits = () => true) {
    const { hits, origin_ns } = runJson("find", "--limit=0", path, pattern);
    return hits
        .filter(({ steps: [step] }) => fits(step))
        .map(({ begin_ns, end_ns, goroutine }) => ({
            from: begin_ns - origin_ns,
            to: end_ns - origin_ns,
            goroutine,
        }));
}

test("a lock over time: how many waited, who held it, and what was so at a moment", async () => {
    const path = example("shop-c");
    const lock = runJson("locks", path).locks.find(({ name }) => name === "cache_mu");
    const waits = waitsFor(path, "block[mutex cache_mu]");
    equal(waits.length, lock.waits, "as many waits");
    const waiting = (at) => waits.filter(({ from, to }) => from <= at && at < to);
    const most = Math.max(...waits.map(({ from }) => waiting(from).length));
    await serving(path, async (open) => {
        const page = await open("#tab=locks", { colorScheme: "light" });
        await page.locator(".table tbody tr", { hasText: "cache_mu" }).click();
        const picture = page.locator(".lock-time");
        await until(
            "the holds",
            async () => (await picture.locator(".region:not(.wait-bar)").count()) > 0,
        );
        /* As the source has it: flush sleeps while it holds the lock. */
        const text = await picture.locator("p").first().textContent();
        ok(new RegExp(`^At .* ${most} wait: .*; held by thread 3 flush for`).test(text), text);
        equal(await picture.locator(".region:not(.wait-bar)").count(), lock.holds, "holds");
        equal(
            (
                await picture
                    .locator(".wait-bar")
                    .evaluateAll((all) => all.map((bar) => bar.title.split(",")[0]))
            ).length,
            waits.length,
            "a bar for each wait",
        );
        const rows = await picture
            .locator("li[data-goroutine]")
            .evaluateAll((all) =>
                all.map((li) => [
                    Number(li.dataset.goroutine),
                    li.querySelectorAll(".wait-bar").length,
                ]),
            );
        const wanted = new Map();
        for (const { goroutine } of waits) wanted.set(goroutine, (wanted.get(goroutine) ?? 0) + 1);
        equal(rows.sort(), [...wanted].sort(), "by thread");
        /* The moment under the pointer: in the middle of the last wait. */
        const last = waits.reduce((a, b) => (b.from > a.from ? b : a));
        await picture.locator(`[data-goroutine="${last.goroutine}"] .wait-bar`).last().hover();
        const middle = (last.from + last.to) / 2;
        await until("that moment", async () => {
            const [, count] = /(\d+) waits?:/.exec(
                await picture.locator("p").first().textContent(),
            );
            return Number(count) === waiting(middle).length;
        });
        await picture.locator(".wait-bar").first().click();
        await until("its span", async () =>
            /waiting for mutex cache_mu/.test(await page.textContent(".beside")),
        );
        equal(await picture.count(), 1, "the picture stays");
    });
});

test("a lock that another goroutine has released was held by the one that took it", async () => {
    const text = readFileSync(join(root, "tests/data/locks-1.26.txt"), "utf8");
    const path = assembled("taken", text.replace("mutex b_mu 140ns", "mutex b_mu 140ns by 1"));
    await serving(path, async (open) => {
        const page = await open("#tab=locks");
        await page.locator(".table tbody tr", { hasText: "b_mu" }).click();
        const bars = page.locator(".lock-time .region:not(.wait-bar)");
        await until("both holds", async () => (await bars.count()) === 2);
        const holders = await bars.evaluateAll((all) => all.map((bar) => bar.textContent));
        equal(holders, ["G1 main", "G2 two"]);
    });
});

test("a lock that is held when the trace ends has its holder from where the trace shows it, to the end", async () => {
    const path = example("shop-c-stuck");
    const { holder } = runJson("locks", path).locks.find(({ name }) => name === "log_mu");
    const line = String(execFileSync(trail, ["print", path]))
        .split("\n")
        .find((one) => one.includes('log holds: "mutex log_mu"'));
    const since = Math.round(1e9 * Number(line.trim().split(" ")[0]));
    await serving(path, async (open, ask) => {
        const page = await open("#tab=locks");
        await page.locator(".table tbody tr", { hasText: "log_mu" }).click();
        const bar = page.locator(".lock-time .region:not(.wait-bar)");
        await until("its hold", async () => (await bar.count()) === 1);
        equal(await bar.textContent(), `thread ${holder} work`, "the holder");
        await bar.click();
        const window = await page.evaluate(() => location.hash);
        const text = await page.textContent(".lock-time p");
        ok(/held by thread 4 work for [\d.]+ ms at least\.$/.test(text), text);
        const [from, to] = /w=(\d+)-(\d+)/.exec(window).slice(1).map(Number);
        const { end } = await ask("status");
        ok(from <= since && to === end, `${window}, not from ${since} to ${end}`);
    });
});

test("of more holds than are shown no holder is inferred for the others", async () => {
    const path = example("shop-c");
    await serving(path, async (open) => {
        const page = await open("#tab=locks");
        await page.route("**/api/find?*", async (route) => {
            const answer = await (await route.fetch()).json();
            await route.fulfill({ json: { results: [], more: answer.results.length > 0 } });
        });
        await page.locator(".table tbody tr", { hasText: "cache_mu" }).click();
        const warning = page.locator(".lock-time .warn");
        await warning.waitFor();
        const said = await warning.textContent();
        ok(/^Of very many holds those that end from .* are shown/.test(said), said);
        const text = await page.textContent(".lock-time p");
        ok(/ wait: /.test(text) && !/held|inferred/.test(text), text);
        await page.unrouteAll({ behavior: "wait" });
    });
});

test("a lane that is scrolled to has whole rows above it", async () => {
    const path = generated("rows", "--goroutines=200", "--events=20K", "--procs=2");
    await serving(path, async (open, ask) => {
        const page = await open("#g=none");
        const { rows, columns } = await ask("lanes?kind=goroutine&count=1000");
        await page.keyboard.press("/");
        await page.keyboard.type(`G${rows[rows.length >> 1][columns.indexOf("id")]}`);
        await page.keyboard.press("Enter");
        const y = await until("the lane", async () => Number(await fragment(page, "y")));
        equal(y % measure("lane-height"), 0, `${y}: what is cut of the first row`);
    });
});

test("rows stay in view when there are fewer of them", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#y=100000");
        const top = () =>
            page.evaluate(() => Number(new URLSearchParams(location.hash.slice(1)).get("y")));
        const last = await until("the last ones", async () => {
            const now = await top();
            return now < 100000 && now;
        });
        ok(last > 0, "more rows than fit");
        await page.keyboard.press("2");
        await until("the slots are in view", async () => (await top()) === 0);
    });
});

/*
 * Where the rail below the states of a lane has the colour of a hold (solid or hollow bars), as a list of whether it is, for times. The
 * lanes are not grouped.
 */
function heldAt(page, lane, times) {
    return page.evaluate(
        ([number, wanted, labels, height, hold]) => {
            const [from, to] = new URLSearchParams(location.hash.slice(1)).get("w").split("-");
            const of = document.querySelector("canvas.rows");
            const inner = of.width - labels;
            return wanted.map((at) => {
                const x = labels + ((at - from) / (to - from)) * inner;
                /* The first row of the rail, which has the outline of hollow bars, too. */
                const y = number * height + 2 + (height - 9);
                const { data } = of.getContext("2d").getImageData(Math.round(x), y, 1, 1);
                return hold.every((part, k) => Math.abs(data[k] - part) < 40);
            });
        },
        [lane, times, LABELS, measure("lane-height"), color("hold")],
    );
}

async function openLock(open, name) {
    const page = await open("#tab=locks&g=none&top=0", {
        colorScheme: "light",
        viewport: { width: 1280, height: 1000 },
    });
    await page.locator(".table tbody tr", { hasText: name }).first().click();
    await page.locator(".swatch.held").waitFor();
    await page.keyboard.press("0");
    await idle(page);
    return page;
}

test("the holders of the finding's lock are back when another lock is not looked at any more", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("");
        const legend = page.locator(".legend:has(.swatch.held)");
        const says = (lock) => async () => (await legend.allTextContents()).join().includes(lock);
        await until("the finding's", says("holds mutex cache_mu"));
        await openTab(page, "Locks");
        await page.locator(".table tbody tr", { hasText: "queue_mu" }).first().click();
        await until("the other one's", says("holds mutex queue_mu"));
        await openTab(page, "Notes");
        await until("the finding's again", says("holds mutex cache_mu"));
    });
});

test("the holders of a lock are bars on their lanes: those that were recorded", async () => {
    const path = example("shop-c");
    /* Logs of the recording: when a hold ended, in seconds, and how long it was. */
    const holds = String(execFileSync(trail, ["print", path]))
        .split("\n")
        .flatMap((line) => {
            const [, at, id, ms] =
                /^ +([\d.]+) +thread (\d+) .*held: "mutex cache_mu ~?([\d.]+)ms"/.exec(line) ?? [];
            return at ? [{ at: Number(at) * 1e9, id: Number(id), ns: Number(ms) * 1e6 }] : [];
        });
    const lock = runJson("locks", path).locks.find(({ name }) => name === "cache_mu");
    equal(holds.length, lock.holds, "as many holds as the command has");
    await serving(path, async (open, ask) => {
        const page = await openLock(open, "cache_mu");
        const { rows } = await ask("lanes?count=20");
        for (const [lane, id] of rows) {
            const own = holds.filter((hold) => hold.id === id && hold.ns > 5e5);
            const middles = own.map(({ at, ns }) => at - ns / 2);
            ok((await heldAt(page, lane, middles)).every(Boolean), `thread ${id} holds it`);
            const isHeld = (time) =>
                own.some(({ at, ns }) => time > at - ns - 4e5 && time < at + 4e5);
            const before = own.map(({ at, ns }) => at - ns - 5e5);
            const free = before.filter((time) => time > 0 && !isHeld(time));
            ok(free.length > 0 || own.length === 0, `moments without, of thread ${id}`);
            ok(!(await heldAt(page, lane, free)).some(Boolean), `thread ${id} did not yet`);
        }
        await openTab(page, "Notes");
        await idle(page);
        equal(await page.locator(".swatch.held").count(), 0, "gone with the lock");
    });
});

test("the holders of a Go lock are hollow bars on their lanes: who ends the first of the waits", async () => {
    const path = example("shop-go");
    const { hits, origin_ns } = runJson("find", "--limit=0", "--stacks", path, "block[sync*]");
    const [lock] = runJson("locks", path).locks;
    const begins = (stack, top = []) =>
        top.every(
            ({ function: name, line }, i) => stack[i]?.function === name && stack[i].line === line,
        );
    const waits = hits
        .filter(({ steps: [step] }) => step.waker !== undefined)
        .filter(({ steps: [step] }) => begins(step.stack, lock.waited))
        .filter(({ steps: [step] }) => begins(step.waker_stack, lock.woken))
        .map(({ begin_ns, end_ns, steps: [step] }) => ({
            from: begin_ns - origin_ns,
            to: end_ns - origin_ns,
            waker: step.waker,
        }));
    await serving(path, async (open, ask) => {
        const page = await openLock(open, lock.name);
        const legend = page.locator(".legend");
        ok((await legend.textContent()).includes("holds it (inferred)"), "it is said");
        const isCut = await legend.evaluate((of) =>
            [...of.children].some((one) => {
                const [its, all] = [one.getBoundingClientRect(), of.getBoundingClientRect()];
                return its.right > all.right || its.bottom > all.bottom + 1;
            }),
        );
        equal(isCut, false, "it is said in full");
        equal(await complaints(page), [], "axe");
        const { rows } = await ask("lanes?count=200");
        let seen = 0;
        for (const { to, waker } of waits.filter(({ from, to }) => to - from > 1e6)) {
            const at = to - 2e5;
            const others = waits.filter((of) => of.from <= at && at < of.to && of.to < to);
            const lane = rows.find((row) => row[1] === waker)?.[0];
            if (others.length > 0 || lane === undefined || lane > 12) continue;
            seen++;
            equal(await heldAt(page, lane, [at]), [true], `G${waker} at ${at}`);
        }
        ok(seen > 0, `${seen} waits were looked at`);
    });
});

test("a lock of a Go trace: its holder is said to be inferred", async () => {
    const path = example("shop-go");
    const { locks } = runJson("locks", path);
    /* One mutex is one row, whoever releases it: as the source has it, these lock it in two lines. */
    const fits = (of) => (step) => step.stack[1]?.line === of.waited[1].line;
    const mutexes = locks.filter((of) => of.can_be_held);
    equal(mutexes.map((of) => of.waited[1].line).sort(), [43, 71], "lines that lock");
    await serving(path, async (open) => {
        const page = await open("#tab=locks", { colorScheme: "light" });
        for (const lock of mutexes) {
            await page.locator(".table tbody tr").nth(locks.indexOf(lock)).click();
            const picture = page.locator(".lock-time");
            await until(
                "its waits",
                async () => (await picture.locator(".wait-bar").count()) === lock.waits,
            );
            equal(
                waitsFor(path, "block[sync*]", fits(lock)).length,
                lock.waits,
                "as the command has them",
            );
            const text = await picture.locator("p").first().textContent();
            ok(/which held it, as is inferred/.test(text), text);
        }
    });
});

/* The rows of the table with this name, as rowsOf has them. */
async function tableOf(page, name) {
    const table = page.getByRole("table", { name });
    const titles = (await table.locator("thead th").allInnerTexts()).map((text) =>
        text.replace(/ [▲▼]$/, ""),
    );
    const rows = await table
        .locator("tbody tr")
        .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.dataset.value)));
    return rows.map((row) => Object.fromEntries(row.map((text, i) => [titles[i], text])));
}

/* How long a task took, and where that went, from the command line: by state, in what, of which start function. */
function sumsOf(path, id) {
    const { segments } = runJson("why", `--task=${id}`, path);
    const sums = new Map();
    for (const of of segments) {
        const what = of.wait_kind ? [of.wait_kind, of.object] : [of.reason];
        const waits = of.state === "blocked" && what[0];
        const state = waits
            ? `waiting: ${what.filter(Boolean).join(" ")}`
            : ({ syscall: "syscall", blocked: "waiting" }[of.state] ?? of.state);
        const key = `${state}, ${of.function}, ${of.group}`;
        sums.set(key, (sums.get(key) ?? 0) + of.end_ns - of.begin_ns);
    }
    return sums;
}

test("a task over time beside the median one: what took part, where the time went, slower and faster", async () => {
    const path = example("shop-c");
    const { tasks, origin_ns } = runJson("tasks", path);
    const { regions } = runJson("regions", path);
    const length = ({ start_ns, end_ns }) => end_ns - start_ns;
    const slowest = [...tasks].sort((a, b) => length(b) - length(a));
    const [of, median] = [slowest[0], slowest[tasks.length / 2]];
    await serving(path, async (open) => {
        const page = await open("#tab=requests", { colorScheme: "light" });
        await page.getByRole("table", { name: "task request" }).waitFor();
        equal(
            (await tableOf(page, "task request")).map(({ task, duration, regions, logs }) =>
                [task, duration, regions, logs].map(Number),
            ),
            slowest.map((one) => [one.id, length(one), one.region_count, one.logs.length]),
            "all of them",
        );
        await page.locator(".table tbody tr").first().click();
        const wheres = page.getByRole("table", { name: "where the time went" });
        await until("compared", async () => /median/.test(await wheres.textContent()));
        ok(
            (await page.textContent(".request h2")).startsWith(
                `task ${of.id} request: 39.7 ms, 4.4×`,
            ),
            await page.textContent(".request h2"),
        );
        equal(
            (await fragment(page, "r")).split("-").map(Number),
            [of.start_ns - origin_ns, of.end_ns - origin_ns],
            "its range",
        );
        /* Those on its path and of its regions, and for each region a bar. */
        const { segments } = runJson("why", `--task=${of.id}`, path);
        const taking = new Set([...segments.map((one) => one.goroutine), ...of.goroutines]);
        const fall = page.locator(".waterfall").first();
        equal(
            (
                await fall
                    .locator("li")
                    .evaluateAll((all) => all.map((li) => Number(li.dataset.goroutine)))
            ).sort(),
            [...taking].sort(),
            "those that took part",
        );
        const mine = regions.filter(({ task }) => task === of.id);
        const bars = await fall
            .locator(".region")
            .evaluateAll((all) =>
                all.map((bar) => [
                    bar.textContent,
                    bar.getBoundingClientRect().width /
                        bar.parentElement.getBoundingClientRect().width,
                ]),
            );
        equal(
            bars.map(([name]) => name),
            mine.map(({ name }) => name),
            "its regions",
        );
        for (const [i, [name, share]] of bars.entries())
            ok(Math.abs(share - mine[i].total_ns / length(of)) < 0.01, `${name} has ${share}`);
        const strip = fall.locator("[data-goroutine='3'] canvas");
        const seen = await until("states are drawn", () =>
            strip.evaluate((canvas) =>
                canvas
                    .getContext("2d")
                    .getImageData(0, 0, canvas.width, 1)
                    .data.some((byte) => byte !== 0),
            ),
        );
        ok(seen, "states");
        const [mineSums, others] = [sumsOf(path, of.id), sumsOf(path, median.id)];
        const keys = [...new Set([...mineSums.keys(), ...others.keys()])].sort();
        const shown = (await tableOf(page, "where the time went")).map((row) => [
            `${row.state}, ${row.in}, ${row["thread of"]}`,
            Number(row.time),
            Number(row.median),
            Number(row["more than the median"]),
        ]);
        equal(
            shown.sort((a, b) => (a[0] < b[0] ? -1 : 1)),
            keys.map((key) => {
                const [a, b] = [mineSums.get(key) ?? 0, others.get(key) ?? 0];
                return [key, a, b, a - b];
            }),
            "where the time went",
        );
        equal(
            (await tableOf(page, "logs")).map(({ message }) => message),
            of.logs.map(({ message }) => message),
            "its logs",
        );
        await page.getByRole("button", { name: "Faster" }).click();
        await until(
            "the next one",
            async () => (await fragment(page, "why")) === `task=${slowest[1].id}`,
        );
        await page.getByRole("button", { name: "Slower" }).click();
        await until("it again", async () => (await fragment(page, "why")) === `task=${of.id}`);
        await page.getByRole("button", { name: "Beside the median" }).click();
        await until("alone", async () => (await page.locator(".waterfall").count()) === 1);
        await page.locator(".histogram button:not(:disabled)").last().click();
        await until("those of the bar", async () => {
            const rows = await tableOf(page, "task request");
            return rows.length === 1 && Number(rows[0].task) === of.id;
        });
    });
});

test("of very many tasks and regions the slowest of a name are requested, with the median of all", async () => {
    const path = generated("requests", "--size=19M");
    const { tasks, origin_ns } = runJson("tasks", path);
    const { regions } = runJson("regions", path);
    await serving(path, async (open, ask) => {
        const { end, bars: many } = await ask("status");
        ok(many.tasks + many.regions > 20000, `${many.tasks} and ${many.regions}`);
        const length = ({ start_ns, end_ns }) =>
            (end_ns ? end_ns - origin_ns : end) - (start_ns ? start_ns - origin_ns : 0);
        const slowestOf = (all, name) =>
            all.filter((one) => one.name === name).sort((a, b) => length(b) - length(a));
        const page = await open("#tab=requests");
        const choice = page.getByLabel(/^Kind/);
        const shownText = () => page.locator(".panel").textContent();
        for (const [command, all, isComplete] of [
            ["task", tasks, ({ complete }) => complete],
            ["region", regions, ({ start_ns, end_ns }) => start_ns && end_ns],
        ]) {
            const [{ name }] = all.filter((one) => one.name);
            const slowest = slowestOf(all, name);
            const complete = slowest.filter(isComplete);
            const median = complete[Math.floor(complete.length / 2)];
            await choice.selectOption(`${command} ${name}`);
            const table = `${command} ${name}`;
            await page.getByRole("table", { name: table }).waitFor();
            equal(
                (await tableOf(page, table)).slice(0, 20).map((row) => Number(row.duration)),
                slowest.slice(0, 20).map(length),
                `the slowest of ${table}`,
            );
            equal(
                Number((await tableOf(page, table))[0]["to the median"]),
                length(slowest[0]) / length(median),
                "to the median of all",
            );
            const text = await shownText();
            ok(text.includes(`${slowest.length.toLocaleString("en")}; median`), text.slice(0, 400));
            /* The fastest, which are not among the slowest, come with the bar. */
            await page.locator(".histogram button:not(:disabled)").first().click();
            const fastest = await until("those of the bar", async () => {
                const rows = await tableOf(page, table);
                return rows.length < slowest.length && rows.map((row) => Number(row.duration));
            });
            ok(fastest.includes(length(complete.at(-1))), `${fastest} without the fastest`);
            await page.getByRole("button", { name: "All", exact: true }).click();
            const last = slowest.at(-1);
            const number = String(command === "task" ? last.id : last.goroutine);
            const numbers = (one) =>
                command === "task" ? [one.id, ...one.goroutines] : [one.task, one.goroutine];
            const found = slowest.filter((one) => numbers(one).join(" ").includes(number)).length;
            ok(found > 0 && found < slowest.length, `${found} with ${number}`);
            const filter = page.getByLabel(`Filter the rows of ${table}`);
            await filter.fill(number);
            await until("those with the number", async () =>
                (await shownText()).includes(`The first ${found.toLocaleString("en")} of`),
            );
            await filter.fill("");
            await until(
                "all",
                async () =>
                    !(await shownText()).includes(`The first ${found.toLocaleString("en")} of`),
            );
        }
        /* A link to a task that no table shows yet. */
        const far = tasks.findLast(({ complete }) => complete);
        const other = await open(`#tab=requests&why=task%3D${far.id}`);
        await other.locator(".waterfall").first().waitFor();
        ok(
            (await other.textContent(".request h2")).startsWith(`task ${far.id} ${far.name}`),
            await other.textContent(".request h2"),
        );
        const bars = await other.locator(".waterfall").first().locator(".region").count();
        equal(bars, regions.filter(({ task }) => task === far.id).length, "its regions");
    });
});

test("tasks that have not ended are shown to the end of the trace", async () => {
    const path = example("shop-c-stuck");
    const { tasks } = runJson("tasks", path);
    const first = tasks.find(({ complete }) => !complete);
    await serving(path, async (open, ask) => {
        const { end } = await ask("status");
        const page = await open(`#tab=requests&why=task%3D${first.id}`);
        await page.locator(".waterfall li").first().waitFor();
        ok(/not all of it in the trace/.test(await page.textContent(".request h2")), "it says so");
        const row = (await tableOf(page, "task request")).find(
            ({ task }) => Number(task) === first.id,
        );
        equal(Number(row.duration), end - Number(row.at), "to the end");
    });
});

/* A task without a name, with a region "parse" of it. */
function nameless() {
    return ofOne(
        "nameless",
        `UserTaskBegin dt=100 task=10 parent_task=0 name_string=1 stack=0
UserRegionBegin dt=100 task=10 name_string=2 stack=0
UserRegionEnd dt=2000000 task=10 name_string=2 stack=0
UserTaskEnd dt=1000000 task=10 stack=0`,
        { 1: "", 2: "parse" },
    );
}

test("a task without a name leaves no hole in titles, nor does a region", async () => {
    await serving(nameless(), async (open, _, leave) => {
        for (const [why, title, group] of [
            ["task=10", "task 10: 3.00 ms", "task (1)"],
            ["region=parse#1", "region parse#1: 2.00 ms", "region parse (1)"],
        ]) {
            const page = await open(`#tab=requests&why=${encodeURIComponent(why)}`);
            equal(await page.textContent(".request h2"), title, "the heading");
            const chosen = page.getByLabel(/^Kind/).locator("option:checked");
            equal(await chosen.textContent(), group, "its name's group");
            const label = title.replace(/:.*/, " over time");
            await page.getByRole("list", { name: label, exact: true }).waitFor();
            await leave(page);
        }
    });
});

test("a file that is no trace says that and nothing else; a trace without goroutines says why", async () => {
    const text = join(folder, "letter.txt");
    writeFileSync(text, "Dear reader\n");
    await serving(text, async (open) => {
        const page = await open("#tab=summary", {}, "header");
        const shown = await until("why", () => page.textContent(".no-trace"));
        ok(/letter.txt cannot be opened\s*[A-Z].*not a Go execution trace\./.test(shown), shown);
        ok(
            /Open a trace of a Go program, or one that trail record has written\./.test(shown),
            shown,
        );
        for (const other of ["canvas", ".tabs", ".panel", ".banner", ".tools"])
            equal(await page.locator(other).count(), 0, other);
    });
    const cut = join(folder, "cut.trace");
    writeFileSync(cut, readFileSync(example("load-go1.23")).subarray(0, 60));
    await serving(cut, async (open) => {
        const page = await open("#tab=summary");
        const shown = await until("why", () =>
            page.textContent(".panel .empty", { timeout: 1000 }).catch(() => ""),
        );
        ok(/^No goroutine could be read: the trace is damaged after 2 events/.test(shown), shown);
        const banner = await page.textContent(".banner");
        equal(banner, "The trace is damaged: nothing of it can be shown.", "no time of it");
    });
});

/* Of two nameless regions, and of a goroutine that is created in a region with a name. */
function namelessRegions() {
    return ofOne(
        "nameless regions",
        `UserRegionBegin dt=100 task=0 name_string=2 stack=0
GoCreate dt=1000 new_g=2 new_stack=1 stack=0
UserRegionEnd dt=1999000 task=0 name_string=2 stack=0
UserRegionBegin dt=100 task=0 name_string=1 stack=0
UserRegionEnd dt=3000000 task=0 name_string=1 stack=0
UserRegionBegin dt=100 task=0 name_string=1 stack=0
UserRegionEnd dt=1000000 task=0 name_string=1 stack=0
GoBlock dt=100 reason_string=3 stack=0
GoStart dt=100 g=2 g_seq=1
GoDestroy dt=4000000`,
        { 1: "", 2: "parse", 3: "sleep", 4: "main.work" },
        `EventBatch gen=1 m=18446744073709551615 time=20000000 size=auto
Stacks
Stack id=1 nframes=1
\tpc=8192 func=4 file=4 line=7
`,
    );
}

test("regions without a name are a group of their own, by which each is found, as in the command", async () => {
    const path = namelessRegions();
    const { regions } = runJson("regions", path);
    const numbers = regions.filter(({ name }) => name === "").map((of) => of.number);
    equal(numbers.sort(), [0, 1, 2], "the goroutine that was created in a region has no number");
    /* From its creation to its end: 9.9994 ms, of which it ran 4. */
    const inherited = "goroutine 2, created in a region: 10.0 ms";
    await serving(path, async (open) => {
        const page = await open("#tab=requests");
        const group = page.getByLabel(/^Kind/);
        await group.waitFor();
        equal(
            await group.locator("option").allTextContents(),
            ["region parse (1)", "region (unknown) (3)"],
            "groups",
        );
        await group.selectOption("region (unknown)");
        const rows = page.getByRole("table", { name: "region (unknown)" }).locator("tbody tr");
        for (const [i, [title, why]] of [
            [inherited, "goroutine=2"],
            ["region (unknown)#1: 3.00 ms", "region=#1"],
            ["region (unknown)#2: 1.00 ms", "region=#2"],
        ].entries()) {
            await rows.nth(i).click();
            await until("it is chosen", async () => (await fragment(page, "why")) === why);
            const heading = await page.textContent(".request h2");
            ok(heading.startsWith(title), `${heading}, not ${title}`);
            await page.getByRole("table", { name: "where the time went" }).waitFor();
            const sums = (await tableOf(page, "where the time went")).map((row) =>
                Number(row.time),
            );
            equal(
                sums.reduce((a, b) => a + b, 0),
                regions
                    .filter(({ name }) => name === "")
                    .map(({ total_ns }) => total_ns)
                    .sort((a, b) => b - a)[i],
                "its path is as long as it",
            );
        }
    });
});

/* A trace that ends after its first generation has begun, without an event of a goroutine. */
function withoutEvents() {
    return assembled(
        "nothing ran",
        `Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EndOfGeneration
`,
    );
}

test("a trace in which nothing can be drawn says what was in the file, and what to do, in place of the lanes", async () => {
    const beginning = (name, size) => {
        const path = join(folder, `${name} of ${size}.trace`);
        writeFileSync(path, readFileSync(example(name)).subarray(0, size));
        return [path, name.replace("load-go", ""), `${size} B`, true];
    };
    const versions = ["1.19", "1.21", "1.22", "1.23"];
    const whole = withoutEvents();
    for (const [path, version, size, isCut] of [
        ...versions.map((version) => beginning(`load-go${version}`, 16)),
        beginning("load-go1.23", 60),
        [whole, "1.26", `${readFileSync(whole).length} B`, false],
    ])
        await serving(path, async (open, ask) => {
            const { events } = await ask("status");
            const page = await open("");
            const shown = await until("why", () => page.textContent(".no-trace"));
            for (const words of [
                `${path.split("/").pop()} has no goroutine to show`,
                `It has ${size} in the format of Go ${version}.`,
                events === 0
                    ? "No event follows the header."
                    : `${events} event${events === 1 ? "" : "s"} could be read, none of a goroutine.`,
                isCut ? "cut short" : "ended before anything ran",
                `trail check '${path}'`,
            ])
                ok(shown.includes(words), `${words} is not in: ${shown}`);
            equal(await page.locator("canvas").count(), 0, "no timeline");
            ok(!/\b1 events/.test(await page.textContent("header")), "one event");
            equal(await complaints(page), [], "axe");
        });
});

test("a bar of the histogram of latencies lists as many spans as it counts", async () => {
    await serving(generated("latency", "--goroutines=1000", "--events=60K"), async (open) => {
        const page = await open("#tab=latency");
        const bars = page.locator(".panel section", { hasText: "scheduling" }).first();
        const titles = await until("bars", async () => {
            const found = await bars
                .locator(".histogram button")
                .evaluateAll((all) => all.map((bar) => bar.title));
            return found.length > 0 && found;
        });
        const counts = titles.map((title) =>
            Number(/: ([\d,]+)$/.exec(title)[1].replaceAll(",", "")),
        );
        const most = Math.max(...counts);
        ok(most > 100 && most <= 10000, `${most} in the highest bar`);
        await bars.locator(".histogram button").nth(counts.indexOf(most)).click();
        const wanted = most.toLocaleString("en-US");
        await until(`${wanted} rows`, async () =>
            (await page.textContent(".panel")).includes(`${wanted} rows`),
        );
    });
});

test("a running span has the stack where it ended", async () => {
    await serving(example("load-go1.23"), async (open, ask) => {
        let found;
        for (let span = 0; span < 40 && !found; span++) {
            const one = await ask(`span?kind=goroutine&lane=0&span=${span}`);
            const next = await ask(`span?kind=goroutine&lane=0&span=${span + 1}`);
            if (one.state === "running" && one.stack.length === 0 && next.stack.length > 0)
                found = { one, next };
        }
        ok(found, "a running span without a stack where it began");
        const page = await open(`#sel=g0.${found.one.span}&tab=span`);
        const text = await until("its stack", async () => {
            const shown = await page.textContent(".panel");
            return shown.includes("Stack where it ended") && shown;
        });
        ok(text.includes(found.next.stack[0].function.split("/").pop()), text);
        ok(!text.includes("No stack is known"), text);
    });
});

/* Simulations of colour blindness: Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB. */
const blind = {
    protan: [
        0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998,
    ],
    deutan: [
        0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881,
    ],
    tritan: [
        1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039,
    ],
};

/* CIE L*a*b* of linear RGB (IEC 61966-2-1, white D65). */
function lab([r, g, b]) {
    const f = (t) => (t > 216 / 24389 ? Math.cbrt(t) : (841 / 108) * t + 4 / 29);
    const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
    const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
    const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function seenBy(matrix, rgb) {
    const linear = rgb.map((value) =>
        value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
    );
    const row = (i) =>
        matrix[i] * linear[0] + matrix[i + 1] * linear[1] + matrix[i + 2] * linear[2];
    return lab([0, 3, 6].map((i) => Math.min(1, Math.max(0, row(i)))));
}

test("states and classes of waits differ for the colour-blind", async () => {
    const kinds = [
        ["s-running", "s-ready", "s-syscall", "s-runtime", "s-stw"],
        ["s-lock", "s-cond", "s-io", "s-sleep"],
    ];
    for (const theme of ["light", "dark"])
        for (const [name, matrix] of Object.entries(blind))
            for (const kind of kinds)
                for (const one of kind)
                    for (const other of kind.slice(0, kind.indexOf(one))) {
                        const [a, b] = [one, other].map((of) => seenBy(matrix, color(of, theme)));
                        const apart = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
                        ok(
                            apart > 12,
                            `${theme}, ${name}: ${one} and ${other}: ${apart.toFixed(1)}`,
                        );
                    }
});

test("the legend has all signs; a phone scrolls down only", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#c=1");
        const legend = await page.textContent(".legend");
        for (const sign of [
            "stop-the-world",
            "GC",
            "only one goroutine running",
            "log",
            "region or task",
        ])
            ok(legend.includes(sign), `${sign} in ${legend}`);
        const phone = await open("#tab=goroutines", { viewport: { width: 375, height: 700 } });
        await rowsWhenThere(phone);
        equal(
            await phone.evaluate(() => [
                document.documentElement.scrollWidth,
                document.body.scrollWidth,
            ]),
            [375, 375],
            "width",
        );
    });
});

test("a trace of a C program has no words of Go: what threads wait for, stacks, signs, keys, bookmarks", async () => {
    const path = example("shop-c");
    /* "join 27.682 ms, condition variable 8 us": the most is first. */
    const mostOf = (line) => /([a-z][a-z -]*[a-z]) \d/.exec(line)?.[1];
    const lines = execFileSync(trail, ["threads", path], { encoding: "utf8" }).split("\n");
    await serving(path, async (open) => {
        const page = await open("#tab=functions");
        const rows = await rowsWhenThere(page);
        equal(rows.length, 4, "start functions");
        for (const row of rows) {
            const line = lines.find((one) => one.endsWith(`  ${row["start function"]}`));
            const what = mostOf(line.slice(lines[1].indexOf("waiting") + "waiting".length));
            equal(row["mostly for"], what, row["start function"]);
        }
        await openTab(page, "Threads");
        const threads = await until("threads", async () => {
            const found = await rowsOf(page);
            return found.length === 6 && found;
        });
        const found = new Set(threads.map((row) => row["mostly for"]));
        equal([...found].sort(), ["condition variable", "mutex", "sleep"], "mostly for");
        await openTab(page, "Latency");
        await page.locator(".columns h3").first().waitFor();
        equal(
            await page.locator(".columns h3").allTextContents(),
            ["Scheduling (ready until running)", "Locks, conditions, threads", "Syscalls"],
            "latencies",
        );
        await openTab(page, "Stacks");
        equal(
            (await page.getByLabel("Stacks of").locator("option").allTextContents()).slice(0, 2),
            ["waits for locks, conditions, threads", "waits for pipes, sockets, the network"],
            "stacks",
        );
        const legend = await page.textContent(".legend");
        ok(!/GC|stop-the-world/.test(legend), legend);
        await page.keyboard.press("?");
        const views = page.locator(".help section", {
            has: page.getByText("View", { exact: true }),
        });
        equal(
            (await views.locator("dd").allTextContents()).filter((text) => /^lanes by /.test(text)),
            ["lanes by thread", "lanes by CPU slot"],
            "lanes",
        );
        await page.keyboard.press("Escape");
        await page.keyboard.press("3");
        equal(await fragment(page, "v"), null, "no lanes beside those of threads");
        await page.keyboard.press("ArrowDown");
        await until("selected", () => fragment(page, "sel"));
        await page.keyboard.press("m");
        await openTab(page, "Notes");
        const note = await page.getByLabel("Note", { exact: true }).inputValue();
        ok(/ of thread [1-6]$/.test(note), note);
    });
});

/* Keeps the names of groups as they are drawn, and how far from the end of each the number of lanes begins, drawn before. */
function keepGroupNames() {
    const draw = CanvasRenderingContext2D.prototype.fillText;
    globalThis.groupNames = {};
    let next = 0;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
        if (/^\d+( goroutines?)?$/.test(text)) next = x;
        if (x === 8 && /^[▸▾] /.test(text))
            globalThis.groupNames[text] = next - x - this.measureText(text).width;
        draw.call(this, text, x, ...rest);
    };
}

test("groups are folded by commands, where there are groups; a long name is shortened in its middle", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#g=creator&tab=span", {}, ".facts", keepGroupNames);
        const names = () => page.evaluate(() => globalThis.groupNames);
        const drawn = Object.entries(
            await until("groups", async () => {
                const found = await names();
                return Object.keys(found).length > 1 && found;
            }),
        );
        ok(
            drawn.some(([text]) => /^▾ creat.*….*[a-z0-9]$/.test(text)),
            `no … in ${drawn}`,
        );
        for (const [text, room] of drawn) ok(room > 0, `${text} is ${-room} too long`);
        const command = async (words) => {
            await page.keyboard.press("/");
            await page.locator(".palette input:focus").waitFor();
            await page.keyboard.type(words);
            return page.locator(".palette [role=option]").allTextContents();
        };
        const found = await command("fold all");
        equal(found, ["group fold all groups", "group unfold all groups"], "commands");
        await page.keyboard.press("Enter");
        const folded = JSON.parse(await fragment(page, "fold"));
        ok(folded.length > 2, `${folded}`);
        await until("all are drawn as folded", async () => {
            const texts = Object.keys(await names()).filter((text) => text.startsWith("▸"));
            return texts.length === folded.length;
        });
        await command("unfold");
        await page.keyboard.press("Enter");
        equal(await fragment(page, "fold"), null, "none is folded");
        await page.getByLabel("group by").selectOption("none");
        await idle(page);
        equal(await command("fold all"), [], "without groups");
        for (const text of ["5us", "5 \u00b5s", "5\u03bcs"]) {
            await page.keyboard.press("Escape");
            const [first] = await command(text);
            ok(first?.endsWith("go to 5.000 µs"), `${text}: ${first}`);
        }
    });
});

test("all lanes are there, however many: more than a page of the server", async () => {
    const path = generated("lanes", "--format=1.23", "--goroutines=120000", "--events=800K");
    await serving(path, async (open, ask) => {
        const { goroutines } = await ask("status");
        ok(goroutines > 50000, `${goroutines} goroutines`);
        const { rows } = await ask(`lanes?kind=goroutine&first=${goroutines - 1}`);
        const page = await open(`#f=${rows[0][1]}&g=none&s=id`);
        /* The last lane, which is beyond the first page, can be selected. */
        await page.keyboard.press("ArrowDown");
        await until("it is selected", async () => (await fragment(page, "sel")) !== null);
        equal(await page.locator(".tools .warn").count(), 0, "warnings of missing lanes");
    });
});

test("what is typed last is shown, while very many lanes are put in order", async () => {
    const path = generated("typed", "--format=1.23", "--goroutines=120000", "--events=800K");
    await serving(path, async (open, ask) => {
        const rows = [];
        for (let all = 1; rows.length < all; ) {
            const answer = await ask(`lanes?kind=goroutine&first=${rows.length}`);
            all = answer.all;
            rows.push(...answer.rows);
        }
        const page = await open("#g=none&s=total");
        for (const word of ["17", "934"]) {
            const own = rows.filter((row) => String(row[1]).includes(word));
            const longest = own.reduce((a, b) => (b[4] - b[3] > a[4] - a[3] ? b : a));
            await page.getByLabel("Filter lanes").fill("");
            await page.getByLabel("Filter lanes").pressSequentially(word);
            await page.keyboard.press("Escape");
            await idle(page);
            await page.locator("canvas.rows").click({ position: { x: 100, y: 10 } });
            await until(`the longest of ${word}`, async () =>
                (await fragment(page, "sel"))?.startsWith(`g${longest[0]}.`),
            );
        }
    });
});

/* Keeps the addresses of requests, and each summary back until the status has been requested three times more. */
function slowSummary() {
    const real = globalThis.fetch;
    let polls = 0;
    globalThis.asked = [];
    globalThis.fetch = async (address, options) => {
        globalThis.asked.push(String(address));
        if (String(address).startsWith("api/status")) polls++;
        const enough = polls + 3;
        if (/command=summary/.test(address))
            while (polls < enough) await new Promise((resolve) => setTimeout(resolve, 20));
        return real(address, options);
    };
}

test("a slow analysis is requested once; regions and tasks only of lanes that are visible", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#f=main", {}, ".facts", slowSummary);
        const asked = (pattern) =>
            page.evaluate((of) => globalThis.asked.filter((one) => RegExp(of).test(one)), pattern);
        equal((await asked("command=summary")).length, 1, "requests");
        await page.getByLabel("Filter lanes").fill("no lane has this name");
        await page.keyboard.press("Escape");
        await page.keyboard.press("w");
        await idle(page);
        await page.keyboard.press("w");
        await idle(page);
        const bars = await asked("^api/bars.*kind=(region|task)");
        ok(bars.length > 0, "requests for bars of lanes");
        equal(
            bars.filter((one) => !/lanes=\d/.test(one)),
            [],
            "those for all lanes",
        );
    });
});

/* A script that keeps answers back, by their addresses, until globalThis.release() is called. */
function holding(held) {
    const hold = (pattern) => {
        const real = globalThis.fetch;
        const released = new Promise((resolve) => {
            globalThis.release = resolve;
        });
        globalThis.fetch = async (address, options) => {
            if (pattern.test(address)) {
                globalThis.isHeld = true;
                await released;
            }
            return real(address, options);
        };
    };
    return `(${hold})(${held})`;
}

test("an answer that arrives after a newer one is not shown", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#tab=functions", {}, ".facts", holding(/[?&]from=0&to=1000(&|$)/));
        const whole = await rowsWhenThere(page);
        const goTo = (text) =>
            page.evaluate((hash) => {
                location.hash = hash;
            }, text);
        await goTo("#tab=functions&r=0-1000&all=r");
        await until("it is requested", () => page.evaluate(() => globalThis.isHeld));
        await goTo("#tab=functions&all=r");
        equal(await rowsWhenThere(page), whole, "the rows of the whole trace");
        await page.evaluate(() => globalThis.release());
        await idle(page);
        /* The newer answer may still be under way: the rows before were those of the first one. */
        equal(await rowsWhenThere(page), whole, "the same rows");
    });
});

/* Delivers the event of a changed address late, as a busy browser does, once globalThis.isSlow is set. */
function slowEvents() {
    addEventListener("hashchange", (event) => {
        if (!globalThis.isSlow || event.isLate) return;
        event.stopImmediatePropagation();
        setTimeout(() => {
            const late = new HashChangeEvent("hashchange");
            late.isLate = true;
            dispatchEvent(late);
        }, 700);
    });
}

test("an address that is opened while the page writes its own is shown", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#tab=functions", {}, ".facts", `(${slowEvents})()`);
        for (const tab of ["locks", "latency"]) {
            await page.evaluate((other) => {
                globalThis.isSlow = true;
                location.hash = `#tab=${other}&all=ir`;
            }, tab);
            /* What the page writes meanwhile, since a row of the timeline is another one. */
            await page.keyboard.press("ArrowDown");
            await until("it is shown", async () => (await fragment(page, "tab")) === tab);
        }
    });
});

test("a tile leads to its goroutine also before the lanes are there", async () => {
    const path = example("load-go1.23");
    const longest = runJson("summary", path).tiles.find(({ key }) => key === "longest_ready_ns");
    const { server, url } = await serve([path]);
    const page = await openPage(url, {}, ".facts", holding(/api.lanes/));
    await until("the lanes are requested", () => page.evaluate(() => globalThis.isHeld));
    await openTab(page, "Summary");
    await page.locator('.tile[data-key="longest_ready_ns"]').first().click();
    await page.evaluate(() => globalThis.release());
    await until("its lane", async () =>
        (await page.textContent(".beside")).includes(`G${longest.goroutine} `),
    );
    await page.context().close();
    server.kill();
});

test("of very many goroutines the table has the first by a column, and says of how many", async () => {
    const path = generated("many", "--format=1.23", "--goroutines=60000", "--events=400K");
    const { goroutines } = runJson("goroutines", path);
    ok(goroutines.length > 20000, `${goroutines.length} goroutines`);
    await serving(path, async (open) => {
        const page = await open("#tab=goroutines");
        const about = page.locator(".list .about");
        const wanted = goroutines.length.toLocaleString("en-US");
        for (const [choice, column] of [
            [null, "total_ns"],
            ["exec", "exec_ns"],
            ["sched-wait", "sched_wait_ns"],
        ]) {
            await rowsWhenThere(page);
            if (choice) await about.getByLabel("by").selectOption(choice);
            const greatest = goroutines
                .map((row) => row[column])
                .sort((a, b) => b - a)
                .slice(0, 100);
            const title = { total_ns: "total", exec_ns: "running", sched_wait_ns: "ready" };
            await until(`sorted by ${column}`, async () => {
                const rows = await rowsOf(page);
                const first = rows.slice(0, 100).map((row) => Number(row[title[column]]));
                return JSON.stringify(first) === JSON.stringify(greatest);
            });
            ok((await about.textContent()).startsWith(`The first 10,000 of ${wanted}`), "how many");
        }
        await page.getByRole("button", { name: "Twice as many" }).click();
        await until("twice as many", async () =>
            (await about.textContent()).startsWith(`The first 20,000 of ${wanted}`),
        );
        /* One that is not among the first, with a long number, which few others contain. */
        const rest = [...goroutines].sort((a, b) => b.sched_wait_ns - a.sched_wait_ns).slice(20000);
        const last = rest.reduce((a, b) => (b.id > a.id ? b : a));
        const filter = page.getByLabel("Filter the rows of goroutines");
        for (const words of [`${last.id}`, `${last.id} -${last.name}`, "nobody of this name"]) {
            const [word, without] = words.split(" -");
            const found = goroutines.filter(
                ({ id, name }) =>
                    `${name} ${id}`.includes(word) && !(without && name.includes(without)),
            );
            await filter.fill(words);
            await until(`the table has ${words}`, async () => {
                const rows = await rowsOf(page, "goroutines");
                const ids = rows.map(({ goroutine }) => Number(goroutine));
                return (
                    JSON.stringify(ids.sort((a, b) => a - b)) ===
                    JSON.stringify(found.map(({ id }) => id).slice(0, 200))
                );
            });
        }
        await filter.fill("");
        await until("all again", async () =>
            (await about.textContent()).startsWith(`The first 20,000 of ${wanted}`),
        );
    });
});

test("of very many locks the filter finds words among all", async () => {
    const path = generated("locks", "--goroutines=4000", "--events=900K");
    const { all, locks } = runJson("locks", path);
    ok(all > 500, `${all} locks`);
    const functionsOf = (some) =>
        some.flatMap(({ waited, woken, waiters, held }) =>
            [waited, woken, ...[...waiters, ...held].map(({ stack }) => stack)]
                .flatMap((stack) => stack ?? [])
                .map((frame) => frame.function),
        );
    const ofFirst = functionsOf(locks.slice(0, 500)).join(" ").toLowerCase();
    const word = functionsOf(locks.slice(500)).find((of) => !ofFirst.includes(of.toLowerCase()));
    ok(word, "a function that the first locks do not have");
    const found = locks.filter((lock) => functionsOf([lock]).includes(word)).length;
    await serving(path, async (open) => {
        const page = await open("#tab=locks");
        await rowsWhenThere(page);
        const about = page.locator(".list .about", { hasText: "The first" });
        ok((await about.textContent()).startsWith("The first 500 of"), "how many");
        await page.getByLabel("Filter the rows of locks").fill(word);
        await until("those among all", async () =>
            (await about.textContent()).startsWith(`The first ${found} of ${found} `),
        );
        equal((await rowsOf(page, "locks")).length, found, "rows");
    });
});

test("W zooms about the pointer", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open();
        const [from, to] = (await fragment(page, "w")).split("-").map(Number);
        /* A fifth of the way into the lanes. */
        await page.mouse.move(LABELS + 210, 400);
        await page.keyboard.press("w");
        const [from1, to1] = (await fragment(page, "w")).split("-").map(Number);
        ok(to1 - from1 < 0.8 * (to - from), "zoomed in");
        const share = (from + 0.2 * (to - from) - from1) / (to1 - from1);
        ok(Math.abs(share - 0.2) < 0.002, `the time under the pointer moved to ${share}`);
    });
});

await main();
