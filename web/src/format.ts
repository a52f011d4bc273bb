/* Formats times, sizes and numbers. */

const units: [number, string][] = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
];

/* 1234567 -> "1.23 ms": three digits, as in the command's sentences (DURATION_WORDS). */
export function duration(ns: number): string {
    const size = Number(Math.abs(ns).toPrecision(3));
    const [unit, name] = units.find(([least]) => size >= least) ?? [1, "ns"];
    const value = ns / unit;
    return `${unit === 1 || size >= 100 * unit ? Math.round(value) : value.toPrecision(3)} ${name}`;
}

/* Texts from the command have "us"; the page writes its times with the micro sign. */
export function withSign(text: string): string {
    return text.replace(/(\d) us\b/g, "$1 µs");
}

/* Parses "1.5s", "-20 ms"; null if it is not a time. */
export function parseDuration(text: string): number | null {
    const match = /^([+-]?\d+(?:\.\d+)?)\s*(ns|us|µs|\u03bcs|ms|s|min|h)$/.exec(text.trim());
    if (!match) return /^0$/.test(text.trim()) ? 0 : null;
    /* "us", or the Greek letter instead of the micro sign. */
    const name = match[2].replace(/^[u\u03bc]s$/, "µs");
    const longer: [number, string][] = [
        [3600e9, "h"],
        [60e9, "min"],
    ];
    return Number(match[1]) * ([...longer, ...units].find((unit) => unit[1] === name)?.[0] ?? 1);
}

/* Parses "2.0-2.1 s", "900 ms to 1.1 s": two times, the first of which may lack a unit; null if it
 * is not a range. */
export function parseTimes(text: string): { from: number; to: number } | null {
    const match = /^(.+?)\s*(?:-|–|…|\.\.+|to)\s*(\S.*)$/.exec(text.trim());
    const to = match && parseDuration(match[2]);
    if (!match || to === null) return null;
    const unit = /[^\d.\s].*$/.exec(match[2])?.[0] ?? "";
    const from = parseDuration(match[1]) ?? parseDuration(match[1] + unit);
    return from !== null && from >= 0 && from < to ? { from, to } : null;
}

/* A point in time, with the digits needed for steps of `step` ns. Zero has no unit. */
export function moment(ns: number, step: number): string {
    const rounded = Math.abs(ns) + step / 2;
    const [unit, name] = units.find(([size]) => rounded >= size) ?? [1, "ns"];
    const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / step) - 1e-9)));
    const text = (ns / unit).toFixed(digits);
    return Number(text) === 0 ? "0" : `${text} ${name}`;
}

export function wallClock(ns: number, step: number): string {
    const date = new Date(Math.floor(ns / 1e6));
    const rest = String(Math.floor(ns % 1e9)).padStart(9, "0");
    const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(step))));
    const time = date.toTimeString().slice(0, 8);
    return digits ? `${time}.${rest.slice(0, digits)}` : time;
}

export function count(value: number): string {
    return value.toLocaleString("en-US");
}

/* "2 events" */
export function eventsText(many: number): string {
    return `${count(many)} ${many === 1 ? "event" : "events"}`;
}

export function bytes(value: number): string {
    const names = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    let rest = value;
    for (; rest >= 1024 && i < names.length - 1; i++) rest /= 1024;
    return `${Number(rest.toPrecision(4))} ${names[i]}`;
}

/* "12.3 %", "100 %", as show_percent of the command has them. */
export function percent(part: number, whole: number): string {
    return whole > 0 ? `${((100 * part) / whole).toFixed(1).replace("100.0", "100")} %` : "";
}

/* "example.com/a/b.(*T).Do" -> "b.(*T).Do" */
export function shortName(name: string): string {
    const open = name.search(/[([<{ ]/);
    const path = open < 0 ? name : name.slice(0, open);
    return name.slice(path.lastIndexOf("/") + 1);
}

/* For what has no name, as on the command line. */
export const NO_NAME = "(unknown)";

/* A sentence of the command as it is read: names without the paths that begin with the name of a host, numbers on one line
 * with their units. */
export function sentence(text: string): string {
    return withSign(text)
        .replace(/(?<![\w./-])(?:[\w-]+\.)+[a-z]{2,}\/(?:[\w.~-]+\/)*(?=\w)/g, "")
        .replace(/(\d) (%|[nµm]?s\b)/g, "$1\u00a0$2");
}

/* The name and what follows it, with "…" in the middle of the name if it does not fit. */
export function nameWithin(
    name: string,
    after: string,
    width: number,
    widthOf: (text: string) => number,
): string {
    const shortened = (kept: number) => {
        const head = name.slice(0, Math.ceil(kept / 2));
        const tail = name.slice(name.length - Math.floor(kept / 2));
        return `${kept < name.length ? `${head}…${tail}` : name}${after}`;
    };
    let kept = name.length;
    while (kept > 8 && widthOf(shortened(kept)) > width) kept--;
    return shortened(kept);
}

/* Goroutines of a trace of several processes are numbered in a block for each (wire/merged_ids.h). */
const ID_BLOCK = 1e9;

/* The goroutine with a number in the block of another one. */
export function idBeside(other: number, number: number): number {
    return other - (other % ID_BLOCK) + number;
}

/* The number within its process, where the name says which: 3 of "shop (4711): serve", 1000000003. */
export function ownNumber(id: number, name = ""): number {
    return name.includes(": ") ? id % ID_BLOCK : id;
}

/* The same for a name after a number. Of "shop (4711): serve" it is "shop" that is shortened. */
export function numberedWithin(
    number: string,
    name: string,
    width: number,
    widthOf: (text: string) => number,
): string {
    const room = width - widthOf(`${number} `);
    const [, program, rest] = /^(.*)( \(\d+\): .*)$/.exec(name) ?? [];
    const title = program ? nameWithin(program, rest, room, widthOf) : "";
    const fits = program && widthOf(title) <= room;
    return `${number} ${fits ? title : nameWithin(name, "", room, widthOf)}`;
}

/* The smallest of 1, 2 or 5 times a power of ten that is at least `ns`. */
export function niceStep(ns: number): number {
    const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= ns) ?? power * 10;
}

/* A name as a single word of a shell command. */
export function shellWord(name: string): string {
    return /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
