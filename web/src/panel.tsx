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

/* `ofAll`: figures that cannot be restricted to lanes. Those of goroutines can be if the area
 * consists of goroutines. */
export function About(props: { ofAll?: boolean }) {
    const now = range.value;
    if (!now) return null;
    const isOfAll = props.ofAll || now.of?.kind !== "goroutine";
    return (
        <p class="about">
            Of the selected {duration(now.to - now.from)}
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
