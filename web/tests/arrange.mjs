// How lanes are put in order, without a browser: equal to a plain reference on random lanes, and in small parts.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const esbuild = await import("esbuild").catch(() => null);
if (!esbuild) {
    console.log("1..0 # SKIP nothing of npm: npm ci in web");
    process.exit(0);
}
const { equal, main, ok, temporaryFolder, test } = await import("./browser.mjs");

/* MARK: The modules under test */

const source = fileURLToPath(new URL("../src", import.meta.url));
const bundled = `${temporaryFolder()}/arrange.mjs`;
const modules = ["arrange", "format", "lane_table", "layout", "slices", "sorted", "wait_table"];
await esbuild.build({
    stdin: {
        contents: [
            ...modules.map((name) => `export * from "./${name}";`),
            `export { signal } from "@preact/signals";`,
        ].join("\n"),
        resolveDir: source,
    },
    bundle: true,
    format: "esm",
    outfile: bundled,
});
ok(existsSync(bundled), "the bundle");
globalThis.document = { documentElement: { dataset: {} } };
const {
    arrange,
    each,
    inSlices,
    keepAt,
    LaneReader,
    Layout,
    numberedWithin,
    ownNumber,
    PART,
    sentence,
    settled,
    signal,
    sorted,
    WaitTable,
} = await import(bundled);

/* Does all of the work at once. `note` is called after each part. */
function done(work, note = () => {}) {
    for (;;) {
        const step = work.next();
        note();
        if (step.done) return step.value;
    }
}

/* MARK: Random lanes */

/* The same numbers in each run. */
let seed = 7;
function random(below) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
}

const words = [
    "main.main",
    "net/http.serve",
    "Ärger.übel",
    "zebra",
    "école",
    "ecole",
    "東京.走る",
    "",
    "Zebra",
];

/* Rows as the server has them: few different names, ids with repetitions, parents that are not in the trace. */
function randomRows(count, names) {
    return Array.from({ length: count }, (_, lane) => {
        const begin = random(1000);
        const figures = Array.from({ length: 5 }, () => random(50));
        const parent = random(count + 20) - 20;
        const firstWait = random(3) ? random(1000) : -1;
        const times = [begin, begin + random(1000), random(2), 3, ...figures];
        return [
            lane,
            random(count),
            random(names.length),
            ...times,
            Math.max(-1, parent),
            firstWait,
        ];
    });
}

/* In pages, each with its own list of the names that it needs. */
function read(rows, names, page = 1000) {
    const reader = new LaneReader();
    for (let first = 0; first < rows.length; first += page) {
        const some = rows.slice(first, first + page);
        const own = [...new Set(some.map((row) => names[row[2]]))];
        const renamed = some.map((row) => row.map((x, i) => (i === 2 ? own.indexOf(names[x]) : x)));
        reader.add({ all: rows.length, names: own, rows: renamed });
    }
    return done(reader.table());
}

/* MARK: The reference */

function isShown(row, name, filter) {
    const text = `${name} ${row[1]}`.toLowerCase();
    return filter
        .toLowerCase()
        .split(/\s+/)
        .filter(Boolean)
        .every((word) =>
            word.length > 1 && word[0] === "-"
                ? !text.includes(word.slice(1))
                : text.includes(word),
        );
}

/* The pinned lanes, then the others as a list of [name of the group, lanes]. */
function plainly(rows, names, { filter, pins, compare, groupOf }) {
    const name = (row) => names[row[2]];
    const there = pins.filter((lane, i) => rows[lane] && pins.indexOf(lane) === i);
    const shown = rows.filter((row) => !there.includes(row[0]) && isShown(row, name(row), filter));
    if (compare) shown.sort(compare);
    const groups = new Map();
    for (const row of shown) {
        const group = groupOf ? groupOf(row) : "";
        groups.set(group, [...(groups.get(group) ?? []), row[0]]);
    }
    return { pins: there, groups: [...groups] };
}

