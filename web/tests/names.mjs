// What looks alike is distinguished, and what a name contains changes nothing around it: locks, holders, times, findings.
// Arguments: the trail command, the tree's folder. Skipped without Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
    equal,
    idle,
    main,
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
import { assembled, example, folder, fragment, ofOne, rowsWhenThere, serving } from "./traces.mjs";

needBrowser();

const source = (name) => readFileSync(join(root, "tests/data", `${name}.txt`), "utf8");
const ALIKE = assembled("alike", source("alike-1.26"));

/* Runs before the page's code: keeps what is drawn as text. */
function keepTexts() {
    globalThis.drawn = new Set();
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        globalThis.drawn.add(text);
        draw.call(this, text, ...rest);
    };
}
const drawnIn = (page) => page.evaluate(() => [...globalThis.drawn]);

/* MARK: Alike */

test("locks of one place: each row, search result and link shows its own waits", async () => {
    const { locks } = runJson("locks", ALIKE);
    await serving(ALIKE, async (open) => {
        const page = await open("#tab=locks");
        const titles = (await rowsWhenThere(page)).map((row) => `${row.kind} ${row.lock}`);
        equal(new Set(titles).size, locks.length, titles.join());
        for (const [i, lock] of locks.entries()) {
            await page.locator(".table tbody tr").nth(i).click();
            const rows = page.locator(".lock-time [data-goroutine]");
            await until(`the wait of ${lock.title}`, async () => {
                const whose = await rows.evaluateAll((all) =>
                    all.map((row) => Number(row.dataset.goroutine)),
                );
                return JSON.stringify(whose) === JSON.stringify([lock.longest.goroutine]);
            });
            equal(await page.locator(".lock-time .wait-bar").count(), lock.waits, "its waits");
            equal(await fragment(page, "lock"), lock.title, "its link");
        }
        await page.keyboard.press("/");
        await page.keyboard.type("cond");
        const found = await until("locks found", async () => {
            const options = await page.getByRole("option").allTextContents();
            const of = options.filter((text) => text.startsWith("lock"));
            return of.length > 0 && of;
        });
        equal(new Set(found).size, 2, found.join());
        ok(
            found.some((text) => text.includes("woken by main.put")),
            found.join(),
        );
    });
});

test("a holder whose start function several goroutines have is named by its number", async () => {
    await serving(ALIKE, async (open) => {
        const page = await open("", {}, ".facts", keepTexts);
        const wanted =
            "sync.(*Mutex).Lock in main.main.func6, held by G5 main.main.func6 (inferred)";
        /* Wide enough for the longest form. */
        await page.evaluate(() => {
            location.hash = "#w=3000000-7100000&all=ir";
        });
        await until(wanted, async () => (await drawnIn(page)).includes(wanted));
    });
});

test("two traces: a row of the differences opens the lock with its waker in both", async () => {
    /* In the second trace the other one of both locks has the longer waits. */
    const moved = source("alike-1.26")
        .replace(
            "GoUnblock dt=3000000 g=2 g_seq=2 stack=22",
            "GoUnblock dt=3000000 g=2 g_seq=2 stack=23",
        )
        .replace(
            "GoUnblock dt=4000000 g=3 g_seq=2 stack=23",
            "GoUnblock dt=4500000 g=3 g_seq=2 stack=22",
        );
    const { server, url } = await serve([ALIKE, assembled("moved", moved)]);
    try {
        const page = await openPage(`${url}#diff=1`, {}, "iframe");
        for (const waker of ["main.put", "main.stop"]) {
            const cell = page.locator(".panel td", { hasText: `woken by ${waker}` }).first();
            await cell.click();
            for (const title of ["The first trace", "The second trace"]) {
                const frame = page.frameLocator(`iframe[title="${title}"]`);
                const heading = frame.locator(".lock-time h2", { hasText: `woken by ${waker}` });
                /* The lanes have its room until the differences are closed. */
                await heading.waitFor({ state: "attached" });
                ok(!(await heading.isVisible()), "no panel beside the differences");
            }
        }
        await page.getByRole("button", { name: "Differences" }).click();
        const panel = page.frameLocator("iframe").first().locator(".lock-time h2");
        await panel.waitFor();
        equal(page.errors, [], "errors of the page");
        await page.context().close();
    } finally {
        server.kill();
    }
});

