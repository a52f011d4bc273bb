// `trail report` in a browser: what is on its first screen, that nothing is cut, that names do not reach what is around.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
    ALL,
    color,
    complaints,
    equal,
    idle,
    main,
    needBrowser,
    ok,
    openPage,
    scheduler as root,
    serve,
    temporaryFolder,
    test,
    trail,
} from "./browser.mjs";

needBrowser();

const folder = temporaryFolder();
const examples = ["shop-c", "shop-go", "load-go1.19", "load-go1.23", "uv"];

function report(trace) {
    const file = join(folder, "report.html");
    execFileSync(trail, ["report", trace, "-o", file]);
    return pathToFileURL(file).href;
}
const ofExample = (name) => report(join(root, "examples", "traces", `${name}.trace`));
const open = (url, options) => openPage(url, options, "#findings");

test("the first screen has the worst finding, and its evidence is one click away", async () => {
    for (const name of ["shop-c", "shop-go"]) {
        const page = await open(ofExample(name));
        const card = page.locator(".findings li").first();
        const { y, height } = await card.boundingBox();
        ok(y + height <= 800, `${name}: the finding ends at ${y + height}`);
        await card.getByRole("link", { name: "See it." }).click();
        const moment = page.locator(".moment").first();
        equal(await moment.locator("h3").textContent(), await card.locator("h3").textContent());
        ok(await moment.evaluate((of) => of.getBoundingClientRect().top < innerHeight), name);
    }
});

test("no column is cut in a window of 1280 px, and on a phone the first stays", async () => {
    for (const name of examples) {
        const url = ofExample(name);
        const page = await open(url);
        const cut = await page.$$eval(".scroll", (all) =>
            all.filter((of) => of.scrollWidth > of.clientWidth).map((of) => of.ariaLabel),
        );
        equal(cut, [], name);
        const phone = await open(url, { viewport: { width: 390, height: 844 } });
        equal(await phone.evaluate(() => document.documentElement.scrollWidth), 390, name);
        const moved = await phone.$$eval(".scroll", (all) =>
            all.map((of) => {
                const first = of.querySelector("tbody th");
                const before = first.getBoundingClientRect().left;
                of.scrollLeft = of.scrollWidth;
                return Math.abs(first.getBoundingClientRect().left - before);
            }),
        );
        ok(Math.max(...moved) < 1, `${name}: ${moved}`);
    }
});

test("texts on drawings end with an ellipsis where they have no room, and a few letters are left out", async () => {
    for (const [width, name] of [
        [1280, "shop-c"],
        [390, "shop-c"],
        [390, "load-go1.23"],
    ]) {
        const page = await open(ofExample(name), { viewport: { width, height: 844 } });
        const texts = () =>
            page.$$eval(":is(.flames, .timeline) :is(text, span)", (all) =>
                all.map((of) => ({
                    text: of.textContent,
                    box: of.getBoundingClientRect().width,
                    room: of.closest("svg").getBoundingClientRect().width,
                    isShortened: getComputedStyle(of).textOverflow === "ellipsis",
                    letters:
                        of.getBoundingClientRect().width /
                        parseFloat(getComputedStyle(of).fontSize),
                })),
            );
        const all = (await texts()).filter((of) => of.text !== "" && of.box > 0);
        ok(all.length > 5, `${name} ${width}: ${all.length} texts`);
        for (const of of all) {
            ok(
                of.isShortened && of.box <= of.room + 0.5,
                `${name} ${width}: ${JSON.stringify(of)}`,
            );
            ok(of.letters > 3, `${name} ${width}: ${JSON.stringify(of)}`);
        }
        if (name === "shop-c") continue; // no frame is too narrow for a name
        /* A frame that a click has widened to the page has its name. */
        const bare = await page.$(".flames > svg:not(:has(span))");
        await bare.dispatchEvent("click");
        equal((await bare.$$("span")).length, 1, "its name");
    }
});