/* Each with what it is by in the table, and how the reference compares two rows. */
function ordersOf({ columns, names }, all) {
    return [
        [null, null],
        [{ key: (lane) => columns.id[lane] }, (a, b) => a[1] - b[1]],
        [
            { key: (lane) => columns.begin[lane] - columns.end[lane] },
            (a, b) => b[4] - b[3] - (a[4] - a[3]),
        ],
        [
            { key: (lane) => columns.name[lane], texts: names },
            (a, b) => all[a[2]].localeCompare(all[b[2]]),
        ],
        [
            /* Every third one has no text, and is last. */
            { key: (lane) => (lane % 3 ? columns.name[lane] : -1), texts: names },
            (a, b) =>
                Number(a[0] % 3 === 0) - Number(b[0] % 3 === 0) ||
                (a[0] % 3 && all[a[2]].localeCompare(all[b[2]])),
        ],
        [
            { key: (lane) => (columns.first_wait[lane] < 0 ? Infinity : columns.first_wait[lane]) },
            (a, b) => (a[13] < 0 ? 1e9 : a[13]) - (b[13] < 0 ? 1e9 : b[13]),
        ],
    ];
}

function groupingsOf({ columns, names }, all) {
    const creator = (id) => (id === undefined ? "nobody" : `by ${id}`);
    return [
        [null, null],
        [
            { key: (lane) => columns.name[lane], text: (name) => names[name], hidesSingle: true },
            (row) => all[row[2]],
        ],
        [
            {
                /* Several lanes have the same id, and then the same text. */
                key: (lane) => columns.parent[lane],
                text: (parent) => creator(columns.id[parent]),
                hidesSingle: false,
            },
            (row, rows) => creator(rows[row[12]]?.[1]),
        ],
    ];
}

test("lanes are filtered, sorted, grouped and pinned as by a plain reference", async () => {
    const rows = randomRows(3000, words);
    const table = read(rows, words);
    let compared = 0;
    for (const filter of [
        "",
        "zebra",
        "-ZEBRA",
        "1 -main",
        "ärger 2",
        "12",
        "東京",
        "none of them",
        "-",
    ])
        for (const pins of [[], [5, 17, 5, 99999, -3, 0]])
            for (const [order, compare] of ordersOf(table, words))
                for (const [grouping, groupOf] of groupingsOf(table, words)) {
                    const wanted = plainly(rows, words, {
                        filter,
                        pins,
                        compare,
                        groupOf: groupOf && ((row) => groupOf(row, rows)),
                    });
                    const got = done(arrange({ table, filter, pins, order, grouping }));
                    const lanes = [...wanted.pins, ...wanted.groups.flatMap(([, of]) => of)];
                    equal(
                        [...got.order],
                        lanes,
                        `"${filter}", ${pins}, ${order?.key}, ${grouping?.key}`,
                    );
                    if (grouping)
                        equal(
                            got.groups.names,
                            wanted.groups.map(([name]) => name),
                            "names of groups",
                        );
                    compared++;
                }
    equal(compared, 9 * 2 * 6 * 3, "arrangements");
});

