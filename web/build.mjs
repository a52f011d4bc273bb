// Builds the page into dist/, byte for byte the same wherever it is built.
import { copyFileSync, mkdirSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });
await build({
    entryPoints: { app: "src/main.tsx", compare: "src/compare_main.tsx" },
    outdir: out,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
});
for (const name of ["index.html", "compare.html"]) copyFileSync(`src/${name}`, `${out}/${name}`);
