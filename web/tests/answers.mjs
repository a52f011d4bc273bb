// What the page says of traces that are made by hand, where a plain reading of the trace says what is right.
// Arguments: the trail command, the tree's folder, trail-generate. Skipped without Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { join } from "node:path";
import {
    equal,
    idle,
    main,
    needBrowser,
    ok,
    openPage,
    openTab,
    runJson,
    serve,
    test,
    trail,
    until,
} from "./browser.mjs";
import { example, folder, fragment, generated, ofOne, rowsWhenThere, serving } from "./traces.mjs";

needBrowser();

/* MARK: Spans */

test("the span of a system call has the file or socket that a log before it names, also where the slot is lost", async () => {
    const path = ofOne(
        "calls",
        `UserLog dt=98 task=0 key_string=1 value_string=2 stack=0
GoSyscallBegin dt=1 p_seq=1 stack=0
GoSyscallEnd dt=2000000
GoSyscallBegin dt=1000 p_seq=2 stack=0
GoSyscallEnd dt=1000000
UserLog dt=1000 task=0 key_string=1 value_string=3 stack=0
GoSyscallBegin dt=1 p_seq=3 stack=0
GoSyscallEndBlocked dt=9000000`,
        { 1: "wait", 2: "file access.log", 3: "write socket:[7]" },
        "EventBatch gen=1 m=101 time=6000000 size=auto\nProcSteal dt=1 p=0 p_seq=4 m=100\n",
    );
    await serving(path, async (open, ask) => {
        const found = [];
        for (let number = 0; number < 7; number++) {
            const { state, phrase, object } = await ask(`span?lane=0&span=${number}`);
            if (!/running|runnable/.test(state)) found.push([number, state, phrase, object]);
        }
        equal(
            found.map(([, ...facts]) => facts),
            [
                ["syscall", "waiting for file", "access.log"],
                ["syscall", null, null],
                ["syscall", "waiting to write", "socket:[7]"],
                ["blocked", "waiting to write", "socket:[7]"],
            ],
            "system calls",
        );
        const texts = [];
        for (const [number] of found) {
            const page = await open(`#sel=g0.${number}&tab=span&top=0`);
            const state = page.locator(".details dd").first();
            texts.push((await state.textContent()).trim());
        }
        equal(
            texts.slice(0, 3),
            [
                "syscall: waiting for file access.log",
                "syscall",
                "syscall: waiting to write socket:[7]",
            ],
            "in words",
        );
        const last = texts[3];
        ok(/^syscall, [^:]+: waiting to write socket:\[7\]$/.test(last), last);
    });
});

/* MARK: Locks */

test("what is only signalled, as a WaitGroup or a Cond, is not said to be held", async () => {
    const path = example("load-go1.23");
    const { locks } = runJson("locks", path);
    const wanted = { "sync.(*Mutex).Lock": true, "sync.(*Cond).Wait": false };
    wanted["sync.(*WaitGroup).Wait"] = false;
    await serving(path, async (open) => {
        for (const [kind, isHeld] of Object.entries(wanted)) {
            /* The row with most waits. */
            const [lock] = locks
                .filter((one) => one.kind === kind)
                .sort((a, b) => b.waits - a.waits);
            equal(lock.can_be_held, isHeld, `${kind} in the command's answer`);
            const page = await open("#tab=locks&top=0");
            const row = page.locator(".table tbody tr", {
                has: page.locator(`td[data-value="${kind}"]`),
                hasText: String(lock.waits),
            });
            await row.first().click();
            const text = await until("a moment", async () => {
                const said = await page.locator(".lock-time p").first().textContent();
                return /ended by/.test(said) && said;
            });
            await idle(page);
            equal(/held it, as is inferred/.test(text), isHeld, `${kind}: ${text}`);
            equal((await page.locator(".swatch.held").count()) > 0, isHeld, `${kind}: bars`);
        }
    });
});