test("the rows are those of a plain reference: groups, folded ones, unfolded and pinned lanes", async () => {
    const rows = randomRows(2000, words);
    const table = read(rows, words);
    const pins = [9, 4];
    const looks = {
        laneHeight: 22,
        openHeight: 130,
        folded: new Set(["zebra"]),
        unfolded: new Set([4, 77]),
    };
    /* "Zebra 1999" has few lanes: with that filter some groups have one. */
    for (const filter of ["", "199"])
        for (const [grouping, groupOf] of groupingsOf(table, words)) {
            const of = done(arrange({ table, filter, pins, order: null, grouping }));
            const layout = done(new Layout(of, looks).fill());
            const plain = plainly(rows, words, {
                filter,
                pins,
                groupOf: groupOf && ((row) => groupOf(row, rows)),
            });
            const wanted = [];
            let top = 0;
            const add = (row, height) => {
                wanted.push({ ...row, top, height });
                top += height;
            };
            const addLane = (lane, pinned) => {
                const open = looks.unfolded.has(lane);
                add({ lane, pinned, open }, open ? 152 : 22);
            };
            for (const lane of plain.pins) addLane(lane, true);
            for (const [name, lanes] of plain.groups) {
                const hasRow = grouping && !(grouping.hidesSingle && lanes.length === 1);
                const folded = Boolean(hasRow && looks.folded.has(name));
                if (hasRow) add({ name, lanes, folded }, folded ? 38 : 24);
                if (!folded) for (const lane of lanes) addLane(lane, false);
            }
            const got = layout.between(0, layout.height).map(({ type, ...row }) => {
                if (type === "lane")
                    return {
                        lane: row.lane.lane,
                        pinned: row.first,
                        open: row.open,
                        top: row.top,
                        height: row.height,
                    };
                return {
                    name: row.name,
                    lanes: [...row.lanes],
                    folded: row.folded,
                    top: row.top,
                    height: row.height,
                };
            });
            equal(got, wanted, `the rows of "${filter}"`);
            equal(layout.height, top, "the height");
            const visible = wanted.filter((row) => row.name === undefined).map((row) => row.lane);
            equal(layout.first(), visible[0], "the first lane");
            for (let lane = 0; lane < rows.length; lane++) {
                const at = visible.indexOf(lane);
                equal(layout.ofLane(lane)?.lane.lane, at < 0 ? undefined : lane, "its row");
                equal(layout.beside(lane, 1), visible[at + 1], "the lane below");
                equal(layout.beside(lane, -1), visible[at - 1], "the lane above");
            }
            const middle = wanted[Math.floor(wanted.length / 2)];
            equal(layout.between(middle.top, middle.top + 1).length, 1, "the row at a height");
            equal(
                layout.from(middle.top).next().value.top,
                middle.top,
                "the rows from a height on",
            );
        }
});

test("lanes are found by id, however many have the same", async () => {
    const rows = randomRows(2500, words);
    const table = read(rows, words, 700);
    for (let id = -1; id <= 2500; id++) {
        const wanted = rows.filter((row) => row[1] === id).map((row) => [row[0], words[row[2]]]);
        equal(
            table.withId(id).map(({ lane, name }) => [lane, name]),
            wanted,
            `id ${id}`,
        );
    }
    equal(table.get(2500), undefined, "a lane that there is not");
});

test("what lanes mostly waited for, and for how long, is what a plain sum says", async () => {
    const reasons = ["sync", "", "chan receive", "sync"];
    const rows = Array.from({ length: 2100 }, () =>
        Array.from({ length: random(5) }, () => [random(reasons.length), 1 + random(100)]),
    );
    const table = new WaitTable();
    for (let first = 0; first < rows.length; first += 1000)
        table.add(
            rows.slice(first, first + 1000).map((row) => row.flat()),
            reasons,
        );
    /* As shown: by titles, which are not in the order of the words. */
    const titles = { sync: "a lock", "": "(no reason given)", "chan receive": "chan receive" };
    const { key, texts } = table.mostlyOrder((name) => titles[name]);
    rows.forEach((row, lane) => {
        const sums = new Map();
        for (const [reason, ns] of row)
            sums.set(reasons[reason], (sums.get(reasons[reason]) ?? 0) + ns);
        for (const [name, ns] of sums)
            equal(table.time(lane, table.names.indexOf(name)), ns, "the time");
        const most = Math.max(...sums.values());
        const [text] = [...sums].find(([, ns]) => ns === most) ?? [null];
        equal(texts[key(lane)] ?? null, text === null ? null : titles[text], "mostly");
    });
    equal([key(5000), table.time(5000, 0)], [-1, 0], "a lane that is not known yet");
});

test("no part of the work has more than a few thousand steps, with however many lanes and names", async () => {
    const names = Array.from({ length: 60000 }, (_, i) => `näme ${(i * 7919) % 60000}`);
    const table = read(randomRows(150000, names), names, 10000);
    let steps = 0;
    let most = 0;
    let all = 0;
    const counted =
        (fn) =>
        (...args) => {
            steps++;
            return fn(...args);
        };
    const note = () => {
        most = Math.max(most, steps);
        all += steps;
        steps = 0;
    };
    const { Collator } = Intl;
    Intl.Collator = class {
        compare = counted(new Collator().compare);
    };
    try {
        const [, [byId], , [byName]] = ordersOf(table, names);
        const [, [named]] = groupingsOf(table, names);
        const text = counted(named.text);
        const wanted = {
            table,
            filter: "n",
            pins: [],
            grouping: { ...named, key: counted(named.key), text },
        };
        for (const order of [byId, byName]) {
            const by = { ...order, key: counted(order.key) };
            const of = done(arrange({ ...wanted, order: by }), note);
            const unfolded = { has: counted(() => false) };
            const looks = { laneHeight: 22, openHeight: 130, folded: new Set(), unfolded };
            done(new Layout(of, looks).fill(), note);
        }
        const numbers = Uint32Array.from({ length: 150000 }, () => random(1e9));
        done(
            sorted(
                numbers,
                counted((a, b) => a - b),
            ),
            note,
        );
    } finally {
        Intl.Collator = Collator;
    }
    ok(all > 150000 * 10, `${all} steps`);
    ok(most <= 2 * PART, `${most} steps in one part`);
});

