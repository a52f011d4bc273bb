// Builds the page into dist/, byte for byte the same wherever it is built.
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });

/* The titles of the kinds of waits, by their words: WAIT_KIND(NAME, "word", "title", ... */
const kinds = readFileSync(new URL("../src/wire/wait_kinds.def", import.meta.url), "utf8");
const rows = [...kinds.matchAll(/^WAIT_KIND\(\w+, *"([^"]+)", *"([^"]+)"/gm)];
if (rows.length !== kinds.match(/^WAIT_KIND\(/gm)?.length)
    throw new Error("wait_kinds.def has a row that is not understood");
const titles = Object.fromEntries(rows.map(([, word, title]) => [word, title]));

const options = {
    outdir: out,
    bundle: true,
    minify: true,
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    define: { WAIT_TITLES: JSON.stringify(titles) },
};
await build({
    ...options,
    entryPoints: { app: "src/main.tsx", compare: "src/compare_main.tsx" },
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
});
await build({ ...options, entryPoints: { worker: "src/wasm/worker.ts" }, format: "iife" });
for (const name of ["index.html", "compare.html"]) copyFileSync(`src/${name}`, `${out}/${name}`);
