/* What the page shows in place of the timeline if there is nothing to draw: what was opened, and
 * what to do. */
import { bytes, eventsText, shellWord } from "./format";
import { status } from "./state";
import { inWords } from "./words";

const nameOf = (title: string | undefined) => title?.split("/").pop() ?? "This file";

/* Whether the opened file is not a trace, or ends before the version of its format is known. */
export function isNoTrace(): boolean {
    const now = status.value;
    return Boolean(now?.done && now.error && !now.version);
}

const asSentence = (text: string) => text && `${text[0].toUpperCase()}${text.slice(1)}.`;

export function NoTrace() {
    return (
        <main>
            <div class="no-trace" role="alert">
                <h2>{nameOf(status.value?.title)} cannot be opened</h2>
                <p>
                    <bdi>{asSentence(status.value?.error ?? "")}</bdi>
                </p>
                <p>
                    Open a trace of a Go program, or one that <code>trail record</code> has written.
                </p>
            </div>
        </main>
    );
}

/* Whether the trace ends before anything that has a lane. */
export function isEmpty(): boolean {
    const now = status.value;
    return Boolean(now?.done && now.goroutines + now.procs + now.threads === 0);
}

export function Empty() {
    const now = status.value;
    if (!now) return null;
    const size = bytes(now.size_bytes || now.read_bytes);
    return (
        <div class="no-trace" role="status">
            <h2>{inWords(`${nameOf(now.title)} has no {task} to show`)}</h2>
            <p>
                {inWords(
                    `It has ${size} in the format of Go 1.${now.version}. ` +
                        (now.events > 0
                            ? `${eventsText(now.events)} could be read, none of a {task}.`
                            : "No event follows the header."),
                )}
            </p>
            <p>
                {now.error
                    ? "A trace is cut short if the program ends before it stops the trace, or if the file is copied earlier. "
                    : "The trace ended before anything ran. "}
                <code>trail check {shellWord(now.title)}</code>{" "}
                {now.error ? "shows where it ends and how much of it is good." : "verifies it."}{" "}
                {now.error
                    ? "Record it again, and let the program stop the trace before it ends."
                    : "Record for longer."}
            </p>
        </div>
    );
}
