// The page by hand: keys that are held, boxes, areas of lanes, merged spans, menus, widths of columns. Arguments: those of
// traces.mjs. Skipped without Chromium.
import { readFileSync } from "node:fs";
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
    openTab,
    runJson,
    saved,
    scheduler,
    test,
    until,
} from "./browser.mjs";
import {
    assembled,
    example,
    fragment,
    generated,
    rowsOf,
    rowsWhenThere,
    serving,
} from "./traces.mjs";

needBrowser();
/* Width of the column of names (geometry.ts), and height of a lane (lanes.ts). */
const LANE = measure("lane-height");

async function windowOf(page) {
    return (await fragment(page, "w")).split("-").map(Number);
}

/* The page's box of the lanes, and the time at a distance from its left. */
async function geometry(page) {
    const box = await page.locator("canvas.rows").boundingBox();
    const [from, to] = await windowOf(page);
    const timeAt = (x) => from + ((x - LABELS) / (box.width - LABELS)) * (to - from);
    return { box, timeAt, perPixel: (to - from) / (box.width - LABELS) };
}

async function drag(page, [x0, y0], [x1, y1], key) {
    if (key) await page.keyboard.down(key);
    await page.mouse.move(x0, y0);
    await page.mouse.down();
    await page.mouse.move((x0 + x1) / 2, (y0 + y1) / 2);
    await page.mouse.move(x1, y1);
    await page.mouse.up();
    if (key) await page.keyboard.up(key);
    await idle(page);
}

/* MARK: Keys that are held */

/* Each frame comes 12 ms after the one before, whatever the machine does. */
function evenFrames() {
    const real = window.requestAnimationFrame.bind(window);
    let last = 0;
    let now = 0;
    window.requestAnimationFrame = (run) =>
        real((time) => {
            if (time !== last) now += 12;
            last = time;
            run(now);
        });
}

/* Holds a key for a number of frames, with the repetitions of a keyboard. */
async function hold(page, key, frames) {
    await page.evaluate(
        async ([name, count]) => {
            const send = (type, repeat) =>
                dispatchEvent(new KeyboardEvent(type, { key: name, code: name, repeat }));
            send("keydown", false);
            for (let i = 0; i < count; i++) {
                await new Promise(requestAnimationFrame);
                if (i % 3 === 0) send("keydown", true);
            }
            send("keyup", false);
        },
        [key, frames],
    );
    await idle(page);
}

test("a held key moves the window evenly until it is released; a short press is one step", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#w=10000000-12000000", {}, ".facts", evenFrames);
        const [from, to] = await windowOf(page);
        const step = 0.2 * (to - from);
        await page.keyboard.press("d");
        const [after] = await windowOf(page);
        equal(after, from + step, "after a short press");
        /* The first frame is one of 60 in a second, the others are 12 ms each; a step takes 120 ms. */
        await hold(page, "d", 20);
        const [held, heldTo] = await windowOf(page);
        const steps = (1000 / 60 + 19 * 12) / 120;
        ok(Math.abs(held - after - steps * step) < 3, `${held - after}, not ${steps} steps`);
        ok(Math.abs(heldTo - held - (to - from)) < 3, "the length stays");
        await page.keyboard.press("u");
        await page.keyboard.press("u");
        equal(await windowOf(page), [from, to], "undone");
        await hold(page, "w", 20);
        const [zoomed, zoomedTo] = await windowOf(page);
        const share = (zoomedTo - zoomed) / (to - from);
        ok(Math.abs(share - 0.7 ** steps) < 1e-5, `zoomed to ${share}, not ${0.7 ** steps}`);
    });
});

test("a window that has come to rest is drawn at its own scale", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#w=10000000-12000000", {}, ".facts");
        const asked = new Map();
        page.on("request", (request) => {
            const [, name, query] = /\/api\/(\w+)\?(.*)/.exec(request.url()) ?? [];
            const its = new URLSearchParams(query);
            if (name === "picture" || its.get("to") - its.get("from") < 1e7) asked.set(name, its);
        });
        for (const key of ["w", "d"]) {
            await hold(page, key, 7);
            const [from, to] = await windowOf(page);
            const { width } = (await geometry(page)).box;
            for (const name of ["picture", "metrics"]) {
                const its = asked.get(name);
                const [first, last, pixels] = ["from", "to", "width"].map((of) =>
                    Number(its.get(of)),
                );
                ok(first < from && last > to, `${name}: all of the window`);
                const each = (pixels / (last - first)) * (to - from);
                ok(Math.abs(each - (width - LABELS)) < 1, `${name}: ${each} of ${width - LABELS}`);
            }
            const middle =
                (Number(asked.get("metrics").get("from")) +
                    Number(asked.get("metrics").get("to"))) /
                2;
            ok(Math.abs(middle - (from + to) / 2) < 3, "counters: around the window");
        }
    });
});

