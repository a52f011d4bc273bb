/* Shared parts of the panels: the progress text, and the range that the figures cover. */
import { duration } from "./format";
import { range, status } from "./state";

export function Waiting(props: { answer: { state: string; error?: string } }) {
    if (props.answer.state === "bad") return <p class="empty">{props.answer.error}</p>;
    return (
        <p class="empty">
            {status.value?.done ? "Computing …" : "Available when the whole trace has been read."}
        </p>
    );
}

export function About() {
    const now = range.value;
    if (!now) return null;
    return (
        <p class="about">
            Of the selected {duration(now.to - now.from)}{" "}
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
