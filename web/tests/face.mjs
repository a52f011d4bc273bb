// The first screen: each finding leads to its culprit, the search takes keys at once, lanes without news are folded.
// Arguments: the trail command, the tree's folder. Skipped without Chromium.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import {
    ALL,
    color,
    complaints,
    equal,
    idle,
    leavePage,
    main,
    measure,
    needBrowser,
    ok,
    openPage,
    openTab,
    runJson,
    serve,
    test,
    until,
    withSign,
} from "./browser.mjs";
import { example, folder, fragment, ofOne, rowsWhenThere, serving } from "./traces.mjs";

needBrowser();

/* A sentence of the command as the page shows it. */
const inPage = (text) => withSign(text).replaceAll(/(\d) (%|[nµm]?s\b)/g, "$1\u00a0$2");

/* In the shops flush sleeps with the lock, as their sources have it: what the others wait for is its sleep. */
for (const [name, culprit, drawn] of [
    ["shop-c", /^thread 3 flush$/, "sleep, holds mutex cache_mu"],
    ["shop-go", /flush/, "sleep, holds the lock (inferred)"],
])
    test(`${name}: the first finding is shown at its culprit's span without being asked`, async () => {
        const [finding] = runJson("summary", example(name)).findings;
        equal(finding.kind, "lock-serialises", "the kind");
        await serving(example(name), async (open) => {
            const page = await open("", {}, ".facts", keepTexts);
            const card = page.locator(".card.selected");
            equal(await card.getAttribute("title"), withSign(finding.text), "its text");
            const title = page.locator(".details h2").first();
            await until("who holds it", async () => culprit.test(await title.textContent()));
            ok(/sleep/.test(await page.textContent(".details dd")), "it sleeps");
            await until(drawn, () => page.evaluate((of) => globalThis.drawnTexts[of], drawn));
        });
    });

test("no hold is inferred for a span that is no longer selected", async () => {
    for (const isMoved of [false, true])
        await serving(example("shop-go"), async (open, _, leave) => {
            const page = await open("#w=0-1000&all=");
            let requests = 0;
            let release;
            const released = new Promise((done) => {
                release = done;
            });
            /* The first request precedes the selection: it is about the order of the lanes. */
            await page.route(/\/api\/spans\?.*holder=/, async (route) => {
                if (++requests > 1) await released;
                await route.continue();
            });
            await page.locator(".card").getByRole("button").first().click();
            await until("what waits for it is asked for", () => requests > 1);
            if (isMoved) {
                await page.keyboard.press("ArrowRight");
                const said = page.locator(".details .say");
                await until("another is selected", async () => (await said.count()) === 0);
            }
            release();
            await idle(page);
            const legend = page.locator(".legend");
            equal((await legend.textContent()).includes("(inferred)"), !isMoved, "in the legend");
            await page.unrouteAll({ behavior: "wait" });
            await leave(page);
        });
});

test("a finding without a goroutine is explained without one", async () => {
    await serving(example("load-go1.19"), async (open) => {
        const [finding] = runJson("summary", example("load-go1.19")).findings;
        equal(finding.goroutine ?? null, null, "of all of them");
        const page = await open();
        const card = page.locator(".card");
        const title = page.locator(".details h2");
        const said = page.locator(".details .say");
        await said.waitFor();
        await page.keyboard.press("ArrowDown");
        await until("a goroutine", async () => /^G\d/.test(await title.textContent()));
        equal(await said.count(), 0, "explanations of a goroutine");
        await card.getByRole("button").click();
        await said.waitFor();
        equal(await title.textContent(), inPage(finding.heading), "what is explained");
    });
});

test("the selection has the heading of its finding, and the evidence instead of the card", async () => {
    for (const width of [1280, 1680])
        await serving(example("shop-c"), async (open, _, leave) => {
            const [finding] = runJson("summary", example("shop-c")).findings;
            const page = await open("", { viewport: { width, height: 800 } });
            const said = page.locator(".details .say");
            const card = page.locator(".card");
            await said.waitFor();
            const [part] = finding.details.split(". ");
            const texts = async (of) => (await of.textContent()).replaceAll("\u00a0", " ");
            const times = async (text) =>
                (await texts(page.locator("main"))).split(withSign(text)).length - 1;
            equal(await times(part), 1, "the evidence");
            ok((await texts(said)).startsWith(`${finding.heading}.`), "what the evidence is for");
            ok((await texts(said)).includes(part), "beside the span");
            /* Where the span is another, the card has it. */
            await page.keyboard.press("ArrowLeft");
            await until("the evidence in the card", async () => (await texts(card)).includes(part));
            await leave(page);
        });
});

test("a card's heading, however long, leaves a line for the reason, and that ends above the button", async () => {
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open();
        const card = page.locator(".card").nth(1);
        await card.waitFor();
        for (const many of [1, 3, 40]) {
            const places = await card.evaluate((of, times) => {
                const [heading, reason] = of.querySelectorAll("h2 bdi, p bdi");
                heading.textContent = "a_function (in_a_file.c:7) ".repeat(times);
                reason.textContent = "It is held by another one. ".repeat(40);
                const bottom = (one) => of.querySelector(one).getBoundingClientRect().bottom;
                const { scrollHeight, clientHeight } = of.querySelector("p");
                return [...["h2", ".words", "p", ".foot"].map(bottom), scrollHeight - clientHeight];
            }, many);
            const [heading, words, reason, foot, more] = places;
            ok(words - heading >= 15, `${many}: ${places}: a line`);
            ok(reason <= words + 1 && words < foot, `${many}: ${places}: cut at a line`);
            ok(more > 0, `${many}: ${places}: with an ellipsis`);
        }
    });
});

test("folded cards have whole headings of a usual length, in two lines of the one row", async () => {
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open();
        await page.locator(".overview").getByRole("button", { name: "Overview" }).click();
        const texts = page.locator(".chip span");
        const { findings } = runJson("summary", example("shop-c-stuck"));
        await until("the headings", async () => (await texts.count()) === findings.length);
        for (const [i, of] of findings.entries()) {
            equal(await texts.nth(i).textContent(), inPage(of.heading), "the text");
            const cut = await texts
                .nth(i)
                .evaluate((one) => [
                    one.scrollWidth - one.clientWidth,
                    one.scrollHeight - one.clientHeight,
                ]);
            ok(Math.max(...cut) <= 1, `${of.heading}: ${cut} pixels are cut`);
        }
        const { height } = await page.locator(".overview").boundingBox();
        equal(height, measure("tool"), "the height of the row");
    });
});

test("a card's figure, however long, leaves its button in the card", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open();
        const card = page.locator(".card").first();
        await card.locator(".figure span").evaluate((of) => {
            of.textContent = "99 % of tasks would take ".repeat(20);
        });
        const right = (of) => of.evaluate((one) => one.getBoundingClientRect().right);
        const button = card.getByRole("button");
        ok((await right(button)) < (await right(card)), "the button is in the card");
        const { x } = await button.boundingBox();
        ok((await right(card.locator(".figure b"))) <= x, "the figure ends before the button");
        equal(
            await card.locator(".figure b").evaluate((of) => of.scrollWidth > of.clientWidth + 1),
            false,
            "the figure is whole",
        );
    });
});

/* Keeps how texts are drawn: their colour, and how far they are from the right edge of their canvas. */
function keepTexts() {
    const draw = CanvasRenderingContext2D.prototype.fillText;
    globalThis.drawnTexts = {};
    CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
        const room = this.canvas.clientWidth - x - this.measureText(text).width;
        globalThis.drawnTexts[text] = { color: this.fillStyle, room };
        draw.call(this, text, x, ...rest);
    };
}

test("a wait of the runtime, whose fill is solid, has the text of that fill", async () => {
    const path = ofOne(
        "assist",
        `GoBlock dt=1000 reason_string=1 stack=0
GoUnblock dt=9000000 g=1 g_seq=1 stack=0
GoStart dt=10 g=1 g_seq=2
GoBlock dt=1000 reason_string=2 stack=0
GoUnblock dt=9000000 g=1 g_seq=3 stack=0`,
        { 1: "GC mark assist wait for work", 2: "sleep" },
    );
    for (const colorScheme of ["light", "dark"])
        await serving(path, async (open) => {
            const page = await open("", { colorScheme }, ".facts", keepTexts);
            const drawn = await until("texts", async () => {
                const all = await page.evaluate(() => globalThis.drawnTexts);
                return all["GC mark assist wait for work"] && all.sleep && all;
            });
            const hex = (name) =>
                `#${color(name, colorScheme)
                    .map((part) => part.toString(16).padStart(2, "0"))
                    .join("")}`;
            const [solid, pale] = [drawn["GC mark assist wait for work"], drawn.sleep];
            equal(solid.color, hex("s-runtime-text"), "on a solid fill");
            equal(pale.color, hex("text"), "on a pale one");
        });
});

test("a long cell is whole where there is room, and has both its ends where there is none", async () => {
    for (const width of [1280, 390])
        await serving(example("shop-c"), async (open) => {
            const page = await open("#tab=path&why=task%3D7", { viewport: { width, height: 844 } });
            const cell = page.locator("td", { hasText: "from condition variable queue_filled" });
            const parts = await cell.first().evaluate((of) => {
                const end = of.getBoundingClientRect().right;
                return [...of.querySelectorAll(".shortened > span"), of].map(
                    (one) =>
                        one.scrollWidth <= one.clientWidth &&
                        one.getBoundingClientRect().right <= end,
                );
            });
            equal(parts, width === 1280 ? [true] : [false, true, true], `at ${width} pixels`);
        });
});

