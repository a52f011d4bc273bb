/* The parameters of the page's own address. Unknown ones have no effect; a message names them. */
import { say } from "./state";

/* Parameters of the query: those the server is opened with, and the file that the page opened
 * (wasm/source.ts). */
const ofQuery = ["token", "opened"];

function others(text: string, known: readonly string[]): string[] {
    return [...new Set(new URLSearchParams(text).keys())].filter((name) => !known.includes(name));
}

function sayThem(names: string[]): void {
    const what =
        names.length === 1 ? "an unknown parameter, which is" : "unknown parameters, which are";
    if (names.length > 0) say(`The address has ${what} ignored: ${names.join(", ")}.`);
}

/* `known`: the parameters of the fragment. */
export function keepKnown(known: readonly string[]): void {
    const ofFragment = () => others(location.hash.slice(1), known);
    sayThem([...others(location.search, ofQuery), ...ofFragment()]);
    addEventListener("hashchange", () => sayThem(ofFragment()));
}
