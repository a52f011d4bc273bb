// Takes the pictures of the page, of reports and of exports in other tools in docs/img, but for the tasks', which their test takes
// (TRAIL_PICTURES). That of speedscope needs the npm packages of tests/commands/npm in TRAIL_DUCKDB.
// usage: node pictures.mjs TRAIL ROOT - [NAME...]
// With pngquant they are a third as large.
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
    idle,
    LABELS,
    measure,
    openPage,
    openTab,
    scheduler as root,
    serve,
    trail,
    until,
} from "./tests/browser.mjs";
import { withDevTools } from "./tests/devtools.mjs";
import { example, folder, serving } from "./tests/traces.mjs";

const press = async (page, keys) => {
    for (const key of keys.split(" ")) await page.keyboard.press(key);
    await idle(page);
};

const lock = (page, name) => page.locator(".table tbody tr", { hasText: name }).first();

/* Clicks the first pixel of the first lane that several spans share. */
const clickMerged = async (page) => {
    const box = await page.locator("canvas.rows").boundingBox();
    const list = page.locator("h3", { hasText: "In this pixel" });
    let x = box.x + LABELS;
    await until("spans that share a pixel", async () => {
        await page.mouse.click(x++, box.y + measure("lane-height") / 2);
        await idle(page);
        return list.isVisible();
    });
};

/* name: the trace, the address, and what is done before the picture is taken */
const pictures = {
    view: ["shop-go", ""],
    "view-threads": ["shop-c", ""],
    "view-wakeup": [
        "shop-c",
        "#g=none&tab=locks&all=",
        async (page) => {
            await lock(page, "cache_mu").click();
            await openTab(page, "Span");
            await page.locator(".details dt:text('Woken by')").waitFor();
            await press(page, "b 0");
        },
    ],
    "view-lock": [
        "shop-c",
        "#tab=locks&all=",
        async (page) => {
            await lock(page, "cache_mu").click();
            await page.locator(".lock-time .region").first().waitFor();
            await page.locator(".lock-time").evaluate((of) => of.scrollIntoView());
        },
    ],
    "view-request": [
        "shop-c",
        "#tab=requests&all=",
        (page) => page.locator(".table tbody tr").first().click(),
    ],
    "view-merged": ["load-go1.23", "#tab=span&all=", clickMerged],
    "view-area": [
        "shop-c",
        "#g=none&all=",
        async (page) => {
            const box = await page.locator("canvas.rows").boundingBox();
            await page.keyboard.down("Shift");
            await page.mouse.move(box.x + 400, box.y + 12);
            await page.mouse.down();
            await page.mouse.move(box.x + 800, box.y + 60, { steps: 5 });
            await page.mouse.up();
            await page.keyboard.up("Shift");
            await idle(page);
            await page.mouse.click(box.x + 60, box.y + 36, { button: "right" });
        },
    ],
    "view-flame": ["shop-go", "", (page) => openTab(page, "Stacks")],
    "view-heat": ["load-go1.23", "#tab=heat&all="],
    "view-sql": [
        "load-go1.23",
        "#tab=sql&all=",
        async (page) => {
            await page
                .locator("textarea")
                .fill("select time_ns, value as heap from events where kind = 'Metric' and name like '%heap/objects%' order by time_ns");
            await press(page, "Control+Enter");
            await page.getByText("417 of 417 rows have a time").waitFor();
        },
    ],
};

const wanted = process.argv.slice(5);
const isWanted = (name) => wanted.length === 0 || wanted.includes(name);
const options = { colorScheme: "light", viewport: { width: 1280, height: 800 } };

async function take(page, name) {
    await idle(page);
    await shoot(page, name);
}

async function shoot(page, name, clip) {
    const path = join(root, "docs/img", `${name}.png`);
    await page.screenshot({ path, clip });
    spawnSync("pngquant", ["--force", "--ext=.png", "--strip", "--speed=1", path]);
}

for (const [name, [trace, address, act]] of Object.entries(pictures).filter(([of]) => isWanted(of)))
    await serving(example(trace), async (open) => {
        const page = await open(address, options);
        await act?.(page);
        await take(page, name);
    });
if (isWanted("view-two")) {
    const { server, url } = await serve([example("shop-c"), example("shop-c-fixed")]);
    await take(await openPage(url, options, "iframe"), "view-two");
    server.kill();
}
for (const [name, trace] of [
    ["report", "shop-go"],
    ["report-threads", "shop-c"],
].filter(([of]) => isWanted(of))) {
    const file = join(folder, `${name}.html`);
    execFileSync(trail, ["report", `${trace}.trace`, "-o", file], {
        cwd: join(root, "examples/traces"),
    });
    await take(await openPage(pathToFileURL(file).href, options, "h1"), name);
}

/* Exports in other tools, which do not say when they have drawn. */
const settled = (page) => page.waitForTimeout(1500);

function exported(trace, name, ...words) {
    const file = join(folder, name);
    execFileSync(trail, ["export", ...words, `${trace}.trace`, "-o", file], {
        cwd: join(root, "examples/traces"),
    });
    return file;
}

if (isWanted("export-devtools")) {
    const whyNot = await withDevTools(async (page) => {
        const chosen = page.waitForEvent("filechooser");
        await page.getByRole("button", { name: "Load trace" }).click();
        await (await chosen).setFiles(exported("shop-c", "shop-c.json"));
        await page.getByRole("button", { name: "Close" }).click(); // the help on keys
        await page.getByRole("button", { name: "Hide sidebar" }).click();
        await settled(page);
        /* Opens the process, then its threads, the last one first. */
        for (const y of [129, 251, 230, 209, 188, 167, 146]) await page.mouse.click(60, y);
        await page.mouse.move(200, 163);
        /* The tooltip has this text only if the threads are open. */
        await page.getByText("mutex cache_mu", { exact: true }).waitFor();
        await settled(page);
        await shoot(page, "export-devtools", { x: 0, y: 54, width: 1280, height: 320 });
    });
    if (whyNot) throw new Error(whyNot);
}
if (isWanted("export-speedscope")) {
    const profile = readFileSync(
        exported("shop-go", "shop-go.speedscope", "--type=offcpu"),
        "base64",
    );
    const script = join(folder, "speedscope.js");
    writeFileSync(script, `speedscope.loadFileFromBase64("shop-go.speedscope", "${profile}")`);
    const index = join(process.env.TRAIL_DUCKDB, "node_modules/speedscope/dist/release/index.html");
    const page = await openPage(
        `${pathToFileURL(index)}#localProfilePath=${script}`,
        { viewport: { width: 1280, height: 320 } },
        "canvas",
    );
    await settled(page);
    await page.keyboard.press("2"); // left heavy
    await settled(page);
    await shoot(page, "export-speedscope");
}
process.exit(0);