test("a long name breaks where its parts end", async () => {
    const ofGo =
        "reverseproxy.(*UpstreamHealthChecker).startPeriodicBackgroundHealthChecksOfAllUpstreams";
    const ofCpp =
        "storage::levels::Scheduler<storage::Table>::run_background_compactions_of_levels";
    for (const [long, width] of [
        [ofGo, 1280],
        [ofGo, 1600],
        [ofGo, 390],
        [ofCpp, 390],
    ])
        await serving(example("shop-go"), async (open) => {
            const page = await open("", { viewport: { width, height: 1000 } });
            await page.route(/\/api\/span\?/, async (route) => {
                const answer = await route.fetch();
                const body = (await answer.text()).replaceAll("main.(*shop).flush", long);
                await route.fulfill({ response: answer, body });
            });
            await page.reload();
            const title = page.locator(".details h2 bdi");
            await until("the name", async () => (await title.textContent()).endsWith(long));
            /* The last letter of each line with the first of the next. */
            const breaks = await title.evaluate((of) => {
                const walker = document.createTreeWalker(of, NodeFilter.SHOW_TEXT);
                const letters = [];
                while (walker.nextNode())
                    for (let i = 0; i < walker.currentNode.length; i++) {
                        const range = document.createRange();
                        range.setStart(walker.currentNode, i);
                        range.setEnd(walker.currentNode, i + 1);
                        const [box] = range.getClientRects();
                        letters.push([range.toString(), box ? box.top : null]);
                    }
                return letters.flatMap(([after, top], i) => {
                    const [before, above] = letters[i - 1] ?? [];
                    return top !== null && above != null && top > above + 4 ? [before + after] : [];
                });
            });
            ok(breaks.length > 0, "it has several lines");
            for (const at of breaks)
                ok(/^([ ./_)].|:[^:]|[a-z][A-Z])$/.test(at), `${at} at ${width}`);
            await page.unrouteAll({ behavior: "wait" });
        });
});

test("the name of a group has the room of the word after its number", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#g=name", {}, ".facts", keepTexts);
        await idle(page);
        const drawn = await page.evaluate(() => Object.keys(globalThis.drawnTexts));
        ok(drawn.includes("▾ main.pipeline.func1"), drawn.join());
    });
});

test("times of the heat map end on it", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=heat", {}, ".facts", keepTexts);
        await page.locator(".heat canvas").waitFor();
        await idle(page);
        const drawn = await page.evaluate(() => Object.entries(globalThis.drawnTexts));
        const times = drawn.filter(([text]) => /^\d+ ms$/.test(text));
        ok(times.length > 3, `${drawn}`);
        equal(
            times.filter(([, { room }]) => room < 0),
            [],
            "cut",
        );
    });
});

test("the heat map is as wide as its place, also beside a selection", async () => {
    await serving(example("shop-c"), async (open, _, leave) => {
        for (const width of [1280, 1600]) {
            const viewport = { width, height: 800 };
            const page = await open("#g=none&tab=heat&sel=g0.1", { viewport });
            await page.locator(".heat canvas").waitFor();
            await page.locator(width < 1600 ? ".beside h2" : ".inspector h2").waitFor();
            const room = await until("it fits", () =>
                page.evaluate(() => {
                    const list = document.querySelector(".list");
                    const { right } = document
                        .querySelector(".heat canvas")
                        .getBoundingClientRect();
                    const left = list.getBoundingClientRect().left;
                    return list.scrollWidth <= list.clientWidth && list.clientWidth + left - right;
                }),
            );
            ok(room >= 0 && room < 24, `${width}: ${room} px are left`);
            await leave(page);
        }
    });
});

test("an answer that comes after a click does not move the selection", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open();
        const title = page.locator(".details h2");
        await page.locator(".details .say").waitFor();
        ok((await title.textContent()) !== "thread 1 main", "another one is selected");
        let release;
        const held = new Promise((done) => {
            release = done;
        });
        await page.route(/command=why/, async (route) => {
            await held;
            await route.continue();
        });
        const asked = page.waitForRequest(/command=why/);
        await page.locator(".card").getByRole("button").click();
        await asked;
        const box = await page.locator("canvas.rows").boundingBox();
        await page.mouse.click(box.x + measure("lane-names") + 40, box.y + 12);
        await page.locator(".details .say").waitFor({ state: "detached" });
        const answered = page.waitForResponse(/command=why/);
        release();
        await answered;
        await idle(page);
        equal(await page.locator(".details .say").count(), 0, "explanations");
        equal(await title.textContent(), "thread 1 main", "what the user has selected");
    });
});

test("a wake-up is shown at the scale of the window, with both lanes", async () => {
    await serving(example("shop-c"), async (open, ask) => {
        /* The longest wait for the mutex that another thread ended. */
        const { locks, origin_ns: origin } = runJson("locks", example("shop-c"));
        const { longest } = locks.find(({ title }) => title === "mutex cache_mu");
        const end = longest.begin_ns - origin + longest.ns;
        const { rows } = await ask("lanes?kind=goroutine&count=100");
        const [lane] = rows.find((row) => row[1] === longest.goroutine);
        const of = await ask(
            `span?kind=goroutine&lane=${lane}&at=${longest.begin_ns - origin + 1000}`,
        );
        for (const [from, to] of [
            [end - 1e6, end + 1e6],
            [end - 5e6, end - 3e6],
        ]) {
            const place = `#g=none&w=${from}-${to}&sel=g${lane}.${of.span}&tab=span`;
            const page = await open(place);
            await page.locator(".details h2").waitFor();
            await page.keyboard.press("b");
            await page.locator("h3", { hasText: "Wake-up chain" }).waitFor();
            const [now, then] = (await fragment(page, "w")).split("-").map(Number);
            equal(then - now, 2e6, "ns of the window");
            ok(now <= end && end <= then, `${now} to ${then}: the end of the wait at ${end}`);
        }
    });
});

test("the holder at the end is named, where the trace does not say since when", async () => {
    const { locks } = runJson("locks", example("shop-c-stuck"));
    const holders = locks.filter(({ holder }) => holder !== undefined);
    ok(holders.length > 1, "held at the end");
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open("#tab=locks");
        for (const { name, holder } of holders)
            await page
                .locator(".table tr", { hasText: name })
                .getByText(`at the end, by thread ${holder}`, { exact: true })
                .waitFor();
    });
});

test("each panel says what its figures are of while a range is selected", async () => {
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#r=1000000-3000000");
        const ofRange = "Of the selected 2.00 ms";
        const ofAll = "Of the whole trace, not of the selected 2.00 ms";
        for (const [tab, text] of [
            ["Summary", ofRange],
            ["Locks", ofRange],
            ["GC", ofRange],
            ["MMU", ofRange],
            ["Threads, Ps", ofRange],
            ["Tasks and regions", ofAll],
        ]) {
            await openTab(page, tab);
            const said = await page.locator(".list .about").first().textContent();
            ok(said.startsWith(text), `${tab}: ${said}`);
        }
        const note = page.getByText("Figures of the whole trace");
        ok(await note.isVisible(), "of the tabs");
        await page.getByRole("tab", { name: "Findings", exact: true }).click();
        await page.getByRole("button", { name: "Whole trace", exact: true }).click();
        equal(await note.count(), 0, "without a range");
    });
});

test("what is not recorded stands out from the background", async () => {
    const luminance = (parts) =>
        parts
            .map((part) => part / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
            .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
    const [sign, back] = ["s-unknown", "chrome"].map((of) => luminance(color(of, "dark")));
    /* WCAG 2.1, 1.4.11 */
    ok((sign + 0.05) / (back + 0.05) >= 3, `contrast ${(sign + 0.05) / (back + 0.05)}`);
    await serving(example("shop-go"), async (open) => {
        const page = await open("#all=ir", { colorScheme: "dark" });
        const swatch = page.locator(".legend .w-unknown");
        const image = await swatch.evaluate((of) => getComputedStyle(of).backgroundImage);
        ok(image.includes(`rgb(${color("s-unknown", "dark").join(", ")})`), `hatched: ${image}`);
    });
});

test("a card with a short heading has more of its reason", async () => {
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open();
        const card = page.locator(".card").nth(1);
        await card.waitFor();
        const linesOf = async (times) => {
            await card.evaluate((of, many) => {
                of.querySelector("h2 bdi").textContent = "a_function (in_a_file.c:7) ".repeat(many);
                of.querySelector("p bdi").textContent = "It is held by another one. ".repeat(40);
            }, times);
            await idle(page);
            return card.locator("p").evaluate((of) => Math.round(of.clientHeight / 16));
        };
        equal(await linesOf(1), 3, "lines beside one");
        equal(await linesOf(40), 1, "lines beside three");
    });
});

test("results of the search are in view, whatever their length", async () => {
    for (const width of [1280, 390])
        await serving(example("shop-go"), async (open) => {
            const page = await open("", { viewport: { width, height: 844 } });
            await page.locator(".palette input").click();
            await page.keyboard.type("main");
            await page.locator("#found [role=option]").nth(3).waitFor();
            await page
                .locator("#found bdi")
                .first()
                .evaluate((of) => {
                    of.textContent = "main.function ".repeat(30);
                });
            const { x, width: wide } = await page.locator("#found").boundingBox();
            ok(x >= 0 && x + wide <= width, `from ${x} to ${x + wide} of ${width}`);
        });
});

test("a phone has the selection below few lanes, and only the lanes if they are many", async () => {
    for (const [name, isFew] of [
        ["shop-c", true],
        ["load-go1.23", false],
    ])
        await serving(example(name), async (open) => {
            const page = await open("", { viewport: { width: 390, height: 844 }, hasTouch: true });
            const beside = page.locator(".inspector");
            equal(await beside.count(), isFew ? 1 : 0, name);
            if (!isFew) return;
            await page.locator(".details .say").waitFor();
            const lanes = await page.locator("canvas.rows").boundingBox();
            const below = await beside.boundingBox();
            const gap = below.y - lanes.y - lanes.height;
            ok(Math.abs(gap) <= 1 && below.height > 844 / 4, `${gap} px, ${below.height} high`);
            await page.getByRole("tab", { name: "Waiting", exact: true }).click();
            await beside.waitFor({ state: "detached" });
        });
});

test("the number of a thing is no count, and what does not sort as text is sorted by its number", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=threads");
        const { threads } = runJson("threads", example("shop-c"));
        const ids = page.locator(".table tbody td:nth-child(2)");
        await ids.first().waitFor();
        const shownIds = (await ids.allTextContents()).map((text) => text.trim()).sort();
        equal(shownIds, threads.map(({ id }) => String(id)).sort(), "thread IDs");
    });
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=requests");
        const table = page.locator("table", { hasText: "share" });
        await table.getByRole("button", { name: "share" }).click();
        const at = await table
            .locator("thead th")
            .evaluateAll((all) => all.findIndex((of) => /share/.test(of.textContent)));
        const texts = await table.locator(`tbody td:nth-child(${at + 1})`).allTextContents();
        const shares = texts.map(Number.parseFloat);
        ok(shares.some((of) => of >= 10) && shares.some((of) => of < 10), `${texts}`);
        equal(
            shares,
            [...shares].sort((a, b) => b - a),
            "greatest first",
        );
    });
});

