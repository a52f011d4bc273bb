// Builds the page into dist/, byte for byte the same wherever it is built.
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });

/* The titles of the kinds of waits, by their words: WAIT_KIND(NAME, "word", "title", ... */
const kinds = readFileSync(new URL("../src/wire/wait_kinds.def", import.meta.url), "utf8");
const rows = [...kinds.matchAll(/^WAIT_KIND\((\w+), *"([^"]+)", *"([^"]+)"/gm)];
if (rows.length !== kinds.match(/^WAIT_KIND\(/gm)?.length)
    throw new Error("wait_kinds.def has a row that is not understood");
const titles = Object.fromEntries(rows.map(([, , word, title]) => [word, title]));

/* With which words logs name each kind: WAIT(name, group, KIND, "words", ... */
const waits = readFileSync(new URL("../src/wire/waits.def", import.meta.url), "utf8");
const named = [...waits.matchAll(/^WAIT\(\w+, *\w+, *(\w+), *"([^"]+)"/gm)];
const logWords = Object.fromEntries(
    rows.map(([, kind, word]) => [
        word,
        named.filter(([, of]) => of === kind).map(([, , words]) => words),
    ]),
);

/* The classes of waits by their words: WAIT_CLASS(CLASS, "word") */
const classes = Object.fromEntries(
    [
        ...readFileSync(new URL("../src/words/wait_classes.def", import.meta.url), "utf8").matchAll(
            /^WAIT_CLASS\((\w+), *"([^"]+)"\)/gm,
        ),
    ].map(([, name, word]) => [word, name.toLowerCase()]),
);

/* The tokens by name, light and dark, for what is drawn on canvases. */
const sheet = readFileSync(new URL("src/tokens.css", import.meta.url), "utf8");
const tokensOf = (selector) => {
    const from = sheet.indexOf(`\n${selector} {`);
    const block = sheet.slice(from, sheet.indexOf("\n}", from));
    return Object.fromEntries(
        [...block.matchAll(/--([\w-]+): *([^;]+);/g)].map(([, name, value]) => [
            name,
            value.replace(/\s+/g, " ").trim(),
        ]),
    );
};
const tokens = { light: tokensOf(":root"), dark: tokensOf('[data-theme="dark"]') };

const options = {
    outdir: out,
    bundle: true,
    minify: true,
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    define: {
        WAIT_TITLES: JSON.stringify(titles),
        WAIT_LOG_WORDS: JSON.stringify(logWords),
        WAIT_CLASSES: JSON.stringify(classes),
        TOKENS: JSON.stringify(tokens),
    },
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