test("two traces: a row of the differences shows its places in both, with what the colours mean", async () => {
    const paths = ["shop-c", "shop-c-fixed"].map(example);
    const { server, url } = await serve(paths);
    try {
        const page = await openPage(`${url}#diff=1`, {}, "iframe");
        const cell = (name) => page.locator(".panel td", { hasText: name }).first();
        await cell("mutex queue_mu").click();
        const places = paths.map((path) => {
            const { locks, origin_ns: origin } = runJson("locks", path);
            const { longest } = locks.find(({ title }) => title === "mutex queue_mu");
            const from = longest.begin_ns - origin;
            return [from, from + longest.ns];
        });
        ok(Math.abs(places[0][0] - places[1][0]) > 1e6, `${places}: at different times`);
        const windows = () =>
            page.evaluate(() =>
                ["a", "b"].map((name) =>
                    new URLSearchParams(new URLSearchParams(location.hash.slice(1)).get(name)).get(
                        "w",
                    ),
                ),
            );
        const [least, most] = [
            Math.min(...places.map(([from]) => from)),
            Math.max(...places.map(([, to]) => to)),
        ];
        await until("both places in both windows, and not much more", async () => {
            const [a, b] = (await windows()).map((of) => of?.split("-").map(Number));
            if (!a || a.join() !== b?.join()) return false;
            return a[0] <= least && a[1] >= most && a[1] - a[0] < 1.3 * (most - least);
        });
        for (const name of ["The first trace", "The second trace"]) {
            const frame = page.frameLocator(`iframe[title="${name}"]`);
            ok(await frame.locator(".legend").isVisible(), `${name}: the legend`);
            const signs = await frame.locator(".legend > span").allTextContents();
            ok(
                signs.some((text) => text.trim() === "sleep"),
                `${name}: ${signs}`,
            );
            ok(!signs.some((text) => text.trim() === "idle"), `${name}: only what occurs`);
            ok(await frame.locator("canvas.rows").isVisible(), `${name}: the lanes`);
            ok(!(await frame.locator(".panels").isVisible()), `${name}: no panel over them`);
        }
        await cell("mutex cache_mu").click();
        const none = page.frameLocator('iframe[title="The second trace"]').locator(".message");
        await none.getByText("There is no wait for mutex cache_mu in this trace.").waitFor();
        equal(page.errors, [], "errors of the page");
        await page.context().close();
    } finally {
        server.kill();
    }
});

test("two traces: what grew many times has no percentage, and no offset has no unit", async () => {
    const longer = source("alike-1.26")
        .replace("GoUnblock dt=4000000 g=4", "GoUnblock dt=999999000000 g=4")
        .replace("GoStart dt=1000 g=5", "GoStart dt=1000 g=5");
    const { server, url } = await serve([ALIKE, assembled("longer", longer)]);
    try {
        const page = await openPage(`${url}#diff=1`, {}, "iframe");
        await page
            .locator(".panel td", { hasText: /^[\d,]{3,} times$/ })
            .first()
            .waitFor();
        const shares = await page
            .locator(".panel table")
            .evaluate((table) => [...table.querySelectorAll("td")].map((cell) => cell.textContent));
        const big = shares.filter((text) => /\d{4,}\.\d %/.test(text));
        equal(big, [], "percentages of many thousands");
        equal(await page.getByLabel("later than A by").inputValue(), "0", "the offset");
        const verdict = await until("the verdict", async () => {
            const text = await page.locator(".verdict").textContent();
            return !/Comparing/.test(text) && text;
        });
        ok(!/\d{4,}\.\d %/.test(verdict), verdict);
        await page.context().close();
    } finally {
        server.kill();
    }
});

/* MARK: Names */

/* Is an element; reverses what follows; is not seen; begins a control sequence. */
const ELEMENT = "<img src=x onerror=alert(1)>";
const EVIL = `${ELEMENT}\\u202e\\u2066\\u200b\\u001b[31m`;
const SHOWN = `${ELEMENT}\\u202e\\u2066\\u200b\\x1b[31m`;
const steering =
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]";