/* Runs with a clock that advances with each look at it. */
async function withClock(run) {
    const { now } = performance;
    let ms = 0;
    performance.now = () => ms++;
    try {
        await run();
    } finally {
        performance.now = now;
    }
}

test("the old result stays until the new one is there, and newer work ends older work", async () => {
    await withClock(async () => {
        const parts = [];
        const wanted = signal("a");
        const result = signal("none");
        const results = [];
        result.subscribe((now) => results.push(now));
        keepAt(result, () => {
            const name = wanted.value;
            return (function* () {
                yield* each(100 * PART, (i) => {
                    if (i % PART === 0) parts.push(name);
                });
                return name;
            })();
        });
        const before = parts.length;
        ok(before > 0 && before < 20, `${before} parts at once`);
        equal(document.documentElement.dataset.busy, "", "busy");
        wanted.value = "b";
        wanted.value = "c";
        equal(result.peek(), "none", "the old result");
        await settled();
        equal(results, ["none", "c"], "the results");
        equal(document.documentElement.dataset.busy, undefined, "busy afterwards");
        equal(parts.filter((name) => name === "a").length, before, "parts of the first work");
        equal(parts.filter((name) => name === "c").length, 100, "parts of the last work");
        /* Short work is done at once. */
        keepAt(result, () =>
            (function* () {
                yield;
                return "short";
            })(),
        );
        equal(result.peek(), "short", "the result of short work");
        const long = inSlices(each(100 * PART, () => {}));
        let isThere = false;
        long.then(() => {
            isThere = true;
        });
        await Promise.resolve();
        ok(!isThere, "long work goes on in other tasks");
        await long;
    });
});

test("sentences have names without the path of their package, and numbers beside their units", () => {
    for (const [given, wanted] of [
        [
            "mostly those of github.com/a/b-c/internal/link.(*ctx).run (link.go:7)",
            "mostly those of link.(*ctx).run (link.go:7)",
        ],
        ["gopkg.in/yaml.v3.Unmarshal waited", "yaml.v3.Unmarshal waited"],
        ["net/http.(*conn).serve (server.go:1)", "net/http.(*conn).serve (server.go:1)"],
        [
            "read 10.0.0.1:5432 took 3 us, 5 % of 2 s",
            "read 10.0.0.1:5432 took 3\u00a0µs, 5\u00a0% of 2\u00a0s",
        ],
        ["read /etc/a.bcd/e.conf for 7 samples", "read /etc/a.bcd/e.conf for 7 samples"],
    ])
        equal(sentence(given), wanted, given);
});

test("a title that is too long keeps its process and its function", () => {
    const within = (number, name, width) =>
        numberedWithin(number, name, width, (text) => text.length);
    equal(within("G7", "main.serve", 20), "G7 main.serve");
    equal(within("G7", "main.(*server).serveEverything", 20), "G7 main.(*s…erything");
    equal(within("3", "backend-of-shop (4711): serve", 30), "3 backend…f-shop (4711): serve");
    equal(within("3", "backend-of-shop (4711): serve", 24), "3 backend-of-…11): serve");
});

test("a number is that within the process that the name says", () => {
    equal(ownNumber(1000000003, "shop (4711): serve"), 3, "of a process");
    equal(ownNumber(1000000003, "main.serve"), 1000000003, "of one that is not named");
    equal(ownNumber(1000000003), 1000000003, "without a name");
});

await main();