test("in the table of threads a thread has its name, and leads to its lane", async () => {
    /* The main thread's number is that of the process, and the first. */
    const { threads } = runJson("threads", example("shop-c"));
    const main = Math.min(...threads.map(({ id }) => id));
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=threads");
        const names = page.locator(".table tbody td:first-child");
        await names.first().waitFor();
        const sorted = (await names.allTextContents()).map((text) => text.trim()).sort();
        equal(sorted.length, 6, "all threads");
        const row = page.locator(".table tbody tr", { hasText: String(main) });
        const called = await row.locator("td").first().textContent();
        equal(called, "thread 1 main", "the main thread");
        ok(sorted.includes("thread 3 flush"), sorted.join());
        await row.click();
        await until("its lane", async () =>
            (await page.textContent(".details h2")).startsWith(called),
        );
    });
});

test("the order of lanes is that of the finding until another is chosen", async () => {
    for (const name of ["shop-c", "shop-go"])
        await serving(example(name), async (open) => {
            const page = await open();
            const order = page.getByLabel("sort by");
            await page.locator(".details .say").waitFor();
            const chosen = () => order.evaluate((of) => of.selectedOptions[0].textContent);
            await until("the finding", async () => (await chosen()) === "sort by finding");
            ok(/by appearance$/.test(await order.getAttribute("title")), "then by");
            const [first] = (await fragment(page, "lead")).split(".");
            ok(first !== "0", "the first lane is another one's");
            await order.selectOption("appearance");
            equal(await fragment(page, "lead"), null, "none comes first");
            equal(await chosen(), "sort by appearance", "what is so");
            equal(await order.locator("option", { hasText: "finding" }).count(), 0, "options");
        });
});

test("the search takes keys at once", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open();
        for (let i = 0; i < 10; i++) {
            /* Without a pause: the second key comes before the page could have drawn anything. */
            await Promise.all([..."/flush"].map((key) => page.keyboard.press(key)));
            equal(await page.locator(".palette input").inputValue(), "flush", `the ${i + 1}. time`);
            await page.keyboard.press("Escape");
        }
    });
});

/* Goroutine 1 asks 20 times; goroutine 2 answers, the last time after it has slept for 95 ms. Times in ns after 1000. */
function slowAnswer() {
    const asks = [];
    const answers = [];
    let [asked, answered] = [2, 2];
    const put = (to, last, at, text) => {
        to.push(text.replace(" ", ` dt=${at - last} `));
        return at;
    };
    const ask = (at, text) => {
        asked = put(asks, asked, at, text);
    };
    const answer = (at, text) => {
        answered = put(answers, answered, at, text);
    };
    const waits = "key_string=1 value_string";
    let now = 1e6;
    for (let i = 1; i <= 20; i++) {
        const end = now + (i < 20 ? 1e6 : 100e6);
        ask(now - 10, `UserLog task=0 ${waits}=2 stack=0`);
        ask(now, "GoBlock reason_string=3 stack=0");
        if (i === 20) {
            answer(now + 1e6, `UserLog task=0 ${waits}=4 stack=0`);
            answer(now + 1e6 + 1, "GoBlock reason_string=4 stack=0");
            answer(now + 96e6, "GoUnblock g=2 g_seq=1 stack=0");
            answer(now + 96e6 + 10, "GoStart g=2 g_seq=2");
        }
        answer(end, `GoUnblock g=1 g_seq=${2 * i - 1} stack=0`);
        ask(end + 10, `GoStart g=1 g_seq=${2 * i}`);
        now = end + 1e6;
    }
    return ofOne(
        "slow-answer",
        asks.join("\n"),
        { 1: "wait", 2: "read pipe:[7]", 3: "network", 4: "sleep" },
        `EventBatch gen=1 m=101 time=1000 size=auto
ProcStatus dt=1 p=1 pstatus=1
GoStatus dt=1 g=2 m=101 gstatus=2
${answers.join("\n")}
`,
    );
}

test("a slow answer is shown where what gave it slept", async () => {
    await serving(slowAnswer(), async (open) => {
        const page = await open();
        await until("the sleep", async () =>
            /^G2/.test((await page.textContent(".details h2").catch(() => "")) ?? ""),
        );
        ok(/sleep/.test(await page.textContent(".details dd")), "it sleeps");
    });
});

test("a pool that is too small is shown where one of it sleeps", async () => {
    for (const name of ["pool", "pool-six"])
        await serving(example(name), async (open) => {
            equal(runJson("summary", example(name)).findings[0].kind, "pool-too-small", name);
            const page = await open();
            await until("one of the pool", async () =>
                /main\.answer$/.test((await page.textContent(".details h2").catch(() => "")) ?? ""),
            );
            ok(/sleep/.test(await page.textContent(".details dd")), "it sleeps");
        });
});

/* In the shops flush sleeps with the lock, as their sources have it. */
for (const [name, whose, kind] of [
    ["shop-c", "flush", "mutex cache_mu"],
    ["shop-go", "main.(*shop).flush (inferred)", "sync.(*Mutex).Lock in main.(*shop).lookUp"],
])
    test(`${name}: a wait for a lock says who held it, in its span and beside it`, async () => {
        await serving(example(name), async (open, ask) => {
            const keepTexts = () => {
                globalThis.drawn = new Set();
                const draw = CanvasRenderingContext2D.prototype.fillText;
                CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
                    globalThis.drawn.add(text);
                    draw.call(this, text, ...rest);
                };
            };
            const page = await open("", {}, ".facts", keepTexts);
            const wanted = `${kind}, held by ${whose}`;
            await until(`"${wanted}"`, () =>
                page.evaluate((text) => globalThis.drawn.has(text), wanted),
            );
            /* Where its place has no room, the holder has. */
            const short = wanted.replace(/ in [^,]+/, "");
            ok(await page.evaluate((text) => globalThis.drawn.has(text), short), short);
            /* Its lane is the first. */
            const rows = await page.locator("canvas.rows").boundingBox();
            await page.mouse.move(rows.x + rows.width / 2, rows.y + measure("lane-height") / 2);
            const tip = await page.locator(".tip").textContent();
            ok(tip.includes(`waiting: ${wanted}, 1`), `the tip: ${tip}`);
            const buttons = await page.locator(".details .buttons").boundingBox();
            ok(buttons.y + buttons.height <= 800, "the buttons are in view");
            const { spans } = await ask("spans?kind=goroutine&from=0&to=200000000");
            const long = spans.filter(
                (of) =>
                    of.reason === "sync" &&
                    /look_?up$/i.test(of.function) &&
                    of.end - of.begin > 8e6,
            );
            ok(long.length > 3, "long waits of the look-up");
            for (const of of long) ok(/flush$/.test(of.held_by?.name), JSON.stringify(of));
            const [{ lane, span }] = long;
            const other = await open(`#sel=g${lane}.${span}&tab=span`);
            const holder = other.locator(".details dt:text('Held by') + dd button");
            ok(/flush/.test(await holder.textContent()), "beside it");
            const state = await other.textContent(".details dd");
            ok(state.includes(kind.split(" in ")[0]), `${state}, as in the lane`);
            await holder.click();
            await until("what the holder does", async () =>
                /sleep/.test(await other.textContent(".details dd")),
            );
        });
    });

test("where events are lost the lane of a goroutine is hatched, and the selection says why", async () => {
    const data = readFileSync(example("load-go1.21"));
    data.fill(0xff, data.length / 20, data.length / 20 + 30);
    const path = join(folder, "gaps.trace");
    writeFileSync(path, data);
    await serving(path, async (open, ask) => {
        const { rows } = await ask("lanes?kind=goroutine");
        /* The longest time without a state between two of its states. */
        let gap = { ns: 0 };
        for (const [lane, , , , end, , spans] of rows)
            for (let span = 0; span < Math.min(spans, 300); span++) {
                const of = await ask(`span?kind=goroutine&lane=${lane}&span=${span}`);
                const ns = of.end - of.begin;
                if (of.state === "none" && of.end < end && ns > gap.ns)
                    gap = { ns, lane, span, of };
            }
        ok(gap.ns > 0, "events are lost");
        const third = Math.floor(gap.ns / 3);
        const page = await open(
            `#w=${gap.of.begin + third}-${gap.of.end - third}&sel=g${gap.lane}.${gap.span}&tab=span`,
        );
        await until("the hatch", () =>
            page.evaluate(
                ([left, ink]) => {
                    const rows = document.querySelector("canvas.rows");
                    const to = rows.getContext("2d");
                    const { data } = to.getImageData(left + 50, 0, 600, rows.height);
                    let seen = 0;
                    for (let i = 0; i < data.length; i += 4)
                        seen += ink.every((part, j) => Math.abs(part - data[i + j]) < 12);
                    return seen > 100;
                },
                [measure("lane-names"), color("s-unknown")],
            ),
        );
        equal((await page.textContent(".details dd")).trim(), "not recorded", "the state");
    });
});