/* Each look at the clock takes longer than a frame may paint. */
function slowClock() {
    const real = performance.now.bind(performance);
    let looks = 0;
    performance.now = () => real() + 5 * looks++;
}

test("where painting is slow, all lanes have their new pictures in the end, and the page rests", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#w=10000000-12000000", {}, ".facts", slowClock);
        await hold(page, "w", 7);
        const image = () => page.evaluate(() => document.querySelector("canvas.rows").toDataURL());
        const moved = await image();
        const hash = await page.evaluate(() => location.hash);
        const other = await open(hash, {}, ".facts");
        await idle(other);
        const fresh = await other.evaluate(() => document.querySelector("canvas.rows").toDataURL());
        ok(moved === fresh, "the same as in a page that begins there");
    });
});

test("lanes of CPU slots have nothing of the lanes of threads that were there before", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#w=55000000-82000000");
        await page.getByRole("button", { name: "CPU slots", exact: true }).click();
        await idle(page);
        const fresh = await open(await page.evaluate(() => location.hash));
        await idle(fresh);
        const [switched, direct] = await Promise.all(
            [page, fresh].map((of) =>
                of.evaluate(() => document.querySelector("canvas.rows").toDataURL()),
            ),
        );
        ok(switched === direct, "the same as in a page that begins with them");
    });
});

test("two short presses in a row are two steps; with less motion wanted, a step is at once", async () => {
    await serving(example("load-go1.23"), async (open) => {
        for (const reducedMotion of ["no-preference", "reduce"]) {
            const page = await open("#w=10000000-12000000", { reducedMotion });
            const frames = await page.evaluate(() => {
                const send = (type) =>
                    dispatchEvent(new KeyboardEvent(type, { key: "a", code: "KeyA" }));
                for (let i = 0; i < 2; i++) for (const type of ["keydown", "keyup"]) send(type);
                return document.documentElement.matches("[data-moving]");
            });
            equal(frames, true, "it moves");
            equal(await windowOf(page), [9200000, 11200000], reducedMotion);
        }
    });
});

/* A colour as SVG has it. */
const hex = (name) =>
    `#${color(name)
        .map((part) => part.toString(16).padStart(2, "0"))
        .join("")}`;

/* MARK: Boxes and areas */

test("a drag with Ctrl zooms to the times of the box, and to its first lane", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#g=none&top=0");
        const { box, timeAt } = await geometry(page);
        const [x0, x1] = [LABELS + 300, LABELS + 700];
        const wanted = [timeAt(x0), timeAt(x1)].map(Math.round);
        const [top, bottom] = [box.y + 3 * LANE + 5, box.y + 9 * LANE];
        await drag(page, [box.x + x1, bottom], [box.x + x0, top], "Control");
        equal(await windowOf(page), wanted, "the times");
        equal(await fragment(page, "y"), String(3 * LANE), "the first lane is on top");
        await page.keyboard.press("u");
        const head = await page.locator("canvas.head").boundingBox();
        await drag(page, [head.x + x0, head.y + 20], [head.x + x1, head.y + 22], "Control");
        equal(await windowOf(page), wanted, "over the ruler");
        equal(await fragment(page, "r"), null, "no range is selected");
    });
});

