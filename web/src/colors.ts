/*
 * Colours and measures for everything drawn on canvases, from tokens.css, which build.mjs reads:
 * light and dark, regardless of what the page shows now, because saved pictures are always light.
 */
import { effect, signal } from "@preact/signals";
import { theme } from "./state";

export type Rgb = [number, number, number];

declare const TOKENS: Record<"light" | "dark", Record<string, string>>;

/* The classes of waits, by their number in a picture: src/words/wait_classes.h. */
export const waitClasses = ["unknown", "lock", "cond", "io", "sleep", "idle", "runtime"] as const;
export type WaitClass = (typeof waitClasses)[number];
export const UNKNOWN_WAIT = 0;
export const IDLE_WAIT = 5;

/* By number of the state: none, ready, running, waiting, syscall, syscall with its P released. */
const STATES = ["idle", "ready", "running", "idle", "syscall", "released"];

export function css([r, g, b]: Rgb): string {
    return `rgb(${r} ${g} ${b})`;
}

function rgbOf(hex: string): Rgb {
    const value = Number.parseInt(hex.slice(1, 7), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
}

const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/* As a pixel of ImageData: a number of 32 bits. */
export function pixelOf([r, g, b]: Rgb, alpha: number): number {
    const a = Math.round(255 * alpha);
    return (
        (littleEndian
            ? (a << 24) | (b << 16) | (g << 8) | r
            : (r << 24) | (g << 16) | (b << 8) | a) >>> 0
    );
}

function paletteOf(dark: boolean) {
    const get = (name: string) => TOKENS[dark ? "dark" : "light"][name] ?? TOKENS.light[name];
    const rgb = (name: string) => rgbOf(get(name));
    return {
        dark,
        /* The value of a token. */
        get,
        rgb,
        background: get("lane"),
        chrome: get("chrome"),
        text: get("text"),
        faint: get("faint"),
        line: get("line"),
        gridline: get("gridline"),
        accent: get("accent"),
        selected: get("selected"),
        warn: get("sev-high"),
        states: STATES.map((name) => rgb(`s-${name}`)),
        /* Text on states. */
        onState: STATES.map((name) => get(`s-${name}-text`) ?? get("text")),
        /* By class: edge and fill. */
        waits: waitClasses.map((name) => ({
            ink: rgb(`s-${name}`),
            wash: rgb(get(`s-${name}-wash`) ? `s-${name}-wash` : `s-${name}`),
        })),
    };
}
export type Palette = ReturnType<typeof paletteOf>;

export const light = paletteOf(false);
const dark = paletteOf(true);

export const palette = signal<Palette>(light);

const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", () => {
    systemDark.value = system.matches;
});

export function keepColors(): void {
    const kept = localStorage.getItem("trail.theme");
    if (kept === "light" || kept === "dark") theme.value = kept;
    /* Follows other pages of this server, such as the two frames of a comparison. */
    addEventListener("storage", ({ key, newValue }) => {
        if (
            key === "trail.theme" &&
            (newValue === "light" || newValue === "dark" || newValue === "auto")
        )
            theme.value = newValue;
    });
    effect(() => {
        const isDark = theme.value === "dark" || (theme.value === "auto" && systemDark.value);
        palette.value = isDark ? dark : light;
        document.documentElement.dataset.theme = isDark ? "dark" : "light";
        localStorage.setItem("trail.theme", theme.value);
    });
}

/* A measure in pixels. */
export function measure(name: string): number {
    return Number.parseFloat(TOKENS.light[name]);
}

/* The font of a text on a canvas: one of the sizes, "t-11", and a weight. */
export function font(size: string, weight: "medium" | "strong" | "" = ""): string {
    const { light: of } = TOKENS;
    return `${weight && `${of[weight]} `}${of[size]} ${of.sans}`;
}

/*
 * Scales for shares from 0 to 1, ordered by lightness, so that they work with colour blindness; 0 is close to the
 * background. Light: ColorBrewer's Blues; dark: cividis (Nunez, Anderton and Renslow 2018).
 */
const scales = [light, dark].map((of) => of.get("heat").split(" ").map(rgbOf));

export function heatColor(share: number, isDark: boolean): string {
    const scale = scales[Number(isDark)];
    const place = Math.max(0, Math.min(share, 1)) * (scale.length - 1);
    const low = Math.min(Math.floor(place), scale.length - 2);
    const [a, b] = [scale[low], scale[low + 1]];
    const mix = (i: number) => Math.round(a[i] + (b[i] - a[i]) * (place - low));
    return css([mix(0), mix(1), mix(2)]);
}

const utf8 = new TextEncoder();

/* The hue of a name, from a hash of its bytes (FNV-1a), so that it is the same everywhere, as in reports. */
export function nameHue(name: string): number {
    let hash = 2166136261;
    for (const byte of utf8.encode(name)) hash = Math.imul(hash ^ byte, 16777619);
    return (hash >>> 0) % 360;
}

export function nameColor(name: string, isDark: boolean): string {
    return `hsl(${nameHue(name)} ${(isDark ? dark : light).get("name-tint")})`;
}
