/*
 * Text of a trace as it is shown to people: the one rule of terminal, report and page (src/base/plain.h). What would
 * reverse the text around it, or is not seen, becomes an escape as in Go's quotes. As in reports, a joiner within a
 * picture is part of it.
 */
const PICTURE = "[\\u2600-\\u27ff\\u{1f300}-\\u{1faff}]";
const JOINER = `(?<=${PICTURE}\\ufe0f?)\\u200d(?=${PICTURE})`;
const hidden = new RegExp(`(?!${JOINER})[^\\p{L}\\p{M}\\p{N}\\p{P}\\p{S} ]`, "gu");
const letters = "abtnvfr"; // of 7 to 13

function escapeOf(character: string): string {
    const code = character.codePointAt(0) ?? 0;
    if (code >= 7 && code <= 13) return `\\${letters[code - 7]}`;
    const hex = (digits: number) => code.toString(16).padStart(digits, "0");
    if (code < 0x80) return `\\x${hex(2)}`;
    return code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
}

/* By what is shown: the server knows names as they are. */
const originals = new Map<string, string>();

export function plain(text: string): string {
    const shown = text.replace(hidden, escapeOf);
    if (shown !== text) originals.set(shown, text);
    return shown;
}

/* A line of a source file, whose tabs are its layout. */
export function plainLine(text: string): string {
    return text.split("\t").map(plain).join("\t");
}

/* The text with the name in it, the longest that is known, as the server has it: "parse\\u202e#3". */
export function original(text: string): string {
    if (!text.includes("\\")) return text;
    let [longest, name] = ["", ""];
    for (const [shown, of] of originals)
        if (shown.length > longest.length && text.includes(shown)) [longest, name] = [shown, of];
    return longest ? text.replaceAll(longest, () => name) : text;
}

/* An answer with all of its texts, but for the names of members, in this form. */
export function inForm(value: unknown, form: (text: string) => string): unknown {
    if (typeof value === "string") return form(value);
    if (typeof value !== "object" || value === null) return value;
    const of = value as Record<string, unknown>;
    for (const key of Object.keys(of)) {
        const part = of[key];
        if (typeof part === "string" || typeof part === "object") of[key] = inForm(part, form);
    }
    return value;
}
