/* The page's icons: few, each next to a word or with its own label. */
import type { ComponentChildren } from "preact";

function Icon(props: { children: ComponentChildren; size?: number }) {
    const size = props.size ?? 14;
    return (
        <svg
            width={size}
            height={size}
            viewBox="0 0 14 14"
            fill="none"
            stroke="currentColor"
            stroke-width="1.5"
            stroke-linecap="round"
            stroke-linejoin="round"
            aria-hidden="true"
        >
            {props.children}
        </svg>
    );
}

const line = (d: string) => () => (
    <Icon>
        <path d={d} />
    </Icon>
);

export const Minus = line("M3 7h8");
export const Plus = line("M3 7h8M7 3v8");
export const Fit = line("M2 5V2h3M9 2h3v3M12 9v3H9M5 12H2V9");
export const Close = line("m3.5 3.5 7 7m0-7-7 7");
export const Down = line("m3.5 5.5 3.5 3.5 3.5-3.5");
export const Up = line("m3.5 8.5 3.5-3.5 3.5 3.5");

export const Find = () => (
    <Icon>
        <circle cx="6" cy="6" r="3.8" />
        <path d="m9 9 3.2 3.2" />
    </Icon>
);

export const Theme = () => (
    <Icon>
        <circle cx="7" cy="7" r="5" />
        <path d="M7 2a5 5 0 0 1 0 10z" fill="currentColor" />
    </Icon>
);

export const Logo = () => (
    <svg width="18" height="14" viewBox="0 0 18 14" aria-hidden="true" class="mark">
        <path d="M1 2h6v5h4v5h6" />
    </svg>
);

/* How severe a finding is: a triangle, diamond or circle, so that colour is not needed. */
export function Severity(props: { of: "high" | "mid" | "low" }) {
    const shapes = {
        high: "M7 1.5 13 12.5H1Z",
        mid: "m7 .8 6.2 6.2L7 13.2.8 7Z",
        low: "M7 1a6 6 0 1 0 0 12A6 6 0 0 0 7 1Z",
    };
    return (
        <svg width="14" height="14" viewBox="0 0 14 14" class={props.of} aria-hidden="true">
            <path d={shapes[props.of]} />
            <path d="M7 4.5v3.2M7 10v.1" class="sign" />
        </svg>
    );
}
