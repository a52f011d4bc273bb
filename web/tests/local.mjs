// Traces that stay in the browser: dropped on the page, or in a file of `trail report --embed`. The figures shown are
// compared with the command's. Arguments: the trail command, the tree's folder. Skipped without Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import {
    color,
    equal,
    idle,
    main,
    needBrowser,
    ok,
    openPage,
    openTab as openPanel,
    scheduler as root,
    runJson,
    serve,
    temporaryFolder,
    test,
    trail,
    until,
} from "./browser.mjs";

needBrowser();
const folder = temporaryFolder();
const [served, other] = [23, 19].map((n) => join(root, `examples/traces/load-go1.${n}.trace`));
const { server, url } = await serve([served]);
process.on("exit", () => {
    server.kill();
});
let page;

function made(name, bytes) {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    return path;
}

function embed(path, name, ...options) {
    const output = join(folder, name);
    execFileSync(trail, ["report", "--embed", ...options, path, "-o", output]);
    return pathToFileURL(output).href;
}

async function close() {
    await page?.context().close();
    page = null;
}

async function openServed() {
    await close();
    page = await openPage(url);
}

/* Chooses a file, and waits for the page to load again. */
async function choose(path) {
    await page.locator("label", { hasText: "Open a file" }).locator("input").setInputFiles(path);
    await page.waitForURL(/\?opened=/);
    await page.waitForSelector(".banner.source");
}

async function showsFactsOf(path) {
    const { events } = runJson("summary", path);
    const wanted = `${events.toLocaleString("en-US")} events`;
    await until(wanted, async () => (await page.textContent(".facts")).includes(wanted));
}

function openTab(name) {
    return openPanel(page, name);
}

/* Compares the table's figures, which are the values of its cells. */
async function showsGoroutinesOf(path) {
    await openTab("Goroutines");
    const { goroutines } = runJson("goroutines", "--members", path);
    await until("rows", () => page.locator(".table tbody tr").count());
    const rows = await page.evaluate(() =>
        [...document.querySelectorAll(".table tbody tr")].map((row) =>
            [...row.cells].map((cell) => cell.dataset.value || cell.textContent),
        ),
    );
    ok(rows.length > 20, `${rows.length} rows`);
    const byId = new Map(goroutines.map((one) => [one.id, one]));
    for (const row of rows) {
        const one = byId.get(Number(row[0]));
        ok(one, `there is no goroutine ${row[0]}`);
        const numbers = row.map((cell) => Number(cell.replace(/[^0-9.]/g, "")));
        ok(numbers.includes(one.exec_ns), `${row.join(" ")} has not ${one.exec_ns}`);
    }
}

/* The number of pixels in the colour of the running state. */
function running() {
    return page.evaluate((wanted) => {
        const canvas = document.querySelector("canvas.rows");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let found = 0;
        for (let i = 0; i < data.length; i += 4)
            if (wanted.every((value, k) => Math.abs(data[i + k] - value) < 6)) found++;
        return found;
    }, color("s-running"));
}

/* Both without a server: the panel says that there is no SQL, why, and what to do. */
async function saysThatThereIsNoSql() {
    await openTab("SQL");
    const text = await page.textContent(".list .empty");
    ok(/No SQL here: this page reads the trace by itself.*trail view/s.test(text), text);
}

/* MARK: Dropped files */

test("a file that is dropped is shown, with the figures of the command", async () => {
    await openServed();
    await showsFactsOf(served);
    const bytes = [...readFileSync(other)];
    const transfer = await page.evaluateHandle((numbers) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(numbers)], "dropped.trace"));
        return data;
    }, bytes);
    await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
    await page.waitForSelector("text=Drop a trace");
    await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
    await page.waitForURL(/\?opened=/);
    await showsFactsOf(other);
    equal(await page.textContent("h1"), "dropped.trace", "title");
    ok((await page.textContent(".banner.source")).includes("has not seen it"), "banner");
    await until("lanes", async () => (await running()) > 0);
    await showsGoroutinesOf(other);
    await saysThatThereIsNoSql();
    equal(page.errors, [], "errors");
});

test("the server is asked for nothing but the page", async () => {
    await openServed();
    /* Otherwise pending requests of this page would be counted for the next one. */
    await page.waitForLoadState("networkidle");
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await choose(other);
    await showsFactsOf(other);
    /* Until the new page's files are asked for, the former page is there, and may ask for the trace's state. */
    const begin = asked.lastIndexOf("/");
    const before = begin + asked.slice(begin).findIndex((name) => name.startsWith("/app."));
    for (const name of ["Summary", "Functions", "Locks", "Latency", "Stacks", "MMU"]) {
        await openTab(name);
        await idle(page);
    }
    await until(
        "an analysis",
        async () => (await page.locator("#panel").textContent()).length > 50,
    );
    equal(
        [...new Set(asked.slice(before))].sort(),
        ["/app.css", "/app.js", "/trail.wasm", "/worker.js"],
        "asked for",
    );
});

test("the way back leads to the server's trace", async () => {
    await page.getByRole("button", { name: "Back to the server's trace" }).click();
    await page.waitForURL((now) => !now.search);
    await showsFactsOf(served);
    equal(await page.locator(".banner").count(), 0, "banners");
});