test("without findings in a damaged trace, it is said how much is unknown", async () => {
    const path = join(folder, "cut.trace");
    writeFileSync(path, readFileSync(example("load-go1.23")).subarray(0, 20312));
    await serving(path, async (open, ask) => {
        const { activity, findings, begin_ns, end_ns } = await ask("run?command=summary");
        equal([findings, activity.lost_ns > 0], [[], true], "the trace");
        const share = ((100 * activity.lost_ns) / (end_ns - begin_ns))
            .toFixed(1)
            .replace(/^100\.0$/, "100");
        const page = await open();
        const of = page.locator(".healthy");
        const nothing = "No known problem found where states are known.";
        equal(await of.locator("h2").textContent(), nothing, "the heading");
        const text = (await of.locator("p").textContent()).replaceAll("\u00a0", " ");
        ok(
            new RegExp(`^Some states are unknown for .*, ${share} % of the time\\. The`).test(text),
            text,
        );
        /* A share that would be 0.0 % is left out. */
        await page.route(/\/api\/run\?command=summary/, async (route) => {
            const response = await route.fetch();
            const body = await response.json();
            body.activity.lost_ns = 8;
            await route.fulfill({ response, json: body });
        });
        await page.reload();
        await until("few", async () =>
            /^Some states are unknown for 8.ns\. The/.test(await of.locator("p").textContent()),
        );
        await page.unrouteAll({ behavior: "wait" });
        await openTab(page, "Summary");
        await until("in the panel", async () =>
            (await page.textContent(".panel")).includes(nothing),
        );
        const lines = await of.locator("h2").evaluate((heading) => {
            const range = document.createRange();
            range.selectNodeContents(heading);
            return range.getClientRects().length;
        });
        equal(lines, 1, "lines of the folded heading");
    });
});

test("a remedy that refers to a wait is shown with the sentence about that wait", async () => {
    await serving(example("shop-go"), async (open) => {
        const page = await open();
        const { findings } = runJson("summary", example("shop-go"));
        equal(findings.length, 1, "one card, alone");
        const remedy = /Release the lock before that wait/;
        await until("the remedy", async () => remedy.test(await page.textContent(".card p")));
        const text = await page.textContent(".card p");
        ok(/itself waiting \(.*Release the lock before that wait/.test(text), text);
    });
});

test("what has no start function is called the same in lanes and in tables", async () => {
    await serving(example("load-go1.21"), async (open) => {
        const page = await open("#tab=goroutines", {}, ".facts", () => {
            globalThis.drawn = new Set();
            const draw = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
                globalThis.drawn.add(text);
                draw.call(this, text, ...rest);
            };
        });
        await page.getByLabel("group").selectOption("name");
        await until("the group", () =>
            page.evaluate(() =>
                [...globalThis.drawn].some((text) => /^[▸▾] \(unknown\)$/.test(text)),
            ),
        );
        ok(/\(unknown\)/.test(await page.textContent(".panel")), "in the table");
    });
});

test("a system call whose length is not recorded has none", async () => {
    for (const [name, isRecorded] of [
        ["load-go1.19", false],
        ["load-go1.23", true],
    ])
        await serving(example(name), async (open) => {
            const page = await open("#tab=latency");
            const section = page.locator(".panel section", { hasText: "syscalls" });
            await section.waitFor();
            const text = await section.textContent();
            equal(/\b1 ns/.test(text), false, text);
            equal(/median/.test(text), isRecorded, text);
            equal(/of the others is not recorded/.test(text), !isRecorded, text);
        });
});

for (const [name, title] of [
    ["shop-c", "Waits for mutex cache_mu"],
    ["shop-go", "Waits for its lock (inferred)"],
])
    test(`${name}: the span of a lock's holder has the waits for it, each a link`, async () => {
        await serving(example(name), async (open, ask) => {
            const page = await open();
            const list = page.locator(".details section", { has: page.locator(".lock-waits") });
            equal(await list.locator("h3").last().textContent(), title, "what is waited for");
            const [, lane, number] = /^g(\d+)\.(\d+)$/.exec(await fragment(page, "sel"));
            const holder = await ask(`span?kind=goroutine&lane=${lane}&span=${number}`);
            /* The waits of the look-up in the middle of which flush slept in this span. */
            const { spans } = await ask("spans?kind=goroutine&from=0&to=200000000");
            const wanted = spans.filter(({ reason, begin, end, function: of }) => {
                const middle = (begin + end) / 2;
                const isDuring = middle >= holder.begin && middle < holder.end;
                return reason === "sync" && isDuring && /look_?up$/i.test(of);
            });
            ok(wanted.length > 1, `${wanted.length} waits`);
            const rows = await page.locator(".lock-waits li").allTextContents();
            const lengthOf = ({ begin, end }) => ((end - begin) / 1e6).toPrecision(3);
            wanted.sort((a, b) => b.end - b.begin - (a.end - a.begin));
            equal(
                rows.map((row) =>
                    /(\d+) .*work *([\d.]+) ms$/.exec(row.replace("G", " ")).slice(1),
                ),
                wanted.map((of) => [String(of.id), lengthOf(of)]),
                "the waits, longest first",
            );
            await page.locator(".lock-waits button").first().click();
            const first = `g${wanted[0].lane}.${wanted[0].span}`;
            await until("the wait", async () => (await fragment(page, "sel")) === first);
            await until("no list of its own", async () => (await list.count()) === 0);
            /* Their lanes are next to the holder's. */
            const other = await open();
            await other.locator(".lock-waits").waitFor();
            await other.keyboard.press("ArrowDown");
            await until("the lane of another wait", async () =>
                new RegExp(`^(thread |G)${wanted[1].id} `).test(
                    await other.textContent(".details h2"),
                ),
            );
        });
    });

test("at 1280 pixels a panel has its width until something else is selected", async () => {
    await serving(example("shop-go"), async (open) => {
        const page = await open("", { viewport: { width: 1280, height: 800 } });
        await page.locator(".details .say").waitFor();
        await page.getByRole("tab", { name: "Waiting" }).click();
        const last = page.locator(".table thead th").last();
        await last.waitFor();
        equal(await page.locator(".beside").count(), 0, "the explanation has its tab");
        const heads = (await page.locator(".table thead th").allTextContents()).join();
        ok(!/still waiting|held|taken in/.test(heads), `${heads}: nothing to say in these`);
        const { x, width } = await last.boundingBox();
        ok(x + width <= 1280, `the last column ends at ${x + width}`);
        await page.locator(".table tbody tr").first().click();
        await page.locator(".beside dt:text('Held by')").waitFor();
        const beside = await page.locator(".beside").boundingBox();
        ok(beside.width <= 361, `${beside.width} wide`);
    });
});

test("of the requests the slowest is shown at first, with its cause", async () => {
    for (const name of ["shop-c", "shop-go"])
        await serving(example(name), async (open) => {
            const { tasks } = runJson("tasks", example(name));
            const lengthOf = (of) => of.end_ns - of.start_ns;
            const slowest = tasks.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
            const page = await open();
            await page.getByRole("tab", { name: "Requests" }).click();
            await page.locator(".request h2", { hasText: `task ${slowest.id} ` }).waitFor();
            await page
                .locator(".request .rowname, .request .textlink", { hasText: "flush" })
                .first()
                .waitFor();
            const select = await page.locator(".panel select").boundingBox();
            const bars = await page
                .locator(".distribution button")
                .evaluateAll((all) => Math.min(...all.map((of) => of.getBoundingClientRect().top)));
            ok(bars >= select.y + select.height, "no bar is over the choice");
        });
});

test("a range has its waits by what was waited for, in the colours of the lanes", async () => {
    for (const name of ["shop-c", "shop-go"])
        await serving(example(name), async (open, ask) => {
            const page = await open("#r=60000000-70000000&tab=range");
            const { states, by_reason: reasons } = await ask("select?from=60000000&to=70000000");
            const facts = await until("the shares", async () => {
                const all = await page.locator(".panel .fact").allTextContents();
                return all.length > 0 && all.map((text) => text.trim());
            });
            /* Both shops sleep most of the time, and nothing else of them is a sleep. */
            const slept = reasons
                .filter((of) => (of.wait_kind ?? of.reason) === "sleep")
                .reduce((sum, { ns }) => sum + ns, 0);
            const ms = (slept / 1e6).toPrecision(3);
            ok(
                facts.some((text) => text.startsWith(`sleep ${ms} ms (`)),
                facts.join("\n"),
            );
            ok(
                facts.some((text) => /^lock(, WaitGroup)? /.test(text)),
                "those for locks",
            );
            ok(!facts.some((text) => text.startsWith("waiting ")), "all have a class");
            ok(reasons.reduce((sum, { ns }) => sum + ns, 0) === states.waiting, "of all waits");
            const heads = await page.locator(".table").first().locator("th").allTextContents();
            ok(!heads.some((text) => /syscall/.test(text)), `${heads}: nothing is in these`);
            const lane = await page.evaluate(() => {
                const slept = document.querySelector(".stackbar .w-sleep");
                return slept && getComputedStyle(slept).backgroundColor;
            });
            equal(lane?.match(/\d+/g).map(Number), color("s-sleep-wash"), "the colour of sleep");
        });
});

/* What is typed on the first screen, and what Enter then shows. */
const shown = {
    places: (page) => page.textContent(".details"),
    lane: async (page, ask) => {
        const { rows, columns } = await ask("lanes?kind=goroutine&count=50000");
        const lane = /^g(\d+)\./.exec((await fragment(page, "sel")) ?? "")?.[1];
        return lane && String(rows[lane][columns.indexOf("id")]);
    },
    window: async (page) => (await fragment(page, "w")).split("-").map(Number),
    range: (page) => fragment(page, "r"),
    panel: (page) => page.textContent("[role=tabpanel]"),
    filter: (page) => page.getByLabel("Filter").inputValue(),
    stacks: (page) => page.getByLabel("Stacks of").inputValue(),
};
for (const [name, answers] of Object.entries({
    "shop-c": [
        ["thread 5", "lane", (id) => id === "5"],
        ["5", "lane", (id) => id === "5"],
        ["work", "filter", (text) => text === "work"],
        ["look_up", "places", (text) => /look_up/.test(text)],
        ["cache_mu", "panel", (text) => /mutex cache_mu over time|cache_mu/.test(text)],
        ["cache_mu", "places", (text) => /waiting for mutex cache_mu/.test(text)],
        ["task 7", "panel", (text) => text.includes("task 7 request: 39.7 ms")],
        ["70.5ms", "window", ([from, to]) => from <= 70.5e6 && to >= 70.5e6],
        ["0.0705 s", "window", ([from, to]) => from <= 70.5e6 && to >= 70.5e6],
        ["60-62 ms", "range", (text) => text === "60000000-62000000"],
        ["0.06 s - 62ms", "range", (text) => text === "60000000-62000000"],
    ],
    "shop-go": [
        ["G22", "lane", (id) => id === "22"],
        ["goroutine 22", "lane", (id) => id === "22"],
        ["flushOnce", "places", (text) => /flushOnce/.test(text)],
        ["task 7", "panel", (text) => text.includes("task 7 request: 38.3 ms")],
        ["network", "stacks", (text) => text === "net"],
        ["60–62ms", "range", (text) => text === "60000000-62000000"],
    ],
}))
    test(`${name}: what is typed is found, and Enter shows it`, async () => {
        await serving(example(name), async (open, ask, leave) => {
            for (const [text, what, is] of answers) {
                const page = await open();
                await page.keyboard.press("/");
                await page.keyboard.type(text);
                await page.keyboard.press("Enter");
                await until(`${text}: ${what}`, async () =>
                    is((await shown[what](page, ask)) ?? ""),
                );
                await leave(page);
            }
        });
    });

