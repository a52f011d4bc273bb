/* The overview of the whole trace, in the form of `trail summary --json`. */
import { signal } from "@preact/signals";

export interface Finding {
    kind: string;
    text: string;
    begin_ns?: number;
    end_ns?: number;
    goroutine?: number | null;
    task?: number;
    region?: string;
    /* At most this much would be saved without the problem; as a share of the trace. */
    gain_ns?: number;
    weight?: number;
}

export interface Tile {
    key: string;
    title: string;
    value: number;
    text: string;
    note: string;
    command?: string;
    begin_ns?: number;
    end_ns?: number;
    goroutine?: number;
    task?: number;
}

export interface Summary {
    origin_ns: number;
    tiles: Tile[];
    findings: Finding[];
    largest: string;
}

/* null: not known yet. */
export const summary = signal<Summary | null>(null);

export const keyOf = (of: Finding) => `${of.kind} ${of.begin_ns} ${of.text}`;
