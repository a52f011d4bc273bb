/* The overview of the whole trace, in the form of `trail summary --json`. */
import { computed, signal } from "@preact/signals";
import type { WaitClass } from "./colors";
import { type Waits, waitClassOf, waitsOf } from "./waits";

export interface Finding {
    kind: string;
    /* All of its sentences: what is so, the evidence, the bound, and what to do. The last three may be
     * missing. */
    text: string;
    heading: string;
    details: string;
    /* "At most 3.2 ms of 10 ms would be saved."; what cards have as their figure. */
    bound?: string;
    remedy: string;
    /* What a replay without the problem has shown. */
    replayed?: string;
    begin_ns?: number;
    end_ns?: number;
    goroutine?: number | null;
    task?: number;
    region?: string;
    /* What is waited for: "mutex cache_mu". */
    object?: string;
    /* At most so much would be saved without the problem; what the replay says instead, if there is one. */
    gain_ns?: number;
    gain_title?: string;
    gain_figure?: string;
    /* gain_ns as a share of the trace. */
    weight?: number;
}

const joined = (...parts: (string | undefined)[]) => parts.filter(Boolean).join(" ");

/* What to do, and what a replay shows of it. */
export function remedyOf(of: Finding): string {
    return joined(of.remedy, of.replayed);
}

/* The same after the last sentence of the reason, which it may refer to: "before that wait". */
export function conclusionOf(of: Finding): string {
    return joined(of.details.split(/(?<=\.) (?=[A-Z])/).at(-1), remedyOf(of));
}

/* What follows the heading. */
export function explanationOf(of: Finding): string {
    return joined(of.details, of.bound, remedyOf(of));
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
    begin_ns: number;
    end_ns: number;
    /* For how long states are unknown, in a damaged trace. */
    activity: { lost_ns?: number };
    tiles: Tile[];
    findings: Finding[];
    largest: string;
    /* By start function. */
    groups: (Waits & {
        exec_ns: number;
        sched_wait_ns: number;
        syscall_ns: number;
        syscall_block_ns: number;
        lost_ns?: number;
    })[];
}

/* What is said of a trace without findings. */
export function nothingFound({ activity }: Pick<Summary, "activity">): string {
    return `No known problem found${activity.lost_ns ? " where states are known" : ""}.`;
}

/* null: not known yet. */
export const summary = signal<Summary | null>(null);

/* The classes of what is waited for in the trace; null: not known yet. */
export const waited = computed<ReadonlySet<WaitClass> | null>(() => {
    const groups = summary.value?.groups;
    if (!groups) return null;
    const found = groups.flatMap((of) => [
        ...waitsOf(of).flatMap(([name, ns]) => (ns > 0 ? [waitClassOf(name)] : [])),
        ...(of.lost_ns ? (["unknown"] as const) : []),
    ]);
    return new Set(found);
});

/* Whether goroutines were in a state; before it is known, they may have been. */
export function occurs(state: "running" | "ready" | "syscall"): boolean {
    const all = summary.value?.groups;
    return (
        all?.some((of) =>
            state === "running"
                ? of.exec_ns > 0
                : state === "ready"
                  ? of.sched_wait_ns > 0
                  : of.syscall_ns + of.syscall_block_ns > 0,
        ) ?? true
    );
}

/* The finding that is shown: the inspector explains it, and the ruler has its time. */
export const shown = signal<Finding | null>(null);

export const keyOf = (of: Finding) => `${of.kind} ${of.begin_ns} ${of.text}`;