for (const [name, noun] of [
    ["load-go1.23", "goroutines"],
    ["shop-c", "threads"],
])
    test(`${name}: a drag with Shift selects a range of the lanes that it touches`, async () => {
        await serving(example(name), async (open, ask) => {
            const page = await open("#g=none&top=0");
            const { box, timeAt } = await geometry(page);
            const [x0, x1] = [LABELS + 200, LABELS + 800];
            await drag(
                page,
                [box.x + x0, box.y + LANE + 8],
                [box.x + x1, box.y + 3 * LANE + 8],
                "Shift",
            );
            const [from, to] = [timeAt(x0), timeAt(x1)].map(Math.round);
            equal(await fragment(page, "r"), `${from}-${to}`, "the times");
            equal(await fragment(page, "rl"), "g1.2.3", "the lanes");
            const about = await page.textContent(".list .about");
            ok(about.startsWith(`Of 3 ${noun}`), about);
            const sums = await ask(`select?lanes=1,2,3&from=${from}&to=${to}`);
            /* A state that does not occur has no column. */
            const running = (await rowsWhenThere(page)).reduce(
                (ns, row) => ns + +(row.running ?? 0),
                0,
            );
            equal(running, sums.states.running, "running, in the panel");
            /* Its spans, against those of each lane one by one. */
            await page.getByRole("button", { name: "List its longest spans" }).click();
            await page.locator("caption", { hasText: "spans-of-range" }).waitFor();
            const wanted = [];
            for (const lane of [1, 2, 3])
                for (const span of await spansOf(ask, "goroutine", lane, from, to))
                    wanted.push(Math.min(span.end, to) - Math.max(span.begin, from));
            const listed = await rowsOf(page, "spans-of-range");
            equal(
                listed.map((row) => +row["in the range"]),
                wanted.sort((a, b) => b - a),
                "its spans",
            );
            /* Other panels answer for the goroutines of the lanes, as the command does. */
            const { rows } = await ask("lanes?count=4");
            const ids = rows.filter((row) => row[3] < to && row[4] > from && row[0] > 0);
            const command = runJson(
                "goroutines",
                `--goroutine=${ids.map((row) => row[1]).join(",")}`,
                `--from=${from}ns`,
                `--to=${to}ns`,
                example(name),
            );
            const title = noun[0].toUpperCase() + noun.slice(1);
            await openTab(page, title);
            const totals = await until("the command's rows", async () => {
                const shown = await rowsOf(page, "goroutines");
                return shown.length === command.goroutines.length && shown;
            });
            equal(
                totals.map((row) => +row.total).sort((a, b) => a - b),
                command.goroutines.map((row) => row.total_ns).sort((a, b) => a - b),
                "total, of the command",
            );
            /* The address keeps the area. */
            await page.reload();
            await page.waitForSelector(".facts");
            equal(await fragment(page, "rl"), "g1.2.3", "the lanes, after a reload");
        });
    });

/* The spans of a lane in a range, each with its number. */
async function spansOf(ask, kind, lane, from, to) {
    const numbered = async (number) => ({
        ...(await ask(`span?kind=${kind}&lane=${lane}&span=${number}`)),
        number,
    });
    let span = await numbered(0);
    /* The first that ends in it. */
    let [least, most] = [0, span.spans];
    while (least < most) {
        const middle = (least + most) >> 1;
        if ((await numbered(middle)).end > from) most = middle;
        else least = middle + 1;
    }
    const found = [];
    for (const { spans } = span; least < spans; least++) {
        span = await numbered(least);
        if (span.begin >= to) break;
        if (span.state !== "none") found.push(span);
    }
    return found;
}

/* MARK: Merged spans */

test("a pixel of several spans shows its shares under the pointer, and lists them after a click", async () => {
    const path = generated("merged", "--goroutines=16", "--events=20K", "--procs=2");
    await serving(path, async (open, ask) => {
        const page = await open("#v=p&top=0");
        const { box, perPixel } = await geometry(page);
        /* A pixel of them, near the middle. */
        let x = LABELS + 400;
        const tipThere = async () => {
            await page.mouse.move(box.x + x, box.y + 20);
            await idle(page);
            const tips = await page.locator(".tip").allTextContents();
            return tips.find((text) => text.includes("several short spans"));
        };
        let tip = await tipThere();
        for (; !tip && x < LABELS + 600; tip = await tipThere()) x++;
        ok(/several short spans: (running|syscall) \d+ %/.test(tip), tip);
        await page.mouse.click(box.x + x, box.y + 20);
        await page.locator(".merged tbody tr").first().waitFor();
        const shown = await rowsOf(page, "spans-of-pixel");
        const [first] = shown;
        const begin = +first.begin;
        const last = shown[shown.length - 1];
        const to = +last.begin + +last["in the range"];
        /* The first one may have begun before the pixel. */
        const from = begin + +first.duration - +first["in the range"];
        ok(to - from <= perPixel + 2, `${to - from} ns, of a pixel of ${perPixel}`);
        const { rows } = await ask("lanes?kind=proc&count=1");
        const wanted = await spansOf(ask, "proc", rows[0][0], from, to);
        ok(wanted.length > 1, `${wanted.length} spans`);
        equal(
            shown.map((row) => [+row.begin, +row.duration]),
            wanted.map((span) => [span.begin, span.end - span.begin]),
            "the spans, in order",
        );
        const heading = await page.textContent(".merged h3");
        ok(heading.startsWith(`In this pixel: ${wanted.length} spans in `), heading);
        equal(await complaints(page), [], "axe");
        /* A row selects its span, and the list stays. */
        await page.locator(".merged tbody tr").nth(1).click();
        const { number } = wanted[1];
        await until("it is selected", async () => (await fragment(page, "sel")) === `p0.${number}`);
        equal(await page.locator(".merged tbody tr").count(), shown.length, "the list stays");
    });
});

