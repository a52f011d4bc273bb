// The parser as WebAssembly gives the same answers as the server, byte for byte, for valid and damaged traces.
// Tests the shipped files: dist/worker.js and dist/trail.wasm, with the worker in a separate context.
// Arguments: the trail command, the tree's folder.
import { webcrypto as crypto } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";
import {
    ALL,
    equal,
    main,
    ok,
    scheduler as root,
    serve,
    temporaryFolder,
    test,
    until,
} from "./browser.mjs";

const folder = temporaryFolder();
const servers = [];
process.on("exit", () => {
    for (const server of servers) server.kill();
});
const code = readFileSync(join(root, "web/dist/worker.js"), "utf8");
const wasm = readFileSync(join(root, "web/dist/trail.wasm"));
const module = new WebAssembly.Module(wasm);

/* MARK: A worker */

/* The part of Blob that the worker uses. */
function blob(bytes) {
    return { size: bytes.length, slice: (from, to) => bytes.subarray(from, to) };
}

class FileReaderSync {
    readAsArrayBuffer(bytes) {
        return new Uint8Array(bytes).buffer;
    }
}

/* Returns a function that posts a request and returns the worker's answer. */
function worker(name, bytes, holds, ofModule = module) {
    let answer;
    const context = vm.createContext({
        crypto,
        FileReaderSync,
        TextEncoder,
        TextDecoder,
        performance,
        setTimeout,
        postMessage: (posted) => {
            answer = posted;
        },
    });
    vm.runInContext(code, context);
    context.onmessage({ data: { module: ofModule, name, file: blob(bytes), holds } });
    let id = 0;
    return (question) => {
        context.onmessage({ data: { id: ++id, question } });
        equal(answer.id, id, "number of the answer");
        return answer;
    };
}

/* A trace in the page: one worker holds it, the other runs analyses. */
async function page(name, bytes) {
    const holder = worker(name, bytes, true);
    const runner = worker(name, bytes, false);
    const ask = (question) => {
        const answer = holder(question);
        return answer.type === "application/x-trail-command" ? runner(answer.body) : answer;
    };
    await until("it has been read", () => JSON.parse(Buffer.from(ask("status").body)).done);
    return ask;
}

/* MARK: The server */

async function served(path) {
    const { server, url } = await serve([path]);
    servers.push(server);
    const base = url.replace(/\?.*/, "");
    const headers = { authorization: `Bearer ${url.replace(/.*=/, "")}` };
    const ask = async (question) => {
        const response = await fetch(`${base}api/${question}`, { headers });
        return {
            status: response.status,
            type: response.headers.get("content-type"),
            body: Buffer.from(await response.arrayBuffer()),
        };
    };
    await until("it has been read", async () => JSON.parse((await ask("status")).body).done);
    return { ask, server };
}

/* MARK: Requests */

const commands = [
    "summary",
    "goroutines",
    "goroutines&members=1&sort=sched-wait&limit=7",
    "goroutines&groups=1&percentiles=50,99",
    "threads",
    "procs",
    "profile",
    "profile&type=sync-blocking",
    "profile&type=cpu",
    "latency",
    "locks&stacks=1",
    "regions",
    "tasks&members=1",
    "gc",
    "mmu&worst=3",
    "why&window=1",
    "why&goroutine=1",
    "find&pattern=block%20%3E1us&limit=5",
    "find&pattern=block+%3E1us+then+ready&stacks=1",
];
/* Requests that the API or the command refuses. */
const wrong = [
    "nothing",
    "run?command=record",
    "run?command=goroutines&limit=many",
    "run?command=goroutines&sort=nothing",
    "run?command=find",
    "run?command=find&pattern=nonsense",
    "run?command=why&task=99999999",
    "run?command=gc&from=5&to=5",
    "picture?width=99999",
    "lanes?kind=nothing",
    "span?lane=999999&span=0",
    "find",
];

