/* Shared parts of the panels: the progress text, and the range that the figures cover. */
import type { Kind } from "./api";
import { count, duration } from "./format";
import { type Area, range, status } from "./state";
import { inWords, term } from "./words";

export function Waiting(props: { answer: { state: string; error?: string } }) {
    if (props.answer.state === "bad") return <p class="empty">{props.answer.error}</p>;
    return (
        <p class="empty">
            {status.value?.done ? "Computing …" : "Available when the whole trace has been read."}
        </p>
    );
}

/* "threads", "thread": the word for lanes of a kind. */
export function kindWord(kind: Kind, many: boolean): string {
    if (kind === "goroutine") return term(many ? "tasks" : "task");
    if (kind === "proc") return term(many ? "slots" : "slot");
    return many ? "threads" : "thread";
}

/* "3 threads": the number of lanes in an area. */
export function counted(of: NonNullable<Area["of"]>): string {
    return `${count(of.lanes.length)} ${kindWord(of.kind, of.lanes.length !== 1)}`;
}

/* What the figures of a panel are of: the selected range and its goroutines; the range alone; the
 * whole trace, whatever is selected. */
export type Scope = "lanes" | "range" | "whole";

export function About(props: { of: Scope }) {
    const now = range.value;
    if (!now) return null;
    const length = duration(now.to - now.from);
    if (props.of === "whole")
        return <p class="about">Of the whole trace, not of the selected {length}</p>;
    const isOfAll = props.of === "range" || now.of?.kind !== "goroutine";
    return (
        <p class="about">
            Of the selected {length}
            {now.of && (isOfAll ? inWords(" of all {tasks}") : ` of ${counted(now.of)}`)}{" "}
            {now.of && !isOfAll && (
                <button
                    type="button"
                    onClick={() => {
                        range.value = { from: now.from, to: now.to };
                    }}
                >
                    {inWords("All {tasks}")}
                </button>
            )}{" "}
            <button
                type="button"
                onClick={() => {
                    range.value = null;
                }}
            >
                Whole trace
            </button>
        </p>
    );
}