test("frames have the colours and names that they have in the page, reasons those of their waits", async () => {
    /* By name: the colours as they are drawn. */
    const inReport = (page) =>
        page.$$eval("#flame-running .flames > svg", (all) =>
            all.map((of) => [
                of.querySelector("span")?.textContent,
                getComputedStyle(of.querySelector("rect")).fill,
            ]),
        );
    for (const colorScheme of ["light", "dark"])
        for (const name of ["shop-c", "load-go1.23"]) {
            const trace = join(root, "examples", "traces", `${name}.trace`);
            const page = await open(report(trace), { colorScheme });
            const { server, url } = await serve([trace]);
            try {
                const view = await openPage(`${url}#tab=flame&all=ir`, { colorScheme });
                await view.getByLabel("Stacks of").selectOption("running");
                await idle(view);
                const colours = new Map(
                    await view.$$eval(".boxes button", (all) =>
                        all.map((of) => [of.textContent, getComputedStyle(of).backgroundColor]),
                    ),
                );
                const known = (await inReport(page)).filter(([text]) => colours.has(text));
                ok(known.length > 5, `${name}: ${known.length} frames are in both`);
                for (const [text, fill] of known)
                    equal(fill, colours.get(text), `${name}: ${text}`);
            } finally {
                server.kill();
            }
            if (name !== "shop-c") continue;
            const reasons = await page.$$eval("#flame-waits .flames > svg[data-d='1']", (all) =>
                all.map((of) => [
                    of.querySelector("title").textContent.replace(/\W*(\w+).*/, "$1"),
                    getComputedStyle(of.querySelector("rect")).fill,
                ]),
            );
            const classes = {
                sleep: "sleep",
                condition: "cond",
                mutex: "lock",
                read: "io",
                join: "cond",
            };
            for (const [kind, fill] of reasons)
                equal(
                    fill,
                    `rgb(${color(`s-${classes[kind]}-wash`, colorScheme).join(", ")})`,
                    kind,
                );
            ok(reasons.length > 4, `${reasons.length} reasons`);
        }
});

test("names that run the other way leave what is around in its order", async () => {
    const text = readFileSync(join(root, "tests", "data", "locks-1.26.txt"), "utf8");
    const name = "\u05d0\u05d1\u05d2";
    const source = join(folder, "names.txt");
    writeFileSync(source, text.replaceAll(/(String id=\d+[^\n]*\n\tdata=")/g, `$1${name}`));
    const trace = join(folder, "names.trace");
    execFileSync(trail, ["assemble", source, "-o", trace]);
    const page = await open(report(trace));
    // "G3 NAME": the number is left of the name, and the name begins at its right end.
    const lanes = await page.$$eval(".lanes li", (all) =>
        all.map((of) =>
            [of.querySelector("b"), of.querySelector("bdi")].map(
                (e) => e.getBoundingClientRect().left,
            ),
        ),
    );
    ok(lanes.length > 0, "lanes");
    for (const [number, whose] of lanes) ok(number < whose, `${number} ${whose}`);
    equal(
        await page.$$eval("h3 bdi, td bdi, th bdi, li bdi", (all) =>
            all.every((of) => getComputedStyle(of).unicodeBidi === "isolate"),
        ),
        true,
    );
});

test("long names of locks and lanes stay within the page, and lanes have its width", async () => {
    const text = readFileSync(join(root, "tests", "data", "locks-1.26.txt"), "utf8");
    const name = "answer_requests_of_the_outside_world_until_the_server_is_told_to_stop";
    const source = join(folder, "long.txt");
    writeFileSync(source, text.replaceAll(/(String id=\d+[^\n]*\n\tdata=")/g, `$1${name}`));
    const trace = join(folder, "long.trace");
    execFileSync(trail, ["assemble", source, "-o", trace]);
    const page = await open(report(trace), { viewport: { width: 1000, height: 800 } });
    equal(await page.evaluate(() => document.documentElement.scrollWidth), 1000, "the page");
    const names = await page.$$eval(".lanes", (all) => all.map((of) => of.offsetWidth));
    ok(names.length > 0 && Math.max(...names) < 300, `names of ${names} px`);
    /* Names differ at their ends. */
    const [end] = await page.$$eval(".lanes .cut span:last-child", (all) =>
        all.map((of) => {
            const { right } = of.closest(".lanes").getBoundingClientRect();
            return right - of.getBoundingClientRect().right;
        }),
    );
    ok(end >= 0, `the end of a name is ${-end} px outside`);
});

test("on a phone the times below lanes and plots do not overlap", async () => {
    const page = await open(ofExample("shop-c"), { viewport: { width: 390, height: 844 } });
    const close = await page.$$eval(".x", (all) =>
        all.flatMap((axis) => {
            const boxes = [...axis.querySelectorAll("text")]
                .map((of) => of.getBoundingClientRect())
                .filter((of) => of.width > 0);
            return boxes.slice(1).filter((of, i) => of.left < boxes[i].right);
        }),
    );
    equal(close.length, 0, "times that overlap");
});

test("axe has no complaint, light and dark", async () => {
    for (const colorScheme of ["light", "dark"]) {
        for (const name of ALL || colorScheme === "light"
            ? ["shop-c", "load-go1.19"]
            : ["shop-c"]) {
            const page = await open(ofExample(name), { colorScheme, bypassCSP: true });
            equal(await complaints(page, colorScheme), [], `${name} ${colorScheme}`);
        }
    }
});

await main();
