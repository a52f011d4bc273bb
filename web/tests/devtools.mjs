// Opens DevTools of the system's Chromium, which brings them with it, as a page of their own.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder, until } from "./browser.mjs";

const playwright = await import("playwright-core").catch(() => null);
/* The smaller browser without a window has no DevTools. */
const executablePath = [
    process.env.TRAIL_CHROMIUM,
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
].find((path) => path && existsSync(path));

export const hasDevTools = Boolean(playwright && executablePath);

/* Calls `run` with a page that shows the panel Performance. */
export async function withDevTools(run) {
    const folder = temporaryFolder();
    const context = await playwright.chromium.launchPersistentContext(folder, {
        executablePath,
        viewport: { width: 1280, height: 640 },
        args: [
            "--no-sandbox",
            "--headless=new",
            "--remote-debugging-port=0",
            "--remote-allow-origins=*",
        ],
    });
    try {
        const file = join(folder, "DevToolsActivePort");
        const [port] = await until(
            "it has a port",
            () => existsSync(file) && readFileSync(file, "utf8").split("\n"),
        );
        const page = await context.newPage();
        await page.goto(`http://127.0.0.1:${port}/devtools/devtools_app.html?panel=timeline`);
        await run(page);
    } finally {
        await context.close();
    }
}
