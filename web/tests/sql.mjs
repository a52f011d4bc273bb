// SQL in the page: rows and numbers in the timeline, named and saved queries. Arguments: those of traces.mjs. Skipped
// without Chromium or DuckDB.
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
    runJson,
    test,
    until,
} from "./browser.mjs";
import { example, fragment, rowsWhenThere, serving } from "./traces.mjs";

needBrowser();
if (!process.env.TRAIL_DUCKDB) {
    console.log("1..0 # SKIP no DuckDB: TRAIL_DUCKDB says where it is");
    process.exit(0);
}

/* The height of a lane, of the strip and of the counter. */
const LANE = measure("lane-height");
const STRIP = 12;
const COUNTER = 30;
const marked = color("sql");

async function askPage(page, text) {
    const box = page.getByRole("textbox", { name: "SQL", exact: true });
    await box.waitFor();
    await box.fill(text);
    await page.getByRole("button", { name: /Ask/ }).click();
    await rowsWhenThere(page);
    await idle(page);
}

async function openSql(open, ask) {
    await until("the server knows of DuckDB", async () => (await ask("status")).can_sql);
    return open("#g=none&top=0&tab=sql", { colorScheme: "light" });
}

/* The heights in a column of a canvas, from below, at which the colour is that of rows, or `almost`, as of a thin line. */
function markedAt(page, canvas, x, almost = false) {
    return page.evaluate(
        ([name, at, [red, green, blue], most]) => {
            const of = document.querySelector(`canvas.${name}`);
            const { data } = of.getContext("2d").getImageData(Math.round(at), 0, 1, of.height);
            const found = [];
            for (let y = 0; y < of.height; y++)
                if (
                    Math.abs(data[4 * y] - red) +
                        Math.abs(data[4 * y + 1] - green) +
                        Math.abs(data[4 * y + 2] - blue) <
                    most
                )
                    found.push(of.height - y);
            return found;
        },
        [canvas, x, marked, almost ? 150 : 90],
    );
}

/* The position of a time, and the width of the lanes. */
async function placing(page) {
    const [from, to] = (await fragment(page, "w")).split("-").map(Number);
    const { width } = await page.locator("canvas.rows").boundingBox();
    return { width, x: (ns) => LABELS + ((ns - from) / (to - from)) * (width - LABELS) };
}

for (const [name, id] of [
    ["load-go1.23", 1],
    ["shop-c", 3],
])
    test(`${name}: rows with times are a strip and highlights on their lanes, and lead there`, async () => {
        const sql = `select * from states where goroutine = ${id} and state = 'Waiting' order by duration_ns desc limit 3`;
        const wanted = runJson("sql", example(name), sql);
        const { origin_ns } = runJson("summary", example(name));
        await serving(example(name), async (open, ask) => {
            const page = await openSql(open, ask);
            await askPage(page, sql);
            const { x } = await placing(page);
            const { rows } = await ask("lanes?count=100");
            const lane = rows.find((row) => row[1] === id)[0];
            const top = await page.locator("canvas.rows").evaluate((of) => of.height);
            for (const row of wanted) {
                const middle = (row.begin_ns + row.end_ns) / 2 - origin_ns;
                const heights = await markedAt(page, "rows", x(middle));
                const below = heights.map((y) => top - y - lane * LANE);
                ok(below.length > 0 && below.every((y) => y >= 0 && y < LANE), `${below}`);
                const strip = await markedAt(page, "head", x(middle));
                ok(strip.length >= STRIP - 5 && Math.max(...strip) <= STRIP + 2, `${strip}`);
            }
            /* Between them there is nothing. */
            const [first, second] = wanted.toSorted((a, b) => a.begin_ns - b.begin_ns);
            const gap = (first.end_ns + second.begin_ns) / 2 - origin_ns;
            ok(x(second.begin_ns) - x(first.end_ns) > 4, "there is a gap");
            equal(await markedAt(page, "head", x(gap)), [], "between");

            await page.locator(".table tbody tr").nth(1).click();
            const [, shown, number] = await until("it is selected", async () =>
                /^g(\d+)\.(\d+)$/.exec((await fragment(page, "sel")) ?? ""),
            );
            const span = await ask(`span?lane=${shown}&span=${number}`);
            equal([span.id, span.begin], [id, wanted[1].begin_ns - origin_ns], "the span");

            await page.getByRole("button", { name: "Show them in the timeline" }).click();
            await idle(page);
            equal(await markedAt(page, "head", x(gap)), [], "taken away");
        });
    });

