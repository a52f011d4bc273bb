// Calls: stacks, and the spans that begin in a function. Arguments: the trail command, the tree's folder, trail-generate.
// Skipped without Chromium.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import {
    color,
    equal,
    idle,
    main,
    needBrowser,
    ok,
    scheduler as root,
    runJson,
    saved,
    test,
    trail,
    until,
} from "./browser.mjs";
import { example, folder, fragment, rowsOf, serving } from "./traces.mjs";

needBrowser();

/* Waits for each other, written by hand: 421 ns. */
const trace = join(folder, "why.trace");
execFileSync(trail, ["assemble", join(root, "tests/data/why-1.26.txt"), "-o", trace]);

/* What the list of spans shows: begin and duration, by begin. */
async function listed(page, count) {
    const rows = await until("the list", async () => {
        const found = await rowsOf(page, "spans-in-function");
        return found.length === count && found;
    });
    return rows
        .map((row) => [Number(row.begin), Number(row.duration)])
        .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

test("a frame of the call tree, of the flame graph and of a stack lists the spans that begin in it", async () => {
    await serving(trace, async (open, ask) => {
        const right = async (name) => {
            const { all, spans } = await ask(`spans?function=${encodeURIComponent(name)}`);
            equal(all, spans.length, "all are listed");
            ok(all > 0, name);
            return spans
                .map(({ begin, end }) => [begin, end - begin])
                .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
        };
        const lock = await right("sync.(*Mutex).Lock");
        const holder = await right("main.holder");
        const page = await open("#tab=flame");
        await page.getByLabel("shown as").selectOption("tree");
        await page.getByLabel("all spans that begin in this function: sync.(*Mutex).Lock").click();
        equal(await listed(page, lock.length), lock, "of the tree");
        equal(await fragment(page, "fn"), "sync.(*Mutex).Lock", "in the address");
        await page.getByRole("button", { name: "Close the list" }).click();
        equal(await page.locator(".in-function").count(), 0, "closed");

        await page.getByLabel("shown as").selectOption("flame");
        await page.locator(".boxes button", { hasText: "Lock" }).click({ button: "right" });
        await page.getByRole("menuitem", { name: "All spans that begin in this function" }).click();
        equal(await listed(page, lock.length), lock, "of the flame graph");

        /* The wait of G 2 from 60 to 100 begins in main.holder. */
        const span = await open("#sel=g1.2&tab=span");
        await span.locator(".stack").getByRole("button", { name: "main.holder" }).click();
        equal(await listed(span, holder.length), holder, "of a span's stack");
        equal(await fragment(span, "fn"), "main.holder", "in the address");
        const shared = await open(new URL(span.url()).hash);
        equal(await listed(shared, holder.length), holder, "somebody else sees it");
        /* Only what is in the selected range. */
        const part = await open("#tab=flame&fn=main.holder&r=70-90&rl=g1");
        equal(await listed(part, 1), [[60, 40]], "of the range and its lanes");
    });
});

test("a function whose place the server has not looked for leads to the list of its spans", async () => {
    await serving(trace, async (open, ask) => {
        const page = await open();
        /* As of a trace with very many spans. */
        await page.route(/find\?/, async (route) => {
            const answer = await route.fetch();
            const { results, more } = await answer.json();
            const far = ({ type, text, kind }) => ({ type, text, kind, lane: -1, at: 0, end: 0 });
            const json = { results: results.filter((of) => of.type === "function").map(far), more };
            await route.fulfill({ response: answer, json });
        });
        await page.keyboard.press("/");
        await page.keyboard.type("sync.(*Mutex).Lo");
        const option = page.locator(".palette [role=option]", { hasText: "function" });
        await option.click();
        const { all } = await ask(`spans?function=${encodeURIComponent("sync.(*Mutex).Lock")}`);
        await listed(page, all);
        equal(await fragment(page, "fn"), "sync.(*Mutex).Lock", "the function");
    });
});

test("the tip of a box or a cell says what its number is, and its share of what", async () => {
    /* The mutex and three waits for channels and select that end, by their times in the text. */
    const all = 110 + 40 + 20 + 60 + 130;
    await serving(trace, async (open) => {
        const page = await open("#tab=flame");
        const share = `30.6 % of ${all} ns (waits for locks, channels, select)`;
        const box = page.locator(".boxes button", { hasText: "Lock" });
        equal(await box.getAttribute("title"), `sync.(*Mutex).Lock\n110 ns, ${share}`, "a box");
        await page.getByLabel("shown as").selectOption("tree");
        const cells = page.locator("tr:has(td[title='sync.(*Mutex).Lock']) td.number");
        await cells.first().waitFor();
        const tips = await cells.evaluateAll((of) => of.map((one) => one.title));
        equal([tips[0], tips[2]], [`110 ns, ${share}`, `110 ns, ${share}`], "a row");
    });
});

test("a search in the call tree marks matches, adds up their share once, and Enter goes through them", async () => {
    const path = example("load-go1.23");
    const profile = runJson("profile", "--type=sync", path);
    const stacks = profile.samples.map(({ ns, stack }) => ({
        ns,
        names: stack.map((i) => profile.frames[i].name).reverse(),
    }));
    const word = "main.";
    const isMatch = (name) => name.includes(word);
    const ns = stacks.reduce((sum, of) => sum + (of.names.some(isMatch) ? of.ns : 0), 0);
    const nodes = new Set(
        stacks.flatMap(({ names }) =>
            names.flatMap((name, i) => (isMatch(name) ? [names.slice(0, i + 1).join("\n")] : [])),
        ),
    );
    ok(nodes.size > 2 && nodes.size < 60, `${nodes.size} matches`);
    ok(
        stacks.some(({ names }) => names.filter(isMatch).length > 1),
        "a match in a match",
    );
    const share = `${((100 * ns) / profile.ns).toFixed(1)} %`;
    await serving(path, async (open) => {
        const page = await open("#tab=flame");
        await page.getByLabel("shown as").selectOption("tree");
        await page.locator("table.calls tbody tr").first().waitFor();
        await page.getByLabel("Mark functions").fill(word);
        const said = (text) =>
            until(text, async () => (await page.textContent(".matches")) === text);
        await said(`${nodes.size} matches, ${share}`);
        const current = () =>
            page.evaluate(() => {
                const row = document.querySelector("tr[aria-current]");
                if (!row?.classList.contains("match")) return null;
                const { top, bottom } = row.getBoundingClientRect();
                const box = document.querySelector(".panel").getBoundingClientRect();
                return top >= box.top - 1 && bottom <= box.bottom + 1 && row.cells[3].title;
            });
        /* Each match is unfolded to and in view, also those in folded parts; after the last comes the first. */
        for (let i = 0; i < nodes.size; i++) {
            await page.keyboard.press("Enter");
            await said(`${i + 1} of ${nodes.size} matches, ${share}`);
            const name = await until("a row in view", current);
            ok(isMatch(name), name);
        }
        equal(await page.locator("tr.match").count(), nodes.size, "all are marked");
        await page.keyboard.press("Enter");
        await said(`1 of ${nodes.size} matches, ${share}`);
        await page.keyboard.press("Shift+Enter");
        await said(`${nodes.size} of ${nodes.size} matches, ${share}`);
        await page.getByLabel("Mark functions").fill("no such function");
        await said("no match");
    });
});

test("the link of the view is copied, and shows it; where the browser refuses, it is said what to do", async () => {
    await serving(trace, async (open) => {
        const page = await open("#tab=locks&w=50-210&s=running&all=");
        /* What the page writes into the clipboard; null: it is refused. */
        await page.evaluate(() => {
            globalThis.copied = "";
            navigator.clipboard.writeText = async (text) => {
                if (globalThis.copied === null) throw new Error("refused");
                globalThis.copied = text;
            };
        });
        const message = (text, of = page) =>
            until(text, async () => {
                const shown = of.locator(".message");
                return (await shown.count()) > 0 && (await shown.textContent()).includes(text);
            });
        const choose = async () => {
            await page.getByRole("button", { name: "Share" }).click();
            await page.getByRole("menuitem", { name: "Copy link" }).click();
        };
        /* At once after a change, which the address does not have yet. */
        await page.getByLabel("Filter lanes").fill("main");
        await choose();
        await message("Copied the link");
        const link = await page.evaluate(() => globalThis.copied);
        equal(link.replace(/#.*/, ""), page.url().replace(/#.*/, ""), "the address");
        equal(
            Object.fromEntries(new URLSearchParams(new URL(link).hash.slice(1))),
            { w: "50-210", s: "running", f: "main", tab: "locks" },
            "the view",
        );
        const shared = await open(new URL(link).hash);
        equal(await shared.getByLabel("Filter lanes").inputValue(), "main", "what the link shows");
        equal(await fragment(shared, "w"), "50-210", "its window");

        await page.evaluate(() => {
            globalThis.copied = null;
        });
        await choose();
        await message("The browser refuses to copy: copy the address from the address bar");
        /* And where there is no clipboard at all; from the palette. */
        const without = await open("");
        await without.evaluate(() =>
            Object.defineProperty(navigator, "clipboard", { value: undefined }),
        );
        await without.keyboard.press("/");
        await without.locator(".palette input:focus").waitFor();
        await without.keyboard.type("copy link");
        await without.keyboard.press("Enter");
        await message(
            "The browser refuses to copy: copy the address from the address bar",
            without,
        );
    });
});

test("the SVG has what is on the screen: counters, pauses, groups, lanes, regions, logs, samples and the legend", async () => {
    await serving(example("load-go1.23"), async (open, ask) => {
        const { end } = await ask("status");
        const page = await open(`#w=0-${end}&top=0`);
        await until("logs", async () =>
            page.evaluate((wanted) => {
                const rows = document.querySelector("canvas.rows");
                const { data } = rows.getContext("2d").getImageData(0, 0, rows.width, rows.height);
                for (let i = 0; i < data.length; i += 4)
                    if (wanted.every((part, k) => data[i + k] === part)) return true;
                return false;
            }, color("mark")),
        );
        await idle(page);
        const text = String(await saved(page, () => page.keyboard.press("e")));
        const size = await page.evaluate(() =>
            ["map", "head", "rows"].map((name) => {
                const { width, height } = document
                    .querySelector(`canvas.${name}`)
                    .getBoundingClientRect();
                return [width, height];
            }),
        );
        /* As a picture of its own, it has the colours of the screen at the same places. */
        const drawn = await page.evaluate(
            async ([source, [width], tops]) => {
                const svg = new DOMParser().parseFromString(source, "image/svg+xml");
                if (svg.querySelector("parsererror")) throw new Error(source.slice(0, 300));
                const image = new Image();
                image.src = `data:image/svg+xml,${encodeURIComponent(source)}`;
                await image.decode();
                const canvas = document.createElement("canvas");
                [canvas.width, canvas.height] = [image.width, image.height];
                const to = canvas.getContext("2d");
                to.drawImage(image, 0, 0);
                const same = ["map", "head", "rows"].map((name, i) => {
                    const from = document.querySelector(`canvas.${name}`);
                    const high = Math.min(from.height, image.height - tops[i]);
                    const a = from.getContext("2d").getImageData(0, 0, width, high).data;
                    const b = to.getImageData(0, tops[i], width, high).data;
                    let alike = 0;
                    for (let k = 0; k < a.length; k += 4)
                        if ([0, 1, 2].every((c) => Math.abs(a[k + c] - b[k + c]) < 40)) alike++;
                    return alike / (a.length / 4);
                });
                const texts = [...svg.querySelectorAll("text")].map((of) => of.textContent);
                const fills = [...svg.querySelectorAll("[fill]")].map((of) =>
                    of.getAttribute("fill"),
                );
                return { same, texts, fills: [...new Set(fills)], width: image.width };
            },
            [text, size[0], [0, size[0][1], size[0][1] + size[1][1]]],
        );
        equal(drawn.width, size[0][0], "as wide as the screen");
        for (const [i, name] of ["overview", "head", "lanes"].entries())
            ok(drawn.same[i] > 0.9, `${name}: ${drawn.same[i]} alike`);
        const legend = await page.locator(".legend > span").allTextContents();
        for (const sign of ["ready", "running", "stop-the-world", "log", "region or task"])
            ok(legend.map((one) => one.trim()).includes(sign), `the page's legend has ${sign}`);
        for (const sign of legend) ok(drawn.texts.includes(sign.trim()), `${sign} in the legend`);
        ok(
            drawn.texts.some((of) => of.startsWith("Whole trace, ")),
            "the overview",
        );
        ok(
            drawn.texts.some((of) => /^running, ready/.test(of)),
            "the counters",
        );
        ok(
            drawn.texts.some((of) => /^▾ /.test(of)),
            "a group",
        );
        /* Of logs, and of the heap. */
        for (const name of ["mark", "heap"]) {
            const hex = color(name).map((part) => part.toString(16).padStart(2, "0"));
            ok(drawn.fills.includes(`#${hex.join("")}`), name);
        }
        ok(!/NaN|undefined|Infinity/.test(text), "numbers");
    });
});

await main();