test("results of the search that look alike differ; a time after the end says so", async () => {
    for (const name of ["shop-c", "shop-go"])
        await serving(example(name), async (open) => {
            const page = await open();
            /* Until it has such a result: those of the text before stay for a moment. */
            const search = async (text, result) => {
                await page.keyboard.press("/");
                await page.locator(".palette input").fill(text);
                return until(`results for ${text}`, async () => {
                    const found = page.locator(".palette [role=option]");
                    const texts = await found.allTextContents();
                    return texts.some((one) => result.test(one)) && texts;
                });
            };
            for (const text of ["work", "request", "look"]) {
                const texts = await search(text, /at \d.*, for /);
                equal(new Set(texts).size, texts.length, `different ones of ${texts.join("\n")}`);
            }
            const late = /5.00 s is after the end: the trace is 10\d ms long/;
            await search("5 s", late);
            const window = await fragment(page, "w");
            await page.keyboard.press("Enter");
            ok(late.test(await page.textContent(".message")), "Enter says so");
            equal(await fragment(page, "w"), window, "nothing moves");
        });
});

test("the search has first what begins with the typed text, then words that do so, each in one line", async () => {
    /* How the wanted text is in another: as the first letters of all, of a word, or within a word. */
    const orderIn = (text, wanted) => {
        if (text.startsWith(wanted)) return 0;
        return text.split(/[^a-z0-9]+/).some((word) => word.startsWith(wanted)) ? 1 : 2;
    };
    for (const [name, wanted] of [
        ["load-go1.23", "lock"],
        ["load-go1.23", "main"],
        ["shop-c", "work"],
    ])
        await serving(example(name), async (open) => {
            const page = await open();
            await page.keyboard.press("/");
            await page.keyboard.type(wanted);
            const options = page.locator(".palette [role=option]");
            const texts = await until(`functions, ${wanted}`, async () => {
                const all = await options.allTextContents();
                return all.some((text) => text.startsWith("function")) && all;
            });
            const shown = await options.locator("bdi").allTextContents();
            const orders = shown.map((text) => orderIn(text.toLowerCase(), wanted));
            ok(new Set(orders).size > 1, `of several kinds: ${texts.join("\n")}`);
            equal(
                orders,
                [...orders].sort((a, b) => a - b),
                texts.join("\n"),
            );
            const heights = await options.evaluateAll((all) => all.map((of) => of.offsetHeight));
            equal(new Set(heights).size, 1, "heights");
        });
});

test("lanes with nothing in the window and those of the runtime are folded, and shown when asked for", async () => {
    const { goroutines, origin_ns: origin } = runJson("goroutines", example("load-go1.23"));
    const runtime = goroutines.filter(
        ({ name }) => /^runtime[./]/.test(name) && name !== "runtime.main",
    );
    await serving(example("load-go1.23"), async (open) => {
        const page = await open("#w=10000000-12000000&g=none&all=");
        const line = page.locator(".idle-lanes");
        await line.waitFor();
        const idleOnes = goroutines.filter(
            (one) =>
                !runtime.includes(one) &&
                (one.creation_ns - origin > 12e6 || one.creation_ns - origin + one.total_ns < 10e6),
        );
        const text = await line.textContent();
        ok(
            text.includes(`${idleOnes.length} goroutines do nothing here`),
            `${text}, not ${idleOnes.length}`,
        );
        ok(text.includes(`${runtime.length} goroutines of the runtime are folded`), text);
        await line.getByRole("button", { name: "Show them" }).click();
        await line.getByRole("button", { name: "Show those of the runtime" }).click();
        equal(await fragment(page, "all"), "ir", "in the address");
        await until("both are shown", async () =>
            /runtime's own are shown/.test(await line.textContent()),
        );
    });
});

test("the switch of the runtime's goroutines governs tables and flame graphs, too", async () => {
    const path = example("load-go1.23");
    const ofRuntime = (name) => /^runtime[./]/.test(name) && name !== "runtime.main";
    const { goroutines } = runJson("goroutines", path);
    const many = goroutines.filter(({ name }) => ofRuntime(name)).length;
    const { samples, frames } = runJson("profile", "--type=sync", path);
    const rootOf = ({ stack }) => frames[stack.at(-1)].name;
    const sum = (of) => of.reduce((ns, sample) => ns + sample.ns, 0);
    await serving(path, async (open) => {
        const page = await open("#tab=goroutines&all=");
        const panel = page.locator("[role=tabpanel]");
        await panel.getByText(`${many} goroutines of the runtime are folded.`).waitFor();
        await panel.getByText(`${goroutines.length - many} rows`).waitFor();
        await openTab(page, "Functions");
        await panel.getByText(/start functions of the runtime are folded/).waitFor();
        ok(!/runtime\./.test(await panel.locator("table").textContent()), "none in the table");
        await openTab(page, "Stacks");
        const total = async (of) => {
            const text = `${(sum(of) / 1e6).toPrecision(3)} ms in all`;
            await panel
                .getByText(text.replaceAll(" ms", "\u00a0ms"))
                .or(panel.getByText(text))
                .waitFor();
        };
        await total(samples.filter((of) => !ofRuntime(rootOf(of))));
        await panel.getByRole("button", { name: "Show those of the runtime" }).click();
        await total(samples);
        equal(await fragment(page, "all"), "r", "of the lanes, too");
        await openTab(page, "Goroutines");
        await panel.getByText(`${goroutines.length} rows`).waitFor();
    });
});

test("filters find what is folded of the runtime", async () => {
    const path = example("load-go1.23");
    const workers = runJson("goroutines", path).goroutines.filter(
        ({ name }) => name === "runtime.gcBgMarkWorker",
    );
    ok(workers.length > 1, "several");
    await serving(path, async (open) => {
        const page = await open("#tab=goroutines&all=");
        const rows = page.locator(".table tbody tr", { hasText: "runtime.gcBgMarkWorker" });
        await page.locator(".table tbody tr").first().waitFor();
        equal(await rows.count(), 0, "folded");
        const words = page.getByPlaceholder("Filter rows");
        await words.fill("gcBgMark");
        await rows.first().waitFor();
        equal(await rows.count(), workers.length, "by the table's filter");
        await words.fill("");
        await rows.first().waitFor({ state: "detached" });
        const lanes = await open("#tab=goroutines&all=&f=runtime.gcBgMarkWorker");
        const found = lanes.locator(".table tbody tr", { hasText: "runtime." });
        await found.first().waitFor();
        equal(await found.count(), workers.length, "by the lanes' filter");
    });
});

test("where all of a range is the runtime's, it is folded, and not said to be missing", async () => {
    const { server, url } = await serve(["--words=threads", example("shop-go")]);
    const page = await openPage(`${url}#r=19343222-19353946&tab=flame&all=`);
    const panel = page.locator("[role=tabpanel]");
    await panel.getByLabel("Stacks of").selectOption("running");
    await panel.getByText(/^[\d.]+\sµs in threads of the runtime are folded/).waitFor();
    await idle(page);
    const text = await panel.textContent();
    ok(/Everything here belongs to the runtime/.test(text), text);
    ok(!/Nothing of this kind|0\sns in all/.test(text), text);
    await openTab(page, "Threads");
    await panel.getByText(/^\d+ threads of the runtime are folded/).waitFor();
    ok(!/No thread is there/.test(await panel.textContent()), "nor are its threads");
    equal(page.errors, [], "errors");
    await page.context().close();
    server.kill();
});

for (const [name, width] of [
    ["load-go1.23", 1280],
    ["logs-unlocked", 900],
    ["load-go1.23", 390],
])
    test(`the lanes stay where they are when no problem is found, ${name}, ${width}`, async () => {
        await serving(example(name), async (open) => {
            const page = await open("", { viewport: { width, height: 844 } });
            let answer;
            const answered = new Promise((resolve) => {
                answer = resolve;
            });
            await page.route("**/api/run?command=summary*", async (route) => {
                await answered;
                await route.continue();
            });
            const waiting = new Set();
            page.on("request", (one) => waiting.add(one));
            for (const end of ["requestfinished", "requestfailed"])
                page.on(end, (one) => waiting.delete(one));
            await page.reload();
            const top = () =>
                page.locator("canvas.rows").evaluate((of) => of.getBoundingClientRect().y);
            await page.getByText("Adding up the trace").waitFor();
            await page.locator("canvas.rows").waitFor();
            /* The first frames have no sizes yet; then only the summary's answer is missing. */
            const before = await until("all else is drawn", async () => {
                const at = await top();
                const isMoving = await page.evaluate(async () => {
                    for (let i = 0; i < 3; i++)
                        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                    return document.documentElement.matches("[data-moving]");
                });
                return !isMoving && waiting.size === 1 && (await top()) === at && at;
            });
            answer();
            await page.getByText("No known problem found.").waitFor();
            await idle(page);
            equal(await top(), before, "the top of the lanes");
            await page.unrouteAll({ behavior: "ignoreErrors" });
            const fold = page.getByRole("button", { name: "Overview", exact: true });
            if (width > 390) {
                equal(await fold.getAttribute("title"), "Fold the overview", "unfolded");
                await fold.click();
                ok((await top()) < before, "one line when folded");
                return;
            }
            equal(await fold.count(), 0, "a phone has nothing to unfold");
            await page.setViewportSize({ width: 900, height: 390 });
            await fold.waitFor();
            equal(await fold.getAttribute("title"), "Unfold the overview", "turned");
        });
    });