/* Each point's value is drawn from its time to the next, in proportion to the largest. */
async function drawsCounter(page, points, name, origin) {
    const most = Math.max(...points.map((row) => row[name]));
    const { x } = await placing(page);
    let seen = 0;
    for (const [i, row] of points.entries()) {
        const next = points[i + 1]?.time_ns ?? row.time_ns;
        const [left, right] = [x(row.time_ns - origin), x(next - origin)];
        if (right - left < 6) continue;
        seen++;
        const heights = await markedAt(page, "head", (left + right) / 2, true);
        const height = 3 + 2 + (row[name] / most) * (COUNTER - 6);
        const own = heights.filter((y) => y <= COUNTER);
        ok(
            own.some((y) => Math.abs(y - height) <= 1.5),
            `point ${i}: ${own}, not ${height}`,
        );
    }
    ok(seen >= 5, `${seen} points are wide enough`);
}

test("a number over time is a counter", async () => {
    const trace = example("load-go1.23");
    const sql =
        "select time_ns, value as heap from events where kind = 'Metric' and name like '%heap/objects%' order by time_ns";
    const points = runJson("sql", trace, sql);
    const { origin_ns } = runJson("summary", trace);
    await serving(trace, async (open, ask) => {
        const page = await openSql(open, ask);
        await askPage(page, sql);
        equal(
            await page.getByLabel("as a counter").inputValue(),
            "heap",
            "the only number is shown without being asked for",
        );
        await drawsCounter(page, points, "heap", origin_ns);
    });
});

test("memory in use over time, by its query with a name, is a counter", async () => {
    const trace = example("load-go1.23");
    const points = runJson(
        "sql",
        trace,
        "select time_ns, value from events where name = '/memory/classes/heap/objects:bytes' order by time_ns",
    );
    const [first, last] = [points[0].time_ns, points.at(-1).time_ns];
    const pieces = new Map();
    for (const { time_ns, value } of points) {
        const piece = Math.floor(((time_ns - first) * 50) / (last - first + 1));
        const of = pieces.get(piece) ?? { piece, time_ns, least: value, most: value };
        of.least = Math.min(of.least, value);
        of.most = Math.max(of.most, value);
        pieces.set(piece, of);
    }
    const rows = runJson("sql", trace, "@heap").map(({ file, ...row }) => row);
    equal(rows, [...pieces.values()], "the rows");
    await serving(trace, async (open, ask) => {
        const page = await openSql(open, ask);
        const { meaning } = runJson("sql", ".queries").find(({ name }) => name === "heap");
        await page.getByLabel("Queries").selectOption({ label: `heap: ${meaning}` });
        await page.getByRole("button", { name: /Ask/ }).click();
        equal((await rowsWhenThere(page)).length, pieces.size, "rows");
        await page.getByLabel("as a counter").selectOption("most");
        await idle(page);
        const { origin_ns } = runJson("summary", trace);
        await drawsCounter(page, [...pieces.values()], "most", origin_ns);
    });
});

test("queries with names can be chosen, others saved; the address keeps the query", async () => {
    const named = runJson("sql", ".queries");
    ok(named.length > 10, `${named.length} queries`);
    await serving(example("shop-c"), async (open, ask) => {
        const page = await openSql(open, ask);
        const box = page.getByRole("textbox", { name: "SQL", exact: true });
        const choice = page.getByLabel("Queries");
        for (const { name, sql, meaning } of named.slice(0, 3)) {
            await choice.selectOption({ label: `${name}: ${meaning}` });
            equal(await box.inputValue(), sql, name);
        }
        await box.fill("select 7 as seven");
        await page.getByLabel("Name to save the query as").fill("mine");
        await page.getByRole("button", { name: "Save", exact: true }).click();
        await box.fill("select 8");
        equal(await fragment(page, "sql"), "select 8", "in the address");
        await page.reload();
        await page.getByRole("textbox", { name: "SQL", exact: true }).waitFor();
        equal(await box.inputValue(), "select 8", "after a reload");
        equal(await complaints(page), [], "axe");
        await choice.selectOption({ label: "mine" });
        equal(await box.inputValue(), "select 7 as seven", "saved");
        await page.getByRole("button", { name: "Forget “mine”" }).click();
        equal(await choice.locator("option", { hasText: "mine" }).count(), 0, "forgotten");
    });
});

await main();