function hostile() {
    const region = `UserRegionBegin dt=1000 task=0 name_string=19 stack=1
UserLog dt=10 task=0 key_string=19 value_string=19 stack=1
UserRegionEnd dt=1000000 task=0 name_string=19 stack=1
`;
    return assembled(
        "hostile",
        source("alike-1.26")
            .replace("UserLog dt=1000000", `${region}UserLog dt=1000`)
            .replace("String id=20", `String id=19\n\tdata="parse${EVIL}"\nString id=20`)
            .replaceAll("main.main.func6", `main.func6${EVIL}`),
    );
}

test("names reverse nothing around them: they are shown as on a terminal", async () => {
    const path = hostile();
    const terminal = execFileSync(trail, ["goroutines", path], { encoding: "utf8" });
    ok(terminal.includes(`main.func6${SHOWN}`), terminal);
    await serving(path, async (open) => {
        const page = await open("#sel=g3.2&tab=span", {}, ".facts", keepTexts);
        for (const name of [
            "Span",
            "Summary",
            "Locks",
            "Stacks",
            "Tasks and regions",
            "Goroutines",
        ]) {
            await openTab(page, name);
            await idle(page);
            const texts = await page.evaluate(() => [
                document.body.innerText,
                ...[...document.querySelectorAll("*")].flatMap((of) =>
                    ["title", "aria-label", "value"].map((key) => of.getAttribute(key) ?? ""),
                ),
                ...globalThis.drawn,
            ]);
            const wrong = texts.filter((text) =>
                new RegExp(steering).test(text.replaceAll("\n", " ")),
            );
            equal(wrong, [], `of ${name}`);
            equal(await page.locator("[onerror]").count(), 0, `elements of ${name}`);
            ok(
                texts.some((text) => text.includes(`func6${SHOWN}`)),
                `${name} has the name`,
            );
        }
        /* The server knows the name as it is. */
        await openTab(page, "Tasks and regions");
        await page.locator(".table tbody tr").first().click();
        await page.locator(".waterfall").first().waitFor();
        equal(await page.locator("[onerror]").count(), 0, "elements of a task");
    });
});

test("threads of C are called so, also in lists of spans", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#sel=g3.5&tab=span");
        await page.locator(".details h2").first().waitFor();
        await page.keyboard.press("h");
        const longest = page.locator(".details p", { hasText: "Longest:" });
        await longest.waitFor();
        ok(/\(thread \d+ [a-z]+\)/.test(await longest.textContent()), await longest.textContent());
        ok(!/\bG\d/.test(await page.locator("body").innerText()), "no goroutines");
    });
});

/* MARK: Places */

test("a finding's wait in two parts selects the longer one", async () => {
    const path = example("shop-c");
    await serving(path, async (open, ask) => {
        const { spans } = await ask("spans?kind=goroutine&from=0&to=101000000&count=1000");
        /* A short span, and the long one after it. */
        const long = spans.find((of) => of.span > 0 && of.state === "waiting");
        const before = await ask(`span?kind=goroutine&lane=${long.lane}&span=${long.span - 1}`);
        ok(before.end - before.begin < long.end - long.begin, "shorter");
        const { origin_ns: origin } = runJson("summary", path);
        const page = await open("", {}, ".facts");
        await page.route("**/api/run?command=summary*", async (route) => {
            const answer = await (await route.fetch()).json();
            const of = answer.findings[0];
            for (const key of ["task", "region"]) delete of[key];
            Object.assign(of, {
                kind: "cpu-starved",
                goroutine: long.id,
                begin_ns: before.begin + origin,
                end_ns: long.end + origin,
            });
            await route.fulfill({ json: answer });
        });
        const [plain] = page.url().split("#");
        await page.goto("about:blank");
        await page.goto(plain);
        await page.waitForSelector(".card.selected");
        await until(
            "the longer part",
            async () => (await fragment(page, "sel")) === `g${long.lane}.${long.span}`,
        );
    });
});

/* A message disappears when fade() is called, instead of after 5 s. */
function holdMessages() {
    const real = window.setTimeout.bind(window);
    window.setTimeout = (run, ms, ...more) => {
        if (ms !== 5000) return real(run, ms, ...more);
        window.fade = run;
        return 0;
    };
}

