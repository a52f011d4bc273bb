/*
 * The address of the page and the browser's history. The address contains the complete view
 * (state.ts). Looking at something else (another selection, range, panel or window) adds an entry
 * to the history; moving about does not.
 */
import { signal } from "@preact/signals";
import { whenSettled } from "./settled";
import { fromFragment, type Parameter, parseRange, toFragment } from "./state";

/* The fragment last written to the address. */
export const fragmentKept = signal("");

/* What the user looks at, other than the window. */
const looked: readonly Parameter[] = [
    "v",
    "finding",
    "sel",
    "mark",
    "r",
    "rl",
    "tab",
    "why",
    "fn",
    "lock",
    "like",
];

/* Windows that overlap in less than half of the longer one show different things. */
function isElsewhere(a: string | null, b: string | null): boolean {
    const [one, other] = [parseRange(a), parseRange(b)];
    if (!one || !other) return false;
    const common = Math.min(one.to, other.to) - Math.max(one.from, other.from);
    return common < Math.max(one.to - one.from, other.to - other.from) / 2;
}

/* The start of the current entry, whose window follows the page. */
let entry = new URLSearchParams();

function isStep(now: URLSearchParams): boolean {
    return (
        looked.some((name) => entry.get(name) !== now.get(name)) ||
        isElsewhere(entry.get("w"), now.get("w"))
    );
}

/*
 * Whether the user has acted since the last entry. What the page does by itself changes the entry:
 * it opens at the first finding, a growing trace moves the window, and answers arrive after the
 * click that requested them.
 */
let hasActed = false;

function write(text: string): void {
    const now = new URLSearchParams(text);
    /* In a comparison, the page around this one has the history. */
    const isNew = hasActed && location.hash !== "" && parent === window && isStep(now);
    if (isNew) hasActed = false;
    if (isNew) history.pushState(null, "", `#${text}`);
    else history.replaceState(null, "", `#${text}`);
    if (isNew || !hasActed) entry = now;
}

/* Keeps the address up to date, and applies what the user changes in it. */
export function keepFragment(): void {
    whenSettled(toFragment, (text) => {
        if (text !== location.hash.slice(1)) write(text);
        fragmentKept.value = text;
    });
    const acts = () => {
        hasActed = true;
    };
    for (const name of ["pointerdown", "keydown", "wheel"])
        addEventListener(name, acts, { capture: true, passive: true });
    addEventListener("hashchange", () => {
        hasActed = false;
        entry = new URLSearchParams(location.hash.slice(1));
        fromFragment();
    });
}