test("of more holds than one answer has, those of the timeline's window are shown", async () => {
    const HOLDS = 2500;
    const path = ofOne(
        "holds",
        `UserLog dt=1000 task=0 key_string=1 value_string=2 stack=0
GoBlock dt=1 reason_string=3 stack=0
GoStart dt=20000 g=1 g_seq=2
${"UserLog dt=10000 task=0 key_string=4 value_string=5 stack=0\n".repeat(HOLDS).trim()}`,
        {
            1: "wait",
            2: "rwlock to read hot_rw",
            3: "sync",
            4: "held",
            5: "rwlock to write hot_rw 2us",
        },
        `EventBatch gen=1 m=101 time=1000 size=auto
ProcStatus dt=1 p=1 pstatus=1
GoStatus dt=1 g=2 m=101 gstatus=2
GoUnblock dt=10000 g=1 g_seq=1 stack=0
`,
    );
    const ends = String(execFileSync(trail, ["print", path]))
        .split("\n")
        .filter((line) => line.includes('held: "rwlock to write hot_rw'))
        .map((line) => Math.round(1e9 * Number(line.trim().split(" ")[0])));
    equal(ends.length, HOLDS, "holds in the trace");
    await serving(path, async (open, ask) => {
        const { end } = await ask("status");
        const page = await open("#tab=locks&top=0");
        await page.locator(".table tbody tr", { hasText: "hot_rw" }).click();
        const bars = page.locator(".lock-time .region:not(.wait-bar)");
        const shows = (from) => {
            const wanted = Math.min(1000, ends.filter((at) => at >= from).length);
            return until(`${wanted} holds`, async () => (await bars.count()) === wanted);
        };
        const show = async (window) => {
            /* The page's own address, still to be written, would replace this one. */
            await idle(page);
            await page.evaluate((wanted) => {
                location.hash = location.hash.replace(/w=[^&]*/, `w=${wanted}`);
            }, window);
        };
        await show(`0-${end}`);
        await shows(0);
        const from = Math.round(end * 0.9);
        await show(`${from}-${end}`);
        await shows(from);
        const said = await page.locator(".lock-time .warn").textContent();
        ok(/^Of very many holds those that end from .* to .* are shown/.test(said), said);
    });
});

/* MARK: Tasks over time */

/* The contrast of two colours "rgb(r, g, b)", as WCAG 2.1 defines it. */
function contrast(...colors) {
    const [a, b] = colors
        .map((color) => {
            const [red, green, blue] = /^rgb\((\d+), (\d+), (\d+)\)$/
                .exec(color)
                .slice(1)
                .map((byte) => byte / 255)
                .map((of) => (of <= 0.04045 ? of / 12.92 : ((of + 0.055) / 1.055) ** 2.4));
            return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        })
        .sort((one, other) => other - one);
    return (a + 0.05) / (b + 0.05);
}

test("text over a task's states can be read on the colour of each, in light and dark", async () => {
    const path = ofOne(
        "states",
        `UserTaskBegin dt=98 task=1 parent_task=0 name_string=1 stack=0
GoSyscallBegin dt=4000000 p_seq=1 stack=0
GoSyscallEnd dt=4000000
GoBlock dt=1000 reason_string=2 stack=0
GoStart dt=8000000 g=1 g_seq=2
UserTaskEnd dt=4000000 task=1 stack=0`,
        { 1: "request", 2: "sleep" },
        `EventBatch gen=1 m=101 time=1000 size=auto
ProcStatus dt=1 p=1 pstatus=1
GoUnblock dt=12000000 g=1 g_seq=1 stack=0
`,
    );
    await serving(path, async (open) => {
        for (const colorScheme of ["light", "dark"]) {
            const page = await open("#tab=requests&why=task%3D1", { colorScheme });
            const texts = page.locator(".onpath span");
            await texts.first().waitFor();
            const shown = await texts.evaluateAll((all) =>
                all.map((of) => {
                    const { color, backgroundColor } = getComputedStyle(of);
                    return [of.textContent.replace(/ [\d.]+ ms$/, ""), color, backgroundColor];
                }),
            );
            equal(
                shown.map(([state]) => state).sort(),
                ["ready", "running", "running", "syscall", "waiting: sleep"],
                "the path",
            );
            for (const [state, color, background] of shown) {
                const found = contrast(color, background);
                ok(found >= 4.5, `${colorScheme}, ${state}: ${found.toFixed(2)}`);
            }
        }
    });
});

/* MARK: Critical paths */

test("of very many steps of a critical path the longest are shown, in order, and how many are not; a range has all", async () => {
    const path = generated("steps", "--goroutines=1000", "--events=60K");
    const whole = runJson("why", "--window", path);
    const { end_ns: end, origin_ns: origin } = whole;
    ok(whole.all > 2000 && whole.segments.length === whole.all, `${whole.all} steps`);
    await serving(path, async (open, ask) => {
        const page = await open(`#tab=path&top=0&why=${encodeURIComponent("window=1")}`);
        const rows = await rowsWhenThere(page);
        const legend = page.locator(".legend");
        ok((await legend.textContent()).includes("critical path"), "its line is in the legend");
        const note = await page.locator(".panel p.warn").textContent();
        const [shown, all, left] = note.match(/\d[\d,]*/g).map((text) => text.replace(/,/g, ""));
        equal([shown, all, left], ["2000", `${whole.all}`, `${whole.all - 2000}`], note);
        const lengths = whole.segments.map((of) => of.end_ns - of.begin_ns);
        const least = [...lengths].sort((a, b) => b - a)[1999];
        ok(
            rows.every((row) => Number(row.duration) >= least),
            "the longest",
        );
        const ats = rows.map((row) => Number(row.at));
        equal(
            ats,
            [...ats].sort((a, b) => a - b),
            "in time order",
        );
        await openTab(page, "Summary");
        await until(
            "no path in the legend",
            async () => !(await legend.textContent()).includes("critical path"),
        );
        /* In a range with fewer steps all of them are there; each begins where the last one ends. */
        const from = Math.floor(((await ask("status")).end * 9) / 10);
        const [a, b] = [from, end - origin];
        const part = runJson("why", "--window", `--from=${a}ns`, `--to=${b}ns`, path);
        ok(part.all > 10 && part.all <= 2000, `${part.all} steps in the range`);
        const other = await open(`#tab=path&top=0&r=${a}-${b}`);
        await rowsWhenThere(other);
        equal(await other.locator(".panel p.warn").count(), 0, "nothing is left out");
        const texts = await other.locator(".table tbody tr td:first-child").allTextContents();
        equal(new Set(texts).size, texts.length, "the begins of steps differ as they are written");
    });
});