test("a message covers neither the search nor a panel", async () => {
    for (const viewport of [
        { width: 1280, height: 800 },
        { width: 390, height: 844 },
    ])
        await serving(example("shop-c"), async (open) => {
            const page = await open("#sel=g3.5", { viewport }, ".facts", holdMessages);
            for (const tab of ["Span", "Locks"]) {
                await openTab(page, tab);
                await idle(page);
                await page.keyboard.press("b");
                const box = await (await page.waitForSelector(".message")).boundingBox();
                for (const name of ["header", ".panels", ".overview"]) {
                    const other = page.locator(name);
                    if (!(await other.isVisible())) continue;
                    const of = await other.boundingBox();
                    const apart = of.y >= box.y + box.height || of.y + of.height <= box.y;
                    ok(
                        apart,
                        `${name} at ${viewport.width} px, ${tab}: ${JSON.stringify([of, box])}`,
                    );
                }
                await page.evaluate(() => window.fade());
                await page.waitForSelector(".message", { state: "detached" });
            }
        });
});

test("on a phone the finding says which of how many it is, and leads to the others", async () => {
    const { findings } = runJson("summary", example("shop-c-stuck"));
    ok(findings.length > 1, "several");
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open("", { viewport: { width: 390, height: 844 } });
        const which = page.getByRole("button", { name: "All findings" });
        equal(await which.textContent(), `1 of ${findings.length}`, "the number");
        await which.click();
        await page.locator(".card").first().waitFor();
        const wide = await open("");
        equal(await wide.locator(".which:visible").count(), 0, "elsewhere all are in view");
    });
});

test("a finding that is alone fills its card: what to do is beside what is so", async () => {
    const [finding, ...others] = runJson("summary", example("shop-c")).findings;
    equal(others, [], "one");
    await serving(example("shop-c"), async (open) => {
        const page = await open("");
        await page.locator(".card.selected").waitFor();
        await page.locator(".details .say").waitFor();
        const text = await page.locator(".card p").textContent();
        const shown = text.replaceAll("\u00a0", " ");
        const right = withSign(`${finding.remedy} ${finding.replayed}`);
        ok(shown.endsWith(right), `what to do: ${shown}`);
        ok(withSign(finding.details).endsWith(shown.slice(0, -right.length - 1)), "of what");
    });
});

test("a name outside ASCII has the colour that it has in a report", async () => {
    const path = ofOne(
        "hue",
        `GoBlock dt=1000000 reason_string=1 stack=1
GoUnblock dt=5000000 g=1 g_seq=1 stack=0
GoStart dt=10 g=1 g_seq=2
`,
        { 1: "sync", 2: "größe.messen", 3: "größe.go" },
        `EventBatch gen=1 m=18446744073709551615 time=99000000 size=auto
Stacks
Stack id=1 nframes=1
\tpc=4096 func=2 file=3 line=10
`,
    );
    const report = join(folder, "hue.html");
    execFileSync(trail, ["report", path, "-o", report]);
    const drawn = readFileSync(report, "utf8").matchAll(/hsl\((\d+) var\(--name-tint\)/g);
    const hues = [...new Set([...drawn].map(([, hue]) => hue))];
    equal(hues.length, 2, `of all and of the name: ${hues}`);
    await serving(path, async (open) => {
        const page = await open("#tab=flame");
        const boxes = page.locator(".flame .boxes button");
        await boxes.nth(1).waitFor();
        const colors = await boxes.evaluateAll((all) => all.map((of) => of.style.background));
        const wanted = await page.evaluate((those) => {
            const tint = getComputedStyle(document.documentElement).getPropertyValue("--name-tint");
            const of = document.createElement("i");
            return those.map((hue) => {
                of.style.background = `hsl(${hue} ${tint})`;
                return of.style.background;
            });
        }, hues);
        equal([...new Set(colors)].sort(), wanted.sort(), "colours");
    });
});

/* MARK: Time */

test("time zero has no unit, on the ruler and beside it", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#w=0-100000000", {}, ".facts", keepTexts);
        const drawn = await until("the ruler", async () => {
            const texts = await drawnIn(page);
            return texts.includes("20 ms") && texts;
        });
        ok(drawn.includes("0"), drawn.join());
        const zeros = drawn.filter((text) => /(^|\s)-?0(\.0+)? (ns|µs|ms|s)\b/.test(text));
        equal(zeros, [], "zeros with a unit");
    });
});

await main();