function questions(end) {
    const [a, b] = [Math.floor(end / 5), Math.floor(end / 2)];
    const all = [...wrong];
    for (const kind of ["goroutine", "proc", "thread"]) {
        all.push(`lanes?kind=${kind}`, `lanes?kind=${kind}&name=main&first=1&count=3`);
        all.push(`picture?kind=${kind}&lanes=0,1,2,3,4,5&width=900`);
        all.push(`picture?kind=${kind}&lanes=0,3&from=${a}&to=${b}&width=16384`);
        all.push(`span?kind=${kind}&lane=0&span=3`, `span?kind=${kind}&lane=1&at=${b}`);
        all.push(`group?kind=${kind}&from=${a}&to=${b}`, `group?kind=${kind}&lanes=0,1&width=9`);
        all.push(`select?kind=${kind}&from=${a}&to=${b}`);
    }
    for (const kind of ["range", "region", "task"]) all.push(`bars?kind=${kind}&width=500`);
    all.push("bars", "marks?kind=log", "marks?kind=sample", "stack?stack=1", "stack?stack=5");
    all.push("metrics?width=400", `metrics?from=${a}&to=${b}&width=77`);
    all.push("spans?holder=2", "spans?holder=5&count=3");
    all.push("like?state=waiting", "like?state=running", "find?text=main", "find?text=G1&most=9");
    for (const command of commands) {
        all.push(`run?command=${command}`, `run?command=${command}&from=${a}&to=${b}`);
    }
    return all;
}

/* The status without the members that differ between machines: memory, and whether there is DuckDB. */
function comparable(answer) {
    const { memory_bytes, can_sql, ...rest } = JSON.parse(Buffer.from(answer.body));
    return rest;
}

/* Returns the number of successful answers. */
async function compare(path) {
    const { ask: theirs, server } = await served(path);
    const ours = await page(path, readFileSync(path));
    const status = comparable(ours("status"));
    equal(status, comparable(await theirs("status")), "status");
    let good = 0;
    for (const question of questions(status.end)) {
        const [a, b] = [ours(question), await theirs(question)];
        const bodies = [a, b].map((answer) => Buffer.from(answer.body));
        equal(a.status, b.status, `status of ${question} (${bodies[0].subarray(0, 200)})`);
        equal(a.type, b.type, `type of ${question}`);
        if (!bodies[0].equals(bodies[1])) {
            const at = bodies[0].findIndex((byte, i) => byte !== bodies[1][i]);
            const part = (bytes) => bytes.subarray(Math.max(0, at - 60), at + 60).toString();
            throw new Error(`${question}: at ${at} '${part(bodies[0])}', not '${part(bodies[1])}'`);
        }
        good += a.status === 200;
    }
    server.kill();
    return good;
}

/* MARK: Tests */

const given = [19, 21, 22, 23].map((n) => [
    `load-go1.${n}.trace`,
    readFileSync(join(root, `examples/traces/load-go1.${n}.trace`)),
]);

/* Both the server and the page use this name. */
function made(name, bytes) {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    return path;
}

for (const [name, bytes] of given) {
    test(`${name}: every answer is the server's`, async () => {
        const good = await compare(made(name, bytes));
        ok(good > 55, `only ${good} good answers`);
    });
}

for (const [name, bytes] of ALL ? given : [given[0], given.at(-1)]) {
    test(`${name}, damaged and cut off: every answer is the server's`, async () => {
        let seed = 7;
        const random = (below) => {
            seed = (seed * 1103515245 + 12345) % 2147483648;
            return seed % below;
        };
        for (let i = 0; i < 4; i++) {
            const copy = Buffer.from(
                bytes.subarray(0, i % 2 ? bytes.length : random(bytes.length)),
            );
            for (let k = 0; k < i; k++) copy[16 + random(copy.length - 16)] ^= 1 << random(8);
            await compare(made(`bad-${i}.trace`, copy));
        }
    });
}

test("a file that is no trace is refused", async () => {
    const ask = await page("x", Buffer.from("GIF89a, and no trace at all"));
    const status = JSON.parse(Buffer.from(ask("status").body));
    ok(status.error?.includes("not a"), `error: ${status.error}`);
    equal(ask("lanes").status, 503, "lanes");
});