/* MARK: The head */

test("while a trace arrives the head has its whole name, and whole buttons, and gives way in the rest", async () => {
    const whole = readFileSync(generated("arriving", "--events=300K", "--rate=100K"));
    const fifo = join(folder, "checkout-service.trace");
    execFileSync("mkfifo", [fifo]);
    /* Open for both, so that neither the reader nor the writer waits for the other. */
    const writer = await openFile(fifo, "r+");
    const { server, url } = await serve([fifo]);
    const pages = [];
    try {
        await writer.write(whole, 0, Math.floor(whole.length * 0.9));
        for (const width of [1280, 800]) {
            const page = await openPage(url, { viewport: { width, height: 800 } });
            pages.push(page);
            const progress = page.locator(".progress span");
            await until("part of a generation", async () =>
                /that has not ended/.test(await progress.textContent()),
            );
            const title = page.locator("h1");
            equal(await title.textContent(), "checkout-service.trace", "the name");
            const [needs, has] = await title.evaluate((of) => [of.scrollWidth, of.clientWidth]);
            ok(needs <= has, `the name has ${has} of ${needs} pixels at ${width}`);
            for (const button of await page.locator("header :is(button, .button)").all()) {
                const box = await button.boundingBox();
                ok(box.x + box.width <= width, `${await button.textContent()} is in view`);
                ok(box.height < 34, `${await button.textContent()} is on one line`);
            }
            const [said, shown] = await progress.evaluate((of) => [of.title, of.textContent]);
            equal(said, shown, "all of it");
        }
    } finally {
        await writer.close();
        for (const page of pages) await page.context().close();
        server.kill();
    }
});

/* MARK: The address */

/* Keeps the texts of messages, which are shown for some seconds only. */
function noteMessages() {
    globalThis.messages = [];
    new MutationObserver(() => {
        const text = document.querySelector(".message")?.textContent;
        if (text && globalThis.messages.at(-1) !== text) globalThis.messages.push(text);
    }).observe(document, { subtree: true, childList: true, characterData: true });
}

const messagesOf = (page) => page.evaluate(() => globalThis.messages);

test("parameters of the address that the page does not know are named, and others are not", async () => {
    const one = "The address has an unknown parameter, which is ignored: run.";
    const two = "The address has unknown parameters, which are ignored: run, day.";
    await serving(example("shop-c"), async (open) => {
        const page = await open("#run=7&tab=locks", {}, ".facts", noteMessages);
        await until("the message", async () => (await messagesOf(page)).includes(one));
        equal(await fragment(page, "tab"), "locks", "what is known holds");
        /* The server's cookie is there: this is how the page is opened again. */
        const address = page.url().replace(/[?#].*/, "");
        await page.goto(`${address}?run=7#day=2`);
        await until("both", async () => (await messagesOf(page)).includes(two));
        await idle(page);
        /* A change of the fragment by hand; the query was there before. */
        await page.evaluate(() => {
            location.hash += "&run=8";
        });
        await until("again", async () => (await messagesOf(page)).at(-1) === one);

        /* All that the page itself writes. */
        await page.goto(`${address}#tab=requests&why=task%3D7&g=none&f=work&s=name&v=p&top=0`);
        await page.reload();
        await page.waitForSelector(".facts");
        await idle(page);
        equal(await messagesOf(page), [], "what it knows");
    });
});

test("a comparison names the parameters that it does not know", async () => {
    const { server, url } = await serve([example("shop-c"), example("shop-c-fixed")]);
    const page = await openPage(`${url}#off=5&run=7`, {}, "iframe", noteMessages);
    try {
        const wanted = "The address has an unknown parameter, which is ignored: run.";
        await until("the message", async () => (await messagesOf(page)).includes(wanted));
        equal(await fragment(page, "off"), "5", "what is known holds");
    } finally {
        await page.context().close();
        server.kill();
    }
});

await main();
