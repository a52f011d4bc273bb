// Each kind of finding leads to its culprit, as tests/commands/findings/culprits.py made the traces.
// Arguments: the trail command, the tree's folder. TRAIL_PYTHON: the interpreter. Skipped without Chromium.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
    equal,
    idle,
    main,
    needBrowser,
    ok,
    openTab,
    scheduler as root,
    runJson,
    test,
    trail,
    until,
    withSign,
} from "./browser.mjs";
import { folder, serving } from "./traces.mjs";

needBrowser();

const python = process.env.TRAIL_PYTHON ?? "python3";
const script = join(root, "tests/commands/findings/culprits.py");
const culprits = JSON.parse(execFileSync(python, [script, trail, root, folder]));
const table = readFileSync(join(root, "src/diagnose/findings.def"), "utf8");
const kinds = new Set([...table.matchAll(/^FINDING\(\w+, *"(.*)"\)/gm)].map(([, kind]) => kind));

/* Only the first findings have cards. */
const CARDS = 3;

async function showFinding(page, number) {
    if (number >= CARDS) await openTab(page, "Summary");
    const one =
        number < CARDS
            ? page.locator(".card").nth(number).getByRole("button")
            : page.locator(".findings li button").nth(number);
    await one.click();
}

test("each kind of finding has a trace with a culprit", () => {
    ok(kinds.size > 40, "there are kinds");
    const missing = [...kinds].filter((kind) => !(kind in culprits));
    const others = Object.keys(culprits).filter((kind) => !kinds.has(kind));
    equal([missing, others], [[], []], "kinds without a trace, traces without a kind");
});

for (const [kind, culprit] of Object.entries(culprits))
    test(`${kind} is shown ${culprit === null ? "without a culprit" : `at ${culprit}`}`, async () => {
        const path = join(folder, `${kind}.trace`);
        const { findings, origin_ns: origin } = runJson("summary", path);
        const number = findings.findIndex((of) => of.kind === kind);
        ok(number >= 0, "it is found");
        const { begin_ns, end_ns, heading } = findings[number];
        const [begin, end] = [begin_ns - origin, end_ns - origin];
        await serving(path, async (open, ask, leave) => {
            /* With a window of its own, in which no finding is shown yet. */
            const page = await open("#w=0-1000&all=");
            await showFinding(page, number);
            const said = page.locator(".details .say");
            await until("it is explained", async () => {
                const text = (await said.count()) && (await page.textContent(".details"));
                return text && text.replaceAll("\u00a0", " ").includes(withSign(heading));
            });
            await idle(page);
            const address = new URLSearchParams(new URL(page.url()).hash.slice(1));
            const [from, to] = address.get("w").split("-").map(Number);
            ok(from <= begin && to >= end, `${begin} to ${end} is within ${from} to ${to}`);
            const selection = address.get("sel");
            if (culprit === null) equal(selection, null, "the selection");
            else {
                const [, lane, span] = /^g(\d+)\.(\d+)$/.exec(selection);
                const { rows, columns } = await ask("lanes?kind=goroutine&count=1000");
                equal(rows[lane][columns.indexOf("id")], culprit, "the goroutine");
                const at = await ask(`span?kind=goroutine&lane=${lane}&span=${span}`);
                ok(at.begin <= end && at.end >= begin, `${at.begin} to ${at.end} is then`);
            }
            if (number < CARDS) {
                const shown = page.locator(".card.selected");
                equal(await shown.getAttribute("title"), withSign(findings[number].text), "shown");
            }
            ok(!/undefined|null|NaN/.test(await page.textContent(".details")), "its text");
            await leave(page);
        });
    });

await main();