/* MARK: Menus */

test("menus of a span, a group, the ruler and a row, by pointer and by keys", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#top=0");
        const { box, timeAt } = await geometry(page);
        const x = LABELS + 500;
        const item = (name) => page.getByRole("menuitem", { name, exact: false });
        await page.mouse.click(box.x + x, box.y + 10, { button: "right" });
        await page.getByRole("menu").waitFor();
        await idle(page);
        ok(await item("Why did the thread take so long?").isVisible(), "in words of threads");
        equal(await complaints(page), [], "axe");
        await page.keyboard.press("Enter");
        const [from, to] = await windowOf(page);
        const at = timeAt(x);
        ok(from < at && at < to && (await fragment(page, "sel")), "zoomed to the span");
        equal(await page.getByRole("menu").count(), 0, "it closes");

        /* By keys: the second command selects the time of the span. The test's Firefox has no key for menus. */
        await page.evaluate(() =>
            dispatchEvent(new KeyboardEvent("keydown", { key: "ContextMenu" })),
        );
        await page.getByRole("menu").waitFor();
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        ok((await fragment(page, "r")) !== null, "a range");
        await page.keyboard.press("Shift+F10");
        await page.keyboard.press("Escape");
        equal(await page.getByRole("menu").count(), 0, "closed by Escape");
        ok((await fragment(page, "r")) !== null, "Escape closes the menu only");

        const head = await page.locator("canvas.head").boundingBox();
        await page.mouse.click(head.x + 600, head.y + 10, { button: "right" });
        await item("Select nothing").click();
        equal(await fragment(page, "r"), null, "the range is gone");

        await openTab(page, "Threads");
        const row = page.locator(".table tbody tr").first();
        await row.focus();
        await page.keyboard.press("Shift+F10");
        await page.getByRole("menu").waitFor();
        await page.keyboard.press("Escape");
        ok(await row.evaluate((of) => of === document.activeElement), "the focus is back");
        const cell = page.locator(".table tbody tr td").nth(1);
        const text = await cell.textContent();
        await cell.click({ button: "right" });
        await item("Only rows with this text").click();
        const names = (await rowsOf(page)).map((of) => of["start function"]);
        ok(names.length > 0 && names.every((name) => name === text), names.join());
    });
});