test("of several cards, the one that is shown says what to do", async () => {
    const [finding, ...others] = runJson("summary", example("shop-c-stuck")).findings;
    ok(others.length > 0 && finding.remedy !== "", "several");
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open();
        const card = page.locator(".card.selected");
        await page.locator(".details .say").waitFor();
        const said = (await card.locator("p").textContent()).replaceAll("\u00a0", " ");
        ok(said.startsWith(withSign(finding.remedy)), said);
    });
});

/* The class of each reason to wait. */
const waitClasses = Object.fromEntries(
    [
        ...readFileSync(
            new URL("../../src/words/wait_classes.def", import.meta.url),
            "utf8",
        ).matchAll(/^WAIT_CLASS\((\w+), *"([^"]+)"\)/gm),
    ].map(([, name, reason]) => [reason, name]),
);

test("the legend has the kinds of waits that occur", async () => {
    const titles = {
        LOCK: "lock, WaitGroup",
        COND: "channel",
        IO: "I/O",
        SLEEP: "sleep",
        IDLE: "idle",
        UNKNOWN: "not recorded",
    };
    const { goroutines } = runJson("goroutines", example("shop-go"));
    const spent = goroutines.flatMap(({ block_ns: of }) =>
        Object.keys(of).filter((reason) => of[reason] > 0),
    );
    const occurs = new Set(spent.map((reason) => waitClasses[reason] ?? "UNKNOWN"));
    await serving(example("shop-go"), async (open) => {
        const page = await open();
        await page.locator(".details .say").waitFor();
        const legend = (await page.locator(".legend > span").allTextContents()).map((of) =>
            of.trim(),
        );
        const shown = Object.keys(titles).filter((of) => legend.includes(titles[of]));
        equal(
            shown,
            Object.keys(titles).filter((of) => occurs.has(of)),
            spent.join(),
        );
        ok(shown.length < Object.keys(titles).length, "not all of them");
    });
});

const SAMPLES = `EventBatch gen=1 m=18446744073709551615 time=0 size=auto
CPUSamples
CPUSample time=1200 m=100 p=0 g=1 stack=0
`;

test("the legend has only what is in the trace, and all of it is seen at 1280 px", async () => {
    const sampled = ofOne("samples", "", {}, SAMPLES);
    for (const path of [...["shop-c", "shop-go", "load-go1.23"].map(example), sampled])
        await serving(path, async (open, ask) => {
            const name = basename(path);
            const page = await open("", { viewport: { width: 1280, height: 800 } });
            const { logs, samples, bars } = await ask("status");
            equal(samples > 0, path === sampled, "CPU samples");
            const [syscalls, ranges] = ["syscall_ns", "range_ns"].map((key) =>
                runJson("goroutines", path).goroutines.some((of) =>
                    Object.values([of[key]].flat()).some((value) =>
                        typeof value === "number" ? value > 0 : Object.keys(value).length > 0,
                    ),
                ),
            );
            const { texts, cut } = await page.locator(".legend").evaluate((of) => ({
                texts: [...of.children].map((one) => one.textContent.trim()),
                cut: of.scrollHeight > of.clientHeight || of.scrollWidth > of.clientWidth,
            }));
            ok(!cut, `${name}: ${texts}`);
            for (const [sign, isThere] of [
                ["running", true],
                ["syscall", syscalls],
                ["log", logs > 0],
                ["CPU sample", samples > 0],
                ["region or task", bars.regions + bars.tasks > 0],
                ["runtime, GC", ranges],
            ])
                equal(texts.includes(sign), isThere, `${name}: ${sign}`);
        });
});

test("the culprit of a finding without a critical path leads the lanes, before those that it keeps waiting", async () => {
    const [finding] = runJson("summary", example("shop-c-stuck")).findings;
    equal(finding.kind, "deadlock", "the finding");
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open();
        const lead = await until("its lanes", () => fragment(page, "lead"));
        /* Threads have lanes in the order of their numbers, which begin at 1; thread 4 waits for what thread 3 holds. */
        equal(finding.goroutine, 3, "the culprit");
        equal(
            lead
                .split(".")
                .slice(0, 2)
                .map((lane) => Number(lane) + 1),
            [3, 4],
            "lanes",
        );
    });
});

test("a card has the bound of what would be saved once, as its figure", async () => {
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open();
        await page.route("**/api/run?command=summary*", async (route) => {
            const answer = await route.fetch();
            const summary = await answer.json();
            const [first] = summary.findings;
            Object.assign(first, { gain_title: "saves at most", gain_figure: "4.72 s" });
            first.bound = "At most 4.72 s of 12.2 s would be saved.";
            await route.fulfill({ response: answer, json: summary });
        });
        await page.reload();
        await page.locator(".details .say").waitFor();
        await until("what to do", async () =>
            (await page.textContent(".card.selected p")).startsWith("Take locks"),
        );
        ok(/4\.72/.test(await page.textContent(".card.selected .figure")), "the figure");
        ok(/ At most 4\.72/.test(await page.textContent(".details .say")), "the selection has all");
    });
});

test("what a card says has all lines that its heading leaves", async () => {
    await serving(example("shop-c-stuck"), async (open) => {
        const page = await open("", { viewport: { width: 1280, height: 800 } });
        await page.locator(".details .say").waitFor();
        const lines = await page.locator(".card.selected .words").evaluate((of) => {
            of.querySelector("p bdi").textContent = "what to do ".repeat(60);
            const { bottom } = of.getBoundingClientRect();
            const range = document.createRange();
            range.selectNodeContents(of);
            const seen = [...range.getClientRects()].filter((line) => line.bottom <= bottom + 1);
            return new Set(seen.map((line) => Math.round(line.bottom / 4))).size;
        });
        equal(lines, 4, "lines");
    });
});

/* A goroutine sleeps with a lock for 85 ms, and another one gives up ten waits for it, after 8 ms each. */
function givenUp() {
    const wait = (i) => `UserLog dt=500000 task=0 key_string=6 value_string=7 stack=0
GoBlock dt=10 reason_string=1 stack=3
GoUnblock dt=8000000 g=3 g_seq=${2 + 2 * i} stack=0
GoStart dt=1000 g=3 g_seq=${3 + 2 * i}
UserLog dt=10 task=0 key_string=6 value_string=11 stack=0`;
    const events = `GoCreate dt=10 new_g=2 new_stack=2 stack=1
GoCreate dt=10 new_g=3 new_stack=3 stack=1
GoBlock dt=10 reason_string=10 stack=1
GoStart dt=10 g=2 g_seq=1
GoBlock dt=10 reason_string=10 stack=2
GoStart dt=10 g=3 g_seq=1
${Array.from({ length: 10 }, (_, i) => wait(i)).join("\n")}
GoBlock dt=10 reason_string=10 stack=3
GoUnblock dt=1000000 g=2 g_seq=2 stack=0
GoStart dt=10 g=2 g_seq=3
UserLog dt=10 task=0 key_string=8 value_string=9 stack=2
GoBlock dt=10 reason_string=10 stack=2
`;
    const strings = {
        1: "sync",
        2: "main.reload",
        3: "main.handler",
        4: "main.go",
        5: "main.main",
        6: "wait",
        7: "mutex config_mu",
        8: "held",
        9: "mutex config_mu 85ms",
        10: "sleep",
        11: "timed out",
    };
    const stack = (id, func) => `Stack id=${id} nframes=1
\tpc=${4096 * id} func=${func} file=4 line=${10 * id}
`;
    const stacks = [5, 2, 3].map((func, i) => stack(i + 1, func)).join("");
    const batch = "EventBatch gen=1 m=18446744073709551615 time=99000000 size=auto\nStacks\n";
    return ofOne("given-up", events, strings, batch + stacks);
}

test("the culprit of waits that are given up is what holds the lock", async () => {
    const path = givenUp();
    const [finding] = runJson("summary", path).findings;
    ok(finding.heading.startsWith("main.reload (main.go:20) held mutex config_mu"), finding.text);
    equal(finding.goroutine, 3, "whose longest wait it is");
    await serving(path, async (open) => {
        const page = await open();
        await page.locator(".details .say").waitFor();
        equal(await page.locator(".details h2").textContent(), "G2 main.reload", "selected");
        await page.locator(".details button", { hasText: "G3 main.handler" }).first().click();
        const holder = page.locator(".details dt:text('Held by') + dd");
        equal(await holder.textContent(), "G2 main.reload", "the holder of the wait");
    });
});

/* G2 waits with a lock, 8 ms at a time, for what G4 sends after a sleep; G3 wants the lock. */
function heldWhileWaiting() {
    const round = (i) => `GoUnblock dt=8000000 g=4 g_seq=${2 + 2 * i} stack=0
GoStart dt=10 g=4 g_seq=${3 + 2 * i}
GoUnblock dt=10 g=2 g_seq=${2 + 2 * i} stack=4
GoBlock dt=10 reason_string=10 stack=4
GoStart dt=10 g=2 g_seq=${3 + 2 * i}
UserLog dt=10 task=0 key_string=8 value_string=9 stack=2
GoUnblock dt=10 g=3 g_seq=${2 + 2 * i} stack=2
GoBlock dt=10 reason_string=12 stack=2
GoStart dt=10 g=3 g_seq=${3 + 2 * i}
UserLog dt=500000 task=0 key_string=6 value_string=7 stack=0
GoBlock dt=10 reason_string=1 stack=3`;
    const events = `GoCreate dt=10 new_g=2 new_stack=2 stack=1
GoCreate dt=10 new_g=3 new_stack=3 stack=1
GoCreate dt=10 new_g=4 new_stack=4 stack=1
GoBlock dt=10 reason_string=10 stack=1
GoStart dt=10 g=4 g_seq=1
GoBlock dt=10 reason_string=10 stack=4
GoStart dt=10 g=2 g_seq=1
GoBlock dt=10 reason_string=12 stack=2
GoStart dt=10 g=3 g_seq=1
UserLog dt=10 task=0 key_string=6 value_string=7 stack=0
GoBlock dt=10 reason_string=1 stack=3
${Array.from({ length: 10 }, (_, i) => round(i)).join("\n")}
`;
    const strings = {
        1: "sync",
        2: "main.refresh",
        3: "main.handler",
        4: "main.go",
        5: "main.main",
        6: "wait",
        7: "mutex cache_mu",
        8: "held",
        9: "mutex cache_mu 8ms",
        10: "sleep",
        12: "network",
        13: "main.database",
    };
    const stack = (id, func) => `Stack id=${id} nframes=1
\tpc=${4096 * id} func=${func} file=4 line=${10 * id}
`;
    const stacks = [5, 2, 3, 13].map((func, i) => stack(i + 1, func)).join("");
    const batch = "EventBatch gen=1 m=18446744073709551615 time=89000000 size=auto\nStacks\n";
    return ofOne("held-while-waiting", events, strings, batch + stacks);
}

