// `trail export --to=chrome` in the engine of DevTools: it has all spans, none overlaps another, and they add up to the states.
import { execFileSync } from "node:child_process";
import { equal, main, ok, tableOf, test, trail } from "./browser.mjs";
import { mayHaveDevTools, withDevTools } from "./devtools.mjs";
import { example } from "./traces.mjs";

if (!mayHaveDevTools) {
    console.log("1..0 # SKIP no Chromium with DevTools, or nothing of npm: npm ci in web");
    process.exit(0);
}

const ask = (...words) => execFileSync(trail, words, { maxBuffer: 1 << 28 }).toString();

/* How long each thread was in each state: [[thread, state], ns] as text, from the tables. */
function states(trace, isOfThreads) {
    const rows = tableOf(trace, "states");
    const threads = new Map();
    for (const { goroutine, thread } of rows) if (thread) threads.set(goroutine, thread);
    const sums = new Map();
    for (const { goroutine, state, duration_ns } of rows) {
        const key = `${isOfThreads ? threads.get(goroutine) : goroutine} ${state.toLowerCase()}`;
        sums.set(key, (sums.get(key) ?? 0) + Number(duration_ns));
    }
    return sums;
}

/* What the engine makes of a file: the spans of the goroutines, or of the program's threads, and the number of those that
 * are neither in another one nor overlap it. */
const parse = async (text) => {
    const { TraceModel } = await import("/devtools/models/trace/trace.js");
    const model = TraceModel.Model.createWithAllHandlers();
    await model.parse(JSON.parse(text).traceEvents, {});
    const parsed = model.parsedTrace();
    const { processes } = (parsed.data ?? parsed).Renderer;
    const { threads } = processes.get(1) ?? [...processes.values()][0];
    return [...threads].map(([tid, { entries, tree }]) => ({
        tid,
        apart: tree.roots.size,
        spans: entries.map(({ cat, dur }) => ({ cat, dur })),
    }));
};

test("the engine of devtools has the states of each thread, one after the other", () =>
    withDevTools(async (page) => {
        for (const [name, isOfThreads] of [
            ["shop-c", true],
            ["shop-go", false],
            ["load-go1.23", false],
        ]) {
            const text = ask("export", "--to=chrome", example(name));
            const sums = new Map();
            for (const { tid, apart, spans } of await page.evaluate(parse, text)) {
                equal(apart, spans.length, `${name}: spans one after the other in ${tid}`);
                for (const span of spans) {
                    const key = `${tid} ${span.cat.split(" ")[0]}`;
                    sums.set(key, (sums.get(key) ?? 0) + Math.round(span.dur * 1000));
                }
            }
            ok(sums.size > 10, `${name}: ${sums.size} states`);
            const wanted = states(example(name), isOfThreads);
            equal([...sums].sort(), [...wanted].filter(([, ns]) => ns > 0).sort(), name);
        }
        /* Of spans that overlap, it leaves out one. */
        const overlap = [0, 1].map((ts) => ({ ph: "X", pid: 1, tid: 1, ts, dur: 2, name: "a" }));
        const [{ apart }] = await page.evaluate(parse, JSON.stringify({ traceEvents: overlap }));
        equal(apart, 1, "spans that overlap");
    }));

await main();