test("a group's menu hides its lanes, or sums them up", async () => {
    await serving(example("load-go1.23"), async (open, ask) => {
        const page = await open("#top=0");
        const { rows, names } = await ask("lanes?count=500");
        const name = (row) => names[row[2]];
        const counts = new Map();
        for (const row of rows) counts.set(name(row), (counts.get(name(row)) ?? 0) + 1);
        /* The first group, which has its head above its lanes. */
        const groups = [...counts.keys()];
        const before = groups.indexOf(groups.find((of) => counts.get(of) > 1));
        const { box } = await geometry(page);
        const y = box.y + before * LANE + 10;
        await page.mouse.click(box.x + 60, y, { button: "right" });
        await page.getByRole("menuitem", { name: "Sums of the group" }).click();
        await page.waitForSelector(".list .about");
        const members = rows.filter((row) => name(row) === groups[before]).map((row) => row[0]);
        equal(await fragment(page, "rl"), `g${members.join(".")}`, "its lanes");
        await page.mouse.click(box.x + 60, y, { button: "right" });
        await page.getByRole("menuitem", { name: /^Hide lanes of/ }).click();
        const short = groups[before].replace(/^.*\//, "");
        equal(await fragment(page, "f"), `-${short}`, "the filter");
    });
});

/*
 * By tests/data/why-1.26.txt: G 1 creates G 2 and G 3. At 105 G 2 is ready and G 3 runs, at 115 G 2 is ready and G 3 waits,
 * at 15 there is G 2 only, which is ready. The group's row is below that of the other creator and G 1.
 */
const source = readFileSync(join(scheduler, "tests/data/why-1.26.txt"), "utf8");
const GROUP = { top: 24 + LANE, height: 38, name: "created by G1 main.main" };
const ofGroup = `#g=creator&fold=${encodeURIComponent(JSON.stringify([GROUP.name]))}`;

/* The colours of a column of the group's picture, from the bottom up, with the part of its height that each has. */
function columnOf(page, x) {
    return page.evaluate(
        ([at, { top, height }]) => {
            const rows = document.querySelector("canvas.rows");
            const high = height - 5;
            const { data } = rows.getContext("2d").getImageData(at, top + 2, 1, high);
            const parts = [];
            for (let y = high - 1; y >= 0; y--) {
                const color = [...data.slice(4 * y, 4 * y + 3)].join();
                if (parts.at(-1)?.[0] !== color) parts.push([color, 0]);
                parts.at(-1)[1] += 1 / high;
            }
            return parts.map(([color, part]) => [color, Math.round(4 * part) / 4]);
        },
        [Math.round(x), GROUP],
    );
}

test("a folded group shows how many of its lanes are in each state", async () => {
    await serving(assembled("why", source), async (open) => {
        const page = await open(`${ofGroup}&w=0-420`, { colorScheme: "light" });
        const { box, perPixel } = await geometry(page);
        const xOf = (ns) => LABELS + ns / perPixel;
        await until("its picture", async () => (await columnOf(page, xOf(105))).length > 1);
        const [ready, running] = ["s-ready", "s-running"].map((name) => color(name).join());
        equal(await columnOf(page, xOf(105)), [
            [running, 0.5],
            [ready, 0.5],
        ]);
        /* Waiting is pale, and on top. */
        const waiting = await columnOf(page, xOf(115));
        equal([waiting.length, waiting[0]], [2, [ready, 0.5]], "ready below waiting");
        const alone = await columnOf(page, xOf(15));
        equal(alone, [
            [ready, 0.5],
            ["255,255,255", 0.5],
        ]);
        const tipAt = async (ns) => {
            await page.mouse.move(box.x + xOf(ns), box.y + GROUP.top + 10);
            return page.locator(".tip").textContent();
        };
        const title = `${GROUP.name}: 2 goroutines`;
        const atOnce = "The height of the row is the most at once, 2.";
        const at105 = await tipAt(105);
        ok(at105.startsWith(`${title}ready 1 (50 %), running 1 (50 %), on average in `), at105);
        ok(at105.endsWith(atOnce), at105);
        const at15 = await tipAt(15);
        ok(at15.startsWith(`${title}ready 1 (100 %), on average in `), at15);
        equal(await tipAt(5), `${title}none exists here. ${atOnce}`, "before the first");
        /* The picture that the window was moved away from stays until there is another. */
        const asked = new Promise((done) => page.route("**/api/group*", done));
        await page.mouse.move(box.x + xOf(175), box.y + GROUP.top + 10);
        await page.keyboard.press("w");
        await asked;
        /* Frames are drawn meanwhile. */
        await page.evaluate(async () => {
            for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);
        });
        const [moved] = await columnOf(page, xOf(175));
        equal(moved, [ready, 0.5], "drawn meanwhile");
    });
});

test("the SVG has a folded group's states in their heights", async () => {
    await serving(assembled("why", source), async (open) => {
        const page = await open(`${ofGroup}&w=0-420`);
        await idle(page);
        const text = String(await saved(page, () => page.keyboard.press("e")));
        ok(text.includes("2 goroutines, at most 2 at once"), "what the height stands for");
        const half = `v${(GROUP.height - 5) / 2}h`;
        for (const wanted of ["s-ready", "s-running"].map(hex))
            ok(
                text.split("<path").some((of) => of.includes(half) && of.includes(wanted)),
                `half of a row in ${wanted}`,
            );
    });
});

/* MARK: Tables */

test("the columns of a table are as wide as they are dragged, or set with Shift and arrows", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#top=0&tab=goroutines");
        await rowsWhenThere(page);
        const heads = page.locator(".table thead th");
        const widths = () => heads.evaluateAll((all) => all.map((of) => of.offsetWidth));
        const before = await widths();
        const edge = await heads.nth(1).locator(".edge").boundingBox();
        const middle = [edge.x + edge.width / 2, edge.y + 8];
        await drag(page, middle, [middle[0] - 60, middle[1]]);
        const after = await widths();
        equal(after[1], before[1] - 60, "dragged");
        equal(after.toSpliced(1, 1), before.toSpliced(1, 1), "the others stay");
        equal(await heads.nth(1).getAttribute("aria-sort"), "none", "a drag does not sort");
        await heads.nth(1).getByRole("button").focus();
        await page.keyboard.press("Shift+ArrowRight");
        equal((await widths())[1], after[1] + 20, "by keys");
        /* Two clicks of the test are no double click in Firefox. */
        await heads.nth(1).locator(".edge").dispatchEvent("dblclick");
        equal(await widths(), before, "as wide as the texts again");
        equal(await complaints(page), [], "axe");
    });
});

await main();
