// Opens DevTools of the system's Chromium, which brings them with it, as a page of their own.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PATIENCE, temporaryFolder, until } from "./browser.mjs";

const playwright = await import("playwright-core").catch(() => null);
/* The smaller browser without a window may have no DevTools. */
const executablePath = [
    process.env.TRAIL_CHROMIUM,
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
].find((path) => path && existsSync(path));

export const mayHaveDevTools = Boolean(playwright && executablePath);

/* Calls `run` with a page that shows the panel Performance. Returns why not, if the browser has no DevTools. */
export async function withDevTools(run) {
    const folder = temporaryFolder();
    const context = await playwright.chromium.launchPersistentContext(folder, {
        executablePath,
        timeout: PATIENCE,
        viewport: { width: 1280, height: 640 },
        args: [
            "--no-sandbox",
            "--headless=new",
            "--remote-debugging-port=0",
            "--remote-allow-origins=*",
        ],
    });
    context.setDefaultTimeout(PATIENCE);
    try {
        const file = join(folder, "DevToolsActivePort");
        const [port] = await until(
            "it has a port",
            () => existsSync(file) && /^\d+(?=\n)/.exec(readFileSync(file, "utf8")),
        );
        const page = await context.newPage();
        const url = `http://127.0.0.1:${port}/devtools/devtools_app.html?panel=timeline`;
        await page.goto(url);
        if ((await page.title()) !== "DevTools") return `${executablePath} has no DevTools`;
        await run(page);
        return "";
    } finally {
        await context.close();
    }
}