test("compressed traces are decompressed, or it is said why not", async () => {
    await choose(made("packed.trace.gz", gzipSync(readFileSync(other))));
    await showsFactsOf(other);
    await choose(made("cut.trace.gz", gzipSync(readFileSync(other)).subarray(0, 9999)));
    await page.waitForSelector("text=The gzip data are damaged.");
    await choose(made("x.trace.zst", Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0])));
    await page.waitForSelector("text=/zstd/");
});

test("of a damaged trace the good part is shown; of what is none that; then the next", async () => {
    const bytes = readFileSync(other);
    await choose(made("cut.trace", readFileSync(served).subarray(0, 30000)));
    /* The file before may have left an alert of its own. */
    await page.waitForSelector('[role="alert"]:has-text("are of the recovered part")');
    await choose(made("none.trace", Buffer.from("no trace at all")));
    await page.waitForSelector("text=/not a Go execution trace/");
    await choose(made("again.trace", bytes));
    await showsFactsOf(other);
});

test("a page that is loaded again says that the file has to be opened again", async () => {
    await page.reload();
    await page.waitForSelector("text=open it again");
});

test("where the server has ended, the trace in the page stays, and the way back says why", async () => {
    await choose(other);
    await showsFactsOf(other);
    server.kill();
    await until("its end", () => server.exitCode !== null || server.signalCode !== null);
    await openTab("Summary");
    await until(
        "an analysis",
        async () => (await page.locator("#panel").textContent()).length > 50,
    );
    await page.getByRole("button", { name: "Back to the server's trace" }).click();
    await page.waitForSelector("text=The server of this page has ended");
    await showsFactsOf(other);
});

/* MARK: Embedded traces */

test("a file with the trace in it shows it from disk, and asks for nothing", async () => {
    await close();
    const requests = [];
    page = await openPage(embed(other, "embedded.html", "--title=<b>Slow & odd"), {
        offline: true,
    });
    page.on("request", (request) => requests.push(request.url()));
    await showsFactsOf(other);
    equal(await page.title(), "<b>Slow & odd", "title");
    equal(await page.textContent("h1"), "load-go1.19.trace", "name");
    await until("lanes", async () => (await running()) > 0);
    await showsGoroutinesOf(other);
    await saysThatThereIsNoSql();
    equal(
        [...page.addresses, ...requests].filter((one) => one !== "null" && !/^blob:/.test(one)),
        [],
        "addresses",
    );
    equal(page.errors, [], "errors");
});

test("axe finds nothing to complain about, in light and dark", async () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        await idle(page);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        const texts = violations.map((of) => `${of.id}: ${of.nodes[0].html}`);
        equal(texts, [], colorScheme);
    }
});

test("its policy forbids scripts that are not its own, and every connection", async () => {
    const results = await page.evaluate(async () => {
        const script = document.createElement("script");
        script.textContent = "globalThis.ran = true";
        document.head.append(script);
        const fetched = await fetch("data:text/plain,x").then(
            () => "fetched",
            () => "refused",
        );
        /* From a timer, because code that a debugger calls directly may use eval. */
        const evaluated = await new Promise((resolve) => {
            setTimeout(() => {
                try {
                    resolve(new Function("return 'evaluated'")());
                } catch {
                    resolve("refused");
                }
            });
        });
        return [globalThis.ran ?? "refused", fetched, evaluated];
    });
    equal(results, ["refused", "refused", "refused"], "script, fetch and eval");
});

test("a compressed trace, and a damaged one, in a file", async () => {
    await close();
    page = await openPage(embed(made("p.trace.gz", gzipSync(readFileSync(other))), "p.html"));
    await showsFactsOf(other);
    await close();
    page = await openPage(
        embed(made("d.trace", readFileSync(served).subarray(0, 30000)), "d.html"),
    );
    await page.waitForSelector('[role="alert"]');
});

test("one file from the page begins with its view and notes", async () => {
    await close();
    const own = await serve([served]);
    page = await openPage(`${own.url}#w=2000000-9000000&tab=notes&sel=g0.0`);
    await page.getByRole("button", { name: "Bookmark this view (M)" }).click();
    /* What would end its element. */
    const text = "</script><b>here it waits";
    await page.getByLabel("Note", { exact: true }).fill(text);
    await idle(page);
    const place = await page.evaluate(() => location.hash);
    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save all in one file" }).click();
    const saved = await saving;
    equal(saved.suggestedFilename(), "load-go1.23.html", "its name");
    const path = join(folder, "shared.html");
    await saved.saveAs(path);
    own.server.kill();
    equal(page.errors, [], "errors");
    await close();
    page = await openPage(pathToFileURL(path).href);
    await showsFactsOf(served);
    await idle(page);
    equal(await page.evaluate(() => location.hash), place, "the view");
    equal(await page.getByLabel("Note", { exact: true }).inputValue(), text, "the note");
    equal(await page.getByRole("button", { name: "Save all in one file" }).count(), 0, "again");
    equal(page.errors, [], "errors of the file");
    await close();
    page = await openPage(`${pathToFileURL(path).href}#tab=summary`);
    await idle(page);
    ok((await page.evaluate(() => location.hash)).includes("tab=summary"), "the address wins");
});

await main();
