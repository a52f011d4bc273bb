// Builds the page into dist/, byte for byte the same wherever it is built.
import { copyFileSync, mkdirSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });
const options = {
    outdir: out,
    bundle: true,
    minify: true,
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
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
