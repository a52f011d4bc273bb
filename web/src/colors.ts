/*
 * Colours. Those of the states are distinguishable with colour blindness (Okabe and Ito's order of lightness), and
 * the same in light and dark mode.
 */
import { effect, signal } from "@preact/signals";
import { theme } from "./state";

export type Rgb = [number, number, number];

/* By state: none, ready, running, waiting, system call, system call without P. */
export const stateColors: Rgb[] = [
    [0, 0, 0],
    [240, 168, 48],
    [76, 175, 114],
    [176, 190, 204],
    [0, 92, 175],
    [214, 110, 180],
];

export function css([r, g, b]: Rgb): string {
    return `rgb(${r} ${g} ${b})`;
}

const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/* As a pixel of ImageData, as a number of 32 bits. */
export function pixelOf([r, g, b]: Rgb, alpha: number): number {
    const a = Math.round(255 * alpha);
    return (
        (littleEndian
            ? (a << 24) | (b << 16) | (g << 8) | r
            : (r << 24) | (g << 16) | (b << 8) | a) >>> 0
    );
}

/* Relative luminance, as WCAG 2 defines it. */
function luminance(color: Rgb): number {
    const [r, g, b] = color.map((byte) => {
        const share = byte / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/* Luminance at which black and white text have the same contrast. */
const MIDDLE = Math.sqrt(1.05 * 0.05) - 0.05;

/* The colour, black or white, of text that is read best on this one. */
export function textOn(color: Rgb): string {
    return luminance(color) > MIDDLE ? "#000" : "#fff";
}

export interface Palette {
    background: string;
    raised: string;
    text: string;
    faint: string;
    line: string;
    accent: string;
    warn: string;
    dark: boolean;
}

export const light: Palette = {
    background: "#ffffff",
    raised: "#f3f5f7",
    text: "#1c2328",
    faint: "#5a6671",
    line: "#dde2e6",
    accent: "#0b5fc0",
    warn: "#b3261e",
    dark: false,
};

const dark: Palette = {
    background: "#14181c",
    raised: "#1e242a",
    text: "#e4e9ed",
    faint: "#9aa7b2",
    line: "#303941",
    accent: "#7db8ff",
    warn: "#ff8a80",
    dark: true,
};

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

/*
 * Scales for shares from 0 to 1, ordered by lightness, so that they work with colour blindness; 0 is close to the
 * background. Light: ColorBrewer's Blues; dark: cividis (Nunez, Anderton and Renslow 2018).
 */
const blues: Rgb[] = [
    [247, 251, 255],
    [222, 235, 247],
    [198, 219, 239],
    [158, 202, 225],
    [107, 174, 214],
    [66, 146, 198],
    [33, 113, 181],
    [8, 81, 156],
    [8, 48, 107],
];
const cividis: Rgb[] = [
    [0, 34, 78],
    [18, 53, 112],
    [59, 73, 108],
    [87, 93, 109],
    [112, 113, 115],
    [138, 134, 120],
    [165, 156, 116],
    [195, 179, 105],
    [225, 204, 85],
    [254, 232, 56],
];

export function heatColor(share: number, isDark: boolean): string {
    const scale = isDark ? cividis : blues;
    const place = Math.max(0, Math.min(share, 1)) * (scale.length - 1);
    const low = Math.min(Math.floor(place), scale.length - 2);
    const [a, b] = [scale[low], scale[low + 1]];
    const mix = (i: number) => Math.round(a[i] + (b[i] - a[i]) * (place - low));
    return css([mix(0), mix(1), mix(2)]);
}

/* The hue of a name, from a hash (FNV-1a), so that it is the same everywhere. */
export function nameHue(name: string): number {
    let hash = 2166136261;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    return (hash >>> 0) % 360;
}

export function nameColor(name: string, isDark: boolean): string {
    return `hsl(${nameHue(name)} ${isDark ? "30% 27%" : "48% 84%"})`;
}
