// Fails if a size or colour is written anywhere but in src/tokens.css, or a name of its is used that is not there.
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("src/", import.meta.url);
const names = readdirSync(folder, { recursive: true }).filter((name) => /\.(css|tsx?)$/.test(name));
const tokens = readFileSync(new URL("tokens.css", folder), "utf8");
const known = new Set([...tokens.matchAll(/--([\w-]+):/g)].map(([, name]) => name));

/* In style sheets; widths of screens, which cannot be variables, are in @media. */
const inStyles = /#[0-9a-f]{3,8}\b|\b(?:rgb|hsl)a?\(|\d(?:px|pt)\b/i;
/* In code: a colour in quotes, or a size in pixels that is not computed. */
const inCode = /["'`]#[0-9a-f]{3,8}["'`]|\b(?:rgb|hsl)a?\(\d|\d(?:px|pt)\b/i;

let wrong = 0;
for (const name of names.filter((one) => one !== "tokens.css")) {
    const isStyle = name.endsWith(".css");
    const text = readFileSync(new URL(name, folder), "utf8");
    text.split("\n").forEach((line, i) => {
        const code = line.replace(/\/\*.*|^ \* .*|\/\/.*/, "");
        const hasLiteral =
            (isStyle ? inStyles : inCode).test(code) && !/@media|matchMedia/.test(code);
        const unknown = [...code.matchAll(/var\(--([\w-]+)/g)].find(([, of]) => !known.has(of));
        if (!hasLiteral && !unknown) return;
        console.error(
            `src/${name}:${i + 1}: ${unknown ? "no such token" : "belongs into src/tokens.css"}: ${line.trim()}`,
        );
        wrong++;
    });
}
if (wrong > 0) process.exit(1);
