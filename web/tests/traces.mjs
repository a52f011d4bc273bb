// Shared by the tests of single traces: the examples of the tree and generated ones, a server for each, and tables.
// Arguments: the trail command, the tree's folder, trail-generate.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
    equal,
    given as generate,
    idle,
    leavePage,
    openPage,
    scheduler as root,
    serve,
    temporaryFolder,
    trail,
    until,
} from "./browser.mjs";

export const folder = temporaryFolder();

export const example = (name) => join(root, "examples/traces", `${name}.trace`);

/* The path of a trace that is made of a text by hand. */
export function assembled(name, text) {
    const source = join(folder, `${name}.txt`);
    const path = join(folder, `${name}.trace`);
    writeFileSync(source, text);
    execFileSync(trail, ["assemble", source, "-o", path]);
    return path;
}

/* A trace of one goroutine on M 100 and P 0, at 1 ns a tick, with these events and strings by number. */
export function ofOne(name, events, strings, others = "") {
    const texts = Object.entries(strings).map(
        ([id, text]) => `String id=${id}\n\tdata=${JSON.stringify(text)}\n`,
    );
    return assembled(
        name,
        `Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=100 gstatus=2
${events}
${others}EventBatch gen=1 m=18446744073709551615 time=90000000 size=auto
Strings
${texts.join("")}EndOfGeneration
`,
    );
}

/*
 * Serves a trace until `run` has ended. `run` receives a page opener, a function that asks the API, and one that ends the use of
 * a page, so that the next one opened costs less.
 */
export async function serving(path, run) {
    const { server, url } = await serve([path]);
    const base = url.replace(/\?.*/, "");
    const token = url.replace(/.*=/, "");
    const headers = { authorization: `Bearer ${token}` };
    const ask = (request) =>
        fetch(`${base}api/${request}`, { headers }).then((answer) => answer.json());
    const pages = [];
    let close = (page) => page.context().close();
    const open = async (more = "", options = {}, sign = ".facts", first = undefined) => {
        /* All lanes and charts, whatever is in the window. */
        const all = more.startsWith("#") && !more.includes("all=") ? "&all=ir&c=1" : "";
        const page = await openPage(url + more + all, options, sign, first);
        pages.push(page);
        await idle(page);
        return page;
    };
    const leave = async (page) => {
        equal(page.errors, [], "errors of the page");
        pages.splice(pages.indexOf(page), 1);
        await leavePage(page);
    };
    try {
        await until("it has been read", async () => (await ask("status")).done);
        await run(open, ask, leave);
        for (const page of pages) equal(page.errors, [], "errors of the page");
        close = leavePage;
    } finally {
        for (const page of pages) await close(page);
        server.kill();
    }
}

/* The rows of a table, or of the first one there is, as the values of its cells, by the titles of its columns. */
export function rowsOf(page, name) {
    return page.evaluate((wanted) => {
        const tables = [...document.querySelectorAll(".table table")];
        const table = tables.find((of) => !wanted || of.caption.textContent === wanted);
        const titles = [...(table?.querySelectorAll("thead th") ?? [])].map((head) =>
            head.textContent.replace(/ [▲▼]$/, ""),
        );
        return [...(table?.querySelectorAll("tbody tr") ?? [])].map((row) =>
            Object.fromEntries([...row.cells].map((cell, i) => [titles[i], cell.dataset.value])),
        );
    }, name);
}

export async function rowsWhenThere(page) {
    return until("rows", async () => {
        const rows = await rowsOf(page);
        return rows.length > 0 && rows;
    });
}

export async function fragment(page, name) {
    await idle(page);
    return page.evaluate((key) => new URLSearchParams(location.hash.slice(1)).get(key), name);
}

/* A trace with many goroutines, made by bench/generate. */
export function generated(name, ...options) {
    const path = join(folder, `${name}.trace`);
    execFileSync(generate, [...options, "-o", path]);
    return path;
}