test("the culprit of waits for a lock is its holder, also if that itself waits for another", async () => {
    const path = heldWhileWaiting();
    const [finding] = runJson("summary", path).findings;
    equal([finding.kind, finding.goroutine], ["lock-contention", 3], finding.text);
    await serving(path, async (open) => {
        const page = await open();
        await page.locator(".details .say").waitFor();
        equal(await page.locator(".details h2").textContent(), "G2 main.refresh", "selected");
    });
});

test("the lanes of a request come first, in the order of its critical path", async () => {
    const path = example("shop-c");
    const { segments } = runJson("why", "--task=7", path);
    segments.sort((a, b) => a.begin_ns - b.begin_ns);
    const wanted = [...new Set(segments.map(({ goroutine }) => goroutine))];
    await serving(path, async (open) => {
        const page = await open();
        await page.locator(".tile[data-key=slowest_task_ns]").click();
        await page.locator(".panel h2", { hasText: "task 7 request" }).waitFor();
        const lead = await until("its lanes", async () => {
            const found = await fragment(page, "lead");
            return found?.split(".").length === wanted.length && found;
        });
        /* Threads have lanes in the order of their numbers, which begin at 1. */
        equal(
            lead.split(".").map((lane) => Number(lane) + 1),
            wanted,
            "lanes",
        );
        for (const of of ["sel", "finding"])
            equal(await fragment(page, of), null, `${of}: what was shown before`);
        equal(await page.locator(".overview .selected").count(), 0, "findings that are shown");
    });
});

test("a phone shows the whole text of a single card, and its button", async () => {
    await serving(example("shop-go"), async (open) => {
        const page = await open("", { viewport: { width: 390, height: 844 }, hasTouch: true });
        await page.getByRole("button", { name: "Overview", exact: true }).click();
        await page.locator(".card").waitFor();
        await idle(page);
        const cut = await page
            .locator(".card")
            .evaluate((card) =>
                [...card.querySelectorAll("h2, p, button")]
                    .filter(
                        (of) =>
                            of.scrollHeight > of.clientHeight ||
                            of.getBoundingClientRect().right > card.getBoundingClientRect().right,
                    )
                    .map((of) => of.textContent),
            );
        equal(cut, [], "cut off");
    });
});

test("a phone shows two traces and their differences", async () => {
    const { server, url } = await serve(["shop-c", "shop-c-fixed"].map(example));
    try {
        const page = await openPage(url, { viewport: { width: 390, height: 844 } }, "iframe");
        const bottoms = () =>
            Promise.all(
                page
                    .frames()
                    .slice(1)
                    .map(async (frame) => {
                        const rows = frame.locator("canvas.rows");
                        await rows.waitFor();
                        const { y, height } = await rows.boundingBox();
                        /* Six threads, three of them in a group with a row of its own. Frames
                         * begin at a part of a pixel, or are rounded up to one. */
                        return [y + height <= 845, height >= 7 * measure("lane-height")];
                    }),
            );
        await until("all lanes of both are in view", async () =>
            (await bottoms()).flat().every(Boolean),
        );
        await page.getByRole("button", { name: "Differences" }).click();
        await page.locator(".table tbody tr").nth(3).waitFor();
        ok(await page.locator(".verdict").isVisible(), "the verdict");
        ok(await page.locator("iframe").first().isVisible(), "the first trace");
        await page.locator(".table tbody tr").first().click();
        for (const frame of page.frames().slice(1)) {
            await until("what the row is about", () => frame.evaluate(() => location.hash !== ""));
            const { height } = await frame.locator("canvas.rows").boundingBox();
            ok(height > 70, `lanes of ${height} px`);
            equal(await frame.locator(".panels").isVisible(), false, "no stub of a panel");
        }
        await leavePage(page);
    } finally {
        server.kill();
    }
});

test("at 1600 pixels a lock over time is beside the table, and a critical path has its largest parts", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=locks", { viewport: { width: 1600, height: 1000 } });
        await page.locator(".table tbody tr", { hasText: "cache_mu" }).first().click();
        const chart = page.locator(".lock-time");
        await chart.locator(".waterfall").waitFor();
        const [lock, table] = [
            await chart.boundingBox(),
            await page.locator(".table").boundingBox(),
        ];
        ok(lock.x >= table.x + table.width, `at ${lock.x}, beside ${table.x + table.width}`);
        await page.getByRole("tab", { name: "Requests" }).click();
        await page.getByRole("tab", { name: "Critical path" }).click();
        const parts = page.locator(".panel .say", { hasText: "Largest parts" });
        await until("what held the lock", async () =>
            /mutex cache_mu, held by thread 3 flush/.test(await parts.textContent()),
        );
    });
});

test("only what a Go program wrote is said to have Go's format", async () => {
    for (const [name, isGo] of [
        ["pool", true],
        ["shop-c", false],
        ["coroutines", false],
    ])
        await serving(example(name), async (open) => {
            const page = await open();
            equal(/Go 1\./.test(await page.textContent(".facts")), isGo, name);
        });
});

test("stacks are those of CPU samples where the trace has any", async () => {
    for (const [samples, wanted] of [
        [1, "cpu"],
        [0, "sync"],
    ]) {
        const path = ofOne(
            `stacks-${wanted}`,
            "GoBlock dt=8000000 reason_string=1 stack=0",
            { 1: "sync" },
            samples ? SAMPLES : "",
        );
        await serving(path, async (open, ask) => {
            equal((await ask("status")).samples, samples, "samples");
            const page = await open("#tab=flame");
            equal(await page.getByLabel("Stacks of").inputValue(), wanted, "stacks");
        });
    }
});

test("a phone shows the cause of the slowest request at once, and its lanes whole", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=requests", { viewport: { width: 390, height: 844 } });
        const cause = page.locator(".request .say");
        await cause.waitFor();
        const { y, height } = await cause.boundingBox();
        ok(y + height < 400, `the cause ends at ${y + height}`);
        const ends = await page
            .locator(".waterfall .track")
            .evaluateAll((all) => all.map((of) => of.getBoundingClientRect().right));
        ok(ends.length > 4 && Math.max(...ends) <= 390, `lanes end at ${ends}`);
    });
});

test("a phone is tapped, and has no arrow keys", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#w=0-9000000", { viewport: { width: 390, height: 844 } });
        const text = await page.locator(".inspector .empty").textContent();
        equal(text, "Tap a span of the timeline to see what it is.", "without a selection");
    });
});

test("a critical path names its thread once", async () => {
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=path&why=goroutine%3D3");
        const heading = page.getByRole("heading", { name: "Critical path of" });
        equal(await heading.textContent(), "Critical path of thread 3 flush", "the heading");
    });
});

test("the tip of a cell has its exact value with a unit, or what the cell shows", async () => {
    const { locks } = runJson("locks", example("shop-c"));
    await serving(example("shop-c"), async (open) => {
        const page = await open("#tab=locks");
        const titles = async (name) =>
            page
                .locator(`.table tbody tr:has(td:first-child:text-is("${name}")) td`)
                .evaluateAll((all) => all.map((of) => of.title));
        await rowsWhenThere(page);
        const { waits, wait_ns, hold_ns } = locks.find(({ name }) => name === "cache_mu");
        const exact = (ns) => `${ns.toLocaleString("en-US")} ns`;
        const [, , many, waited, , , , held] = await titles("cache_mu");
        equal([many, waited, held], [String(waits), exact(wait_ns), exact(hold_ns)], "a mutex");
        equal((await titles("flush"))[7], "", "nothing holds a thread's exit");
    });
});

test("the figure of the lock that is waited for most leads to that lock, over time", async () => {
    for (const name of ["shop-c", "load-go1.23"]) {
        const { locks } = runJson("locks", example(name));
        const lengths = locks.filter((of) => of.can_be_held).map((of) => of.wait_ns);
        const most = locks.find((of) => of.wait_ns === Math.max(...lengths));
        await serving(example(name), async (open) => {
            const page = await open();
            await page.locator(".tile[data-key=lock_ns]").click();
            const heading = page.locator(".lock-time h2");
            await heading.waitFor();
            equal(await heading.textContent(), `${most.title} over time`, "the heading");
            const shown = page.locator(".table tbody tr[aria-current=true]");
            equal(await shown.count(), 1, "the rows that are marked");
            equal(
                await shown.locator("td").nth(2).getAttribute("data-value"),
                String(most.waits),
                "its waits",
            );
        });
    }
});

test("an address that is opened in a comparison changes its frames", async () => {
    const { server, url } = await serve(["shop-c", "shop-c-fixed"].map(example));
    try {
        const page = await openPage(url, {}, "iframe");
        for (const frame of page.frames().slice(1)) await frame.locator("canvas.rows").waitFor();
        await idle(page);
        const [first] = page.frames().slice(1);
        const path = await first.evaluate(() => location.pathname);
        await page.evaluate(() => {
            location.hash = `#a=${encodeURIComponent("w=40000000-50000000")}`;
        });
        await until("it is shown", () =>
            first.evaluate(() => /w=4\d{7}-5\d{7}/.test(location.hash)),
        );
        equal(await first.evaluate(() => location.pathname), path, "it is the same trace");
        await leavePage(page);
    } finally {
        server.kill();
    }
});

test("of two traces, too, the runtime's own goroutines are folded", async () => {
    const { server, url } = await serve(["load-go1.21", "load-go1.23"].map(example));
    try {
        const page = await openPage(url, {}, "iframe");
        for (const frame of page.frames().slice(1))
            await frame.locator(".idle-lanes", { hasText: "of the runtime are folded" }).waitFor();
        equal(page.frames().length, 3, "both");
        await leavePage(page);
    } finally {
        server.kill();
    }
});