/* MARK: Failures that the page must survive */

function leb(value) {
    return value < 128 ? [value] : [(value & 127) | 128, ...leb(value >> 7)];
}

/* A section of a WebAssembly module, with its size. */
function section(id, ...bytes) {
    return [id, ...leb(bytes.length), ...bytes];
}

function named(name, kind, index) {
    return [name.length, ...Buffer.from(name), kind, index];
}

/* A module that opens every trace, traps at the first request, and recurses without end in analyses. */
function trapping() {
    const names = ["_initialize", "page_room", "page_open", "page_read", "page_ask", "page_run"];
    const none = [0x60, 0, 0];
    const number = [0x60, 0, 1, 0x7f];
    const both = [0x60, 1, 0x7f, 1, 0x7f];
    const bodies = [[], [0x41, 8], [0x41, 0], [0x41, 0], [0x00], [0x20, 0, 0x10, 5, 0x41, 1, 0x6a]];
    const code = bodies.flatMap((body) => [body.length + 2, 0, ...body, 0x0b]);
    const exported = names.flatMap((name, i) => named(name, 0, i));
    return new WebAssembly.Module(
        new Uint8Array([
            ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
            ...section(1, 3, ...none, ...number, ...both),
            ...section(3, 6, 0, 2, 1, 1, 1, 2),
            ...section(5, 1, 0, 1),
            ...section(7, 7, ...exported, ...named("memory", 2, 0)),
            ...section(10, 6, ...code),
        ]),
    );
}

function readLeb(bytes, at) {
    let value = 0;
    for (let i = 0; ; i++) {
        value |= (bytes[at + i] & 127) << (7 * i);
        if (bytes[at + i] < 128) return [value, at + i + 1];
    }
}

/* The parser, with its memory limited to `pages` of 64 KiB more than initially. */
function small(pages) {
    let at = 8;
    while (at < wasm.length) {
        const [size, begin] = readLeb(wasm, at + 1);
        if (wasm[at] === 5) {
            const [least] = readLeb(wasm, begin + 2);
            const limits = section(5, 1, 1, ...leb(least), ...leb(least + pages));
            const rest = [wasm.subarray(0, at), Buffer.from(limits), wasm.subarray(begin + size)];
            return new WebAssembly.Module(Buffer.concat(rest));
        }
        at = begin + size;
    }
    throw new Error("it has no memory");
}

test("a trap is an answer, and so is what is asked after it", () => {
    const bytes = Buffer.from("anything");
    const holder = worker("x", bytes, true, trapping());
    for (let i = 0; i < 2; i++) {
        const answer = holder("lanes");
        equal(answer.status, 500, "status");
        const { error } = JSON.parse(Buffer.from(answer.body));
        ok(error.startsWith("the parser failed (unreachable)"), error);
    }
    const runner = worker("x", bytes, false, trapping());
    for (let i = 0; i < 2; i++) {
        const answer = runner(Buffer.from("trail\0gc\0"));
        equal(answer.status, 500, "status of an analysis");
        const { error } = JSON.parse(Buffer.from(answer.body));
        ok(error.startsWith("the parser failed"), error);
    }
});

test("a trace for which memory is too small is shown as far as it goes, and says so", async () => {
    const bytes = given[2][1];
    const holder = worker("x", bytes, true, small(40));
    const status = () => JSON.parse(Buffer.from(holder("status").body));
    await until("it has been read", () => status().done);
    const { error, events } = status();
    equal(error, "no memory for more of the trace", "error");
    ok(events > 0, "some of it was read");
    equal(holder("lanes").status, 200, "lanes of that");
    const runner = worker("x", bytes, false, small(2));
    const answer = runner(Buffer.from("trail\0goroutines\0--json\0--\0x\0"));
    equal(answer.status, 500, "status of an analysis");
    const said = JSON.parse(Buffer.from(answer.body)).error;
    ok(/memory/.test(said), said);
});

await main();