test("a phone shows the cards, the timeline of a finding, or one panel; controls are for fingers", async () => {
    await serving(example("shop-c-stuck"), async (open) => {
        const phone = { viewport: { width: 390, height: 844 }, hasTouch: true };
        const page = await open("", phone);
        const lanes = page.locator("canvas.rows");
        const panel = page.getByRole("tabpanel");
        const findings = page.locator(".chip");
        const small = () =>
            page.evaluate(() =>
                [...document.querySelectorAll("button, select, input")]
                    .filter((of) => of.checkVisibility() && !of.closest("table, dd"))
                    .filter((of) => of.getBoundingClientRect().height < 40)
                    .map((of) => of.outerHTML),
            );
        const cards = page.locator(".card");
        /* At first the worst finding in two lines, its lanes, and where it is in them. */
        const first = page.locator(".chip.selected");
        await first.waitFor();
        await idle(page);
        const { y, height: high } = await first.boundingBox();
        ok(high <= 60, `${high} high`);
        const { top, bottom } = await lanes.evaluate((of) => of.getBoundingClientRect().toJSON());
        /* Six threads, and the name of a group. */
        ok(top > y + high && bottom - top >= 7 * measure("lane-height"), `${top} to ${bottom}`);
        ok(await fragment(page, "sel"), "the culprit is selected");
        equal([await cards.count(), await panel.isVisible()], [0, false], "nothing else");
        await page.getByRole("button", { name: "Overview", exact: true }).click();
        await cards.first().waitFor();
        equal([await lanes.isVisible(), await panel.isVisible()], [false, false], "the cards");
        const cut = await cards.evaluateAll((all) =>
            all
                .flatMap((of) => [...of.querySelectorAll("h2, p")])
                .filter(
                    (of) => of.scrollHeight > of.clientHeight || of.scrollWidth > of.clientWidth,
                )
                .map((of) => of.textContent),
        );
        equal(cut, [], "cut texts");
        equal(await small(), [], "small controls of cards");
        await cards.nth(1).getByRole("button").click();
        await until("the timeline", () => lanes.isVisible());
        await idle(page);
        equal([await cards.count(), await panel.isVisible()], [0, false], "alone");
        equal(
            await findings.evaluateAll((all) =>
                all.filter((of) => of.checkVisibility()).map((of) => of.matches(".selected")),
            ),
            [true],
            "the finding that is shown",
        );
        equal(await small(), [], "small controls");
        for (const name of ["Selection", "Findings", "Waiting", "Requests", "CPU", "Data"]) {
            await page.getByRole("tab", { name, exact: true }).click();
            await until(name, async () => !(await lanes.isVisible()) && (await panel.isVisible()));
            ok(!(await findings.first().isVisible()), `${name} has the screen`);
            const { height } = await panel.boundingBox();
            ok(height > 844 / 2, `${name} is ${height} high`);
        }
        equal(await small(), [], "small controls of panels");
        /* What a panel leads to is seen. */
        await page.getByRole("tab", { name: "Findings", exact: true }).click();
        const tiles = panel.locator(".tile");
        const seen = await until("the figures", async () => {
            const all = await tiles.evaluateAll((all) => all.map((of) => of.checkVisibility()));
            return all.length > 3 && all;
        });
        ok(seen.every(Boolean), `${seen}: all figures`);
        await panel.locator(".findings button").nth(1).click();
        await until("the timeline", () => lanes.isVisible());
        ok(!(await panel.isVisible()), "in place of the panel");
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        ok(wide <= 390, `${wide} wide`);
    });
});

test("axe finds nothing to complain about on the first screen, from a phone to a wide screen", async () => {
    await serving(example("shop-c"), async (open, _, leave) => {
        for (const [width, height] of [
            [390, 844],
            [1280, 800],
            [1680, 1000],
        ])
            for (const colorScheme of ALL || width === 1280 ? ["light", "dark"] : ["light"]) {
                const page = await open("", {
                    viewport: { width, height },
                    colorScheme,
                    bypassCSP: true,
                });
                await page.locator(".card, .chip").first().waitFor();
                await idle(page);
                equal(await complaints(page, colorScheme), [], `${width} ${colorScheme}`);
                await leave(page);
            }
    });
});

test("nothing is cut on a tablet, and the help's button hides nothing on a phone", async () => {
    await serving(example("load-go1.23"), async (open, _, leave) => {
        for (const width of [768, 900]) {
            const page = await open("", { viewport: { width, height: 800 } });
            /* Of what is beyond the right edge, and of tabs that have to be scrolled to. */
            const cut = await page.evaluate(() =>
                [...document.querySelectorAll("header *, .tools.lanes *, [role=tablist] *")]
                    .filter((of) => of.checkVisibility() && !of.closest(".hidden, .label"))
                    .filter((of) => of.getBoundingClientRect().right > innerWidth)
                    .map((of) => of.textContent),
            );
            equal(cut, [], `${width}`);
            await leave(page);
        }
        const page = await open("", { viewport: { width: 390, height: 844 } });
        await page.keyboard.press("?");
        const foot = await page.locator(".help").evaluate((of) => {
            const foot = of.querySelector(".foot");
            const edge = of.getBoundingClientRect();
            const { left, right, bottom } = foot.getBoundingClientRect();
            /* Firefox has a scroll bar beside it. */
            const bar = of.offsetWidth - of.clientWidth;
            return {
                isWide: left <= edge.left && right >= edge.right - bar && bottom >= edge.bottom,
                background: getComputedStyle(foot).backgroundColor,
            };
        });
        /* Texts scroll behind all of it, and are not seen through it. */
        ok(foot.isWide, "as wide as the dialog");
        equal(foot.background, `rgb(${color("raised").join(", ")})`, "its background");
    });
});

test("the browser's back and forward go through what was looked at, and each view has its link", async () => {
    await serving(example("shop-c-stuck"), async (open, _, leave) => {
        const page = await open();
        /* What is seen: the address, the card and the span that are selected, and the open panel. */
        const seen = async (of) => {
            await idle(of);
            return of.evaluate(() => ({
                place: location.hash,
                card: document.querySelector(".card.selected, .chip.selected")?.title,
                span: document.querySelector(".details h2")?.textContent,
                says: document.querySelector(".details .say")?.textContent,
                panel: document.querySelector("[role=tabpanel]:not([hidden])")?.ariaLabel,
            }));
        };
        const entries = () => page.evaluate(() => history.length);
        await until("the first finding", async () => (await seen(page)).says);
        const views = [await seen(page)];
        const steps = [
            () => page.locator(".card button").nth(1).click(),
            () => page.getByRole("tab", { name: "Waiting" }).click(),
            () => page.keyboard.press("ArrowLeft"),
            () => page.keyboard.press("0"),
            () => page.keyboard.press("2"),
        ];
        for (const step of steps) {
            const before = await entries();
            await step();
            await until(`another view by ${step}`, async () => {
                const now = await seen(page);
                return now.place !== views.at(-1).place && (await entries()) > before;
            });
            views.push(await seen(page));
            equal(await entries(), before + 1, `an entry for ${step}`);
        }
        /* A move changes the view that it moves. */
        const before = await entries();
        await page.keyboard.press("w");
        views[views.length - 1] = await seen(page);
        equal(await entries(), before, "a move is no entry");
        for (const [i, view] of [...views.entries()].reverse()) {
            await until(`back to view ${i}`, async () => (await seen(page)).place === view.place);
            equal(await seen(page), view, `view ${i}`);
            if (i > 0) await page.goBack();
        }
        for (const view of views.slice(1)) {
            await page.goForward();
            await until("forward", async () => (await seen(page)).place === view.place);
            equal(await seen(page), view, "forward");
        }
        for (const view of views) {
            const other = await open(view.place);
            const { place, ...shown } = view;
            await until(`the same by ${place}`, async () => {
                const { place: _, ...there } = await seen(other);
                return JSON.stringify(there) === JSON.stringify(shown);
            });
            await leave(other);
        }
    });
});

/* The number of events that the page names, and that of the command. */
const eventsOf = async (page) =>
    Number(
        (/([\d,]+) events/.exec(await page.textContent(".facts")) ?? "0")[1].replaceAll(",", ""),
    );

for (const [name, change] of [
    ["overwritten", (path) => writeFileSync(path, readFileSync(example("load-go1.23")))],
    [
        "replaced",
        (path) => {
            writeFileSync(`${path}.new`, readFileSync(example("load-go1.23")));
            renameSync(`${path}.new`, path);
        },
    ],
    ["grown", (path) => writeFileSync(path, readFileSync(example("shop-c")))],
])
    test(`a file that is ${name} while it is shown is noticed, never mixed, and read anew by one click`, async () => {
        const path = join(folder, `${name}.trace`);
        const first = readFileSync(example("shop-c"));
        writeFileSync(path, name === "grown" ? first.subarray(0, first.length - 600) : first);
        await serving(path, async (open, ask) => {
            const page = await open();
            const before = await eventsOf(page);
            equal((await ask("status")).changed, false, "as it was read");
            change(path);
            const banner = page.getByRole("alert").filter({ hasText: "has changed since" });
            await banner.waitFor();
            equal(await eventsOf(page), before, "what is shown stays");
            const { error, goroutines } = await ask("run?command=goroutines&sort=exec");
            /* A new file leaves the old one as it was; other bytes in the old one are not read. */
            if (name === "replaced")
                equal(goroutines.length, 6, "threads of the file that was read");
            else equal(error, "the file has changed since it was read: read it again", "an answer");
            await banner.getByRole("button").click();
            const { events } = runJson("summary", path);
            await until("the new file", async () => (await eventsOf(page)) === events);
            await until("its findings or figures", () => page.locator(".tiles").isVisible());
            equal(await banner.count(), 0, "no banner");
            const again = await ask("run?command=goroutines&sort=exec");
            equal(again.goroutines.length, (await ask("status")).goroutines, "of the new file");
            /* The browser writes its refused answers to the console. */
            page.errors = page.errors.filter((one) => !/status of 409/.test(one));
        });
    });

await main();
