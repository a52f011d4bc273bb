/* Details of the selected span or mark: state, place, stack, waker and woken goroutines, with links to them. */
import { useSignal, useSignalEffect } from "@preact/signals";
import {
    api,
    type Frame,
    type Kind,
    type LaneRef,
    type Like,
    type SourceLines,
    type Span,
} from "./api";
import { Breaking } from "./breaking";
import { isExplained } from "./culprit";
import { count, duration, sentence, shortName } from "./format";
import { Close } from "./icons";
import { IN_FUNCTION, listSpansIn } from "./in_function";
import { menuOfSelection } from "./lane_menu";
import { lanes, laneTitle } from "./lanes";
import { showPath } from "./path";
import { timeText } from "./ruler";
import { follow, followWakeUps, markWord, neighbour, nextMark, select, selectSpan } from "./select";
import { spanWords } from "./span_words";
import { Merged } from "./spans";
import {
    chain,
    isPhone,
    kind,
    like,
    mark,
    markFacts,
    selected,
    showRange,
    span,
    stateNumber,
    status,
    toggle,
} from "./state";
import { explanationOf, type Finding, shown } from "./summary";
import { waitClassOf } from "./waits";
import { WaitsForLock } from "./waits_for_lock";
import { inWords, isRecorded } from "./words";

function LaneLink(props: { to: LaneRef; of?: Kind }) {
    const of = props.of ?? "goroutine";
    return (
        <button type="button" class="textlink" onClick={() => follow(props.to, of)}>
            <Breaking of={laneTitle(of, props.to)} />
        </button>
    );
}

/* A row of the list of facts; empty if there is no such lane. */
function LaneFact(props: { title: string; to?: LaneRef; of?: Kind }) {
    const { title, to, of } = props;
    if (!to) return null;
    return (
        <>
            <dt>{title}</dt>
            <dd>
                <LaneLink to={to} of={of} />
            </dd>
        </>
    );
}

/* The source lines around a frame, requested when shown. */
function Source(props: { frame: Frame }) {
    const { file, line } = props.frame;
    const found = useSignal<SourceLines | null>(null);
    const wrong = useSignal("");
    useSignalEffect(() => {
        api.source(file, line)
            .then((answer) => {
                found.value = answer;
            })
            .catch((error: Error) => {
                wrong.value = error.message;
            });
    });
    if (!found.value) return <p class="faint">{wrong.value || "…"}</p>;
    const { first, lines, path } = found.value;
    return (
        <figure class="source">
            <figcaption class="faint">{path}</figcaption>
            <pre>
                {lines.map((text, i) => (
                    <div key={i}>
                        <span class="faint">{String(first + i).padStart(5)}</span>{" "}
                        {first + i === line ? <mark>{text || " "}</mark> : text}
                    </div>
                ))}
            </pre>
        </figure>
    );
}

/* File and line of a frame; a button if the server shows sources. */
function Where(props: { frame: Frame; isOpen: boolean; onToggle: () => void }) {
    const { frame } = props;
    const text = `${frame.file.split("/").slice(-2).join("/")}:${frame.line}`;
    if (!status.value?.can_source)
        return (
            <span class="faint" title={frame.file}>
                {" "}
                {text}
            </span>
        );
    return (
        <>
            {" "}
            <button
                type="button"
                class="textlink"
                title={frame.file}
                aria-expanded={props.isOpen}
                onClick={props.onToggle}
            >
                {text}
            </button>
        </>
    );
}

/* A frame's function: a button for the spans that begin in it. */
function Name(props: { of: string }) {
    if (!props.of) return <span>?</span>;
    return (
        <button
            type="button"
            class="textlink plain"
            title={`${props.of}\nA click lists ${IN_FUNCTION}`}
            onClick={() => listSpansIn(props.of)}
        >
            <Breaking of={shortName(props.of) || props.of} />
        </button>
    );
}

export function Stack(props: { frames: Frame[]; empty?: string }) {
    /* Indices of the frames whose source is shown; valid for this stack only. */
    const open = useSignal<{ frames: Frame[]; at: ReadonlySet<number> } | null>(null);
    const opened = open.value?.frames === props.frames ? open.value.at : new Set<number>();

    if (props.frames.length === 0)
        return <p class="faint">{props.empty ?? "No stack is known here."}</p>;
    return (
        <ol class="stack">
            {props.frames.map((frame, i) => (
                <li key={i}>
                    <Name of={frame.function} />
                    {frame.file && (
                        <Where
                            frame={frame}
                            isOpen={opened.has(i)}
                            onToggle={() => {
                                open.value = { frames: props.frames, at: toggle(opened, i) };
                            }}
                        />
                    )}
                    {opened.has(i) && <Source frame={frame} />}
                </li>
            ))}
        </ol>
    );
}

function Alike(props: { of: Span }) {
    const answer = useSignal<Like | null>(null);
    const on = like.value !== null;
    const { state, reason } = props.of;
    useSignalEffect(() => {
        const wanted = like.value;
        if (!wanted) {
            answer.value = null;
            return;
        }
        void api
            .like(wanted.state, wanted.reason)
            .then((found) => {
                answer.value = found;
            })
            .catch(() => {});
    });
    const most = Math.max(1, ...(answer.value?.histogram ?? []).map((bar) => bar.count));
    return (
        <section>
            <h3>Spans like this one</h3>
            <button
                type="button"
                aria-pressed={on}
                onClick={() => {
                    like.value = on ? null : { state, reason };
                }}
            >
                {on ? "Show all spans equally" : "Highlight them (H)"}
            </button>
            {answer.value && (
                <>
                    <p>
                        {count(answer.value.count)} spans, {duration(answer.value.total_ns)} in all
                    </p>
                    <div class="histogram" role="img" aria-label="How long they were">
                        {answer.value.histogram.map((bar) => (
                            <div
                                key={bar.from_ns}
                                title={`${duration(bar.from_ns)} to ${duration(bar.to_ns)}: ${count(bar.count)}`}
                                style={{ height: `${Math.max(2, (60 * bar.count) / most)}px` }}
                            />
                        ))}
                    </div>
                    <p>
                        Longest:{" "}
                        {answer.value.longest.slice(0, 8).map((of) => (
                            <button
                                type="button"
                                class="textlink"
                                key={`${of.lane} ${of.span}`}
                                onClick={() => void selectSpan("goroutine", of.lane, of.span)}
                            >
                                {duration(of.end - of.begin)} (
                                {laneTitle("goroutine", lanes.value.get(of.lane) ?? of)})
                            </button>
                        ))}
                    </p>
                </>
            )}
        </section>
    );
}

/* The swatch of a state; for a wait, that of its class. */
function swatchOf(of: Span): string {
    const isWait = of.state === "waiting";
    return `swatch ${isWait ? `w-${waitClassOf(of.wait_kind ?? of.reason)}` : `s${stateNumber(of.state)}`}`;
}

function Facts(props: { of: Span; kind: Kind }) {
    const { of } = props;
    const step = Math.max(1, (of.end - of.begin) / 100);
    return (
        <dl>
            <dt>State</dt>
            <dd>
                <i class={swatchOf(of)} /> {/* A goroutine exists in all spans before its end. */}
                {props.kind === "goroutine" && of.state === "none" && !of.open
                    ? "not recorded"
                    : spanWords(of, ": ", "")}
            </dd>
            <dt>Duration</dt>
            <dd>
                {duration(of.end - of.begin)}
                {of.open && " (until the end of the trace)"}
            </dd>
            <dt>From, to</dt>
            <dd>
                {timeText(of.begin, step)} – {timeText(of.end, step)}
            </dd>
            <LaneFact title={inWords("{Task}")} to={of.goroutine} />
            <LaneFact title="On" to={of.proc} of="proc" />
            <LaneFact title="Woken by" to={of.waker} />
            <LaneFact title="Woken by" to={of.ender} />
            <LaneFact
                title={of.held_by?.inferred ? "Held by (inferred)" : "Held by"}
                to={of.held_by}
            />
            {of.wakes && of.wakes.length > 0 && (
                <>
                    <dt>Made ready</dt>
                    <dd>
                        {of.wakes.slice(0, 20).map((woken) => (
                            <LaneLink key={`${woken.lane} ${woken.at}`} to={woken} />
                        ))}
                        {of.wakes.length > 20 && ` and ${of.wakes.length - 20} more`}
                    </dd>
                </>
            )}
            <LaneFact title="Created by" to={of.creator} />
        </dl>
    );
}

/* Details of a log or CPU sample. */
function MarkDetails() {
    const now = mark.value;
    const of = markFacts.value;
    if (!now || !of) return <p class="empty">…</p>;
    const word = markWord(now.kind);
    return (
        <div class="details">
            <section>
                <h2>
                    {word === "log" ? "Log" : word}
                    {of.goroutine && ` of ${laneTitle("goroutine", of.goroutine)}`}
                    <CloseButton />
                </h2>
                <dl>
                    {of.text && (
                        <>
                            <dt>Text</dt>
                            <dd>{of.text}</dd>
                        </>
                    )}
                    <dt>At</dt>
                    <dd>{timeText(of.at, 1)}</dd>
                    <LaneFact title={inWords("{Task}")} to={of.goroutine} />
                    <LaneFact title="On" to={of.proc} of="proc" />
                    <LaneFact title="Thread" to={of.thread} of="thread" />
                </dl>
                <div class="buttons">
                    <button
                        type="button"
                        disabled={of.before < 0}
                        onClick={() => void nextMark(-1)}
                    >
                        ← Before (Shift N)
                    </button>
                    <button type="button" disabled={of.after < 0} onClick={() => void nextMark(1)}>
                        After (N) →
                    </button>
                </div>
            </section>
            <section>
                <h3>Stack</h3>
                <Stack frames={of.stack} />
            </section>
        </div>
    );
}

/* For a running span, where it began and where it ended, if known. */
function Stacks(props: { of: Span }) {
    const { of } = props;
    const isRunning = of.state === "running";
    const hasEnd = isRunning && (of.stack_end?.length ?? 0) > 0;
    const isAtWork = isRunning || of.state === "runnable";
    const empty =
        isRecorded() && isAtWork
            ? "trail record takes stacks where a thread waits, not where it runs."
            : undefined;
    return (
        <section>
            {(of.stack.length > 0 || !hasEnd) && (
                <>
                    <h3>Stack{isRunning ? " where it began" : ""}</h3>
                    <Stack frames={of.stack} empty={empty} />
                </>
            )}
            {hasEnd && (
                <>
                    <h3>Stack where it ended</h3>
                    <Stack frames={of.stack_end ?? []} />
                </>
            )}
        </section>
    );
}

function CloseButton() {
    return (
        <button
            type="button"
            class="quiet icon"
            aria-label="Close the selection"
            title="Close (Esc)"
            onClick={() => select(null)}
        >
            <Close />
        </button>
    );
}

/* The finding in full. */
function Explanation({ of }: { of: Finding }) {
    return (
        <p class="say">
            <bdi>
                <b>
                    <Breaking of={`${sentence(of.heading)}. `} />
                </b>
                <Breaking of={sentence(explanationOf(of))} />
            </bdi>
        </p>
    );
}

export function Details() {
    const of = span.value;
    const place = selected.value;
    if (mark.value) return <MarkDetails />;
    if (!place && isExplained.value && shown.value)
        return (
            <div class="details">
                <section>
                    <h2>
                        <bdi>
                            <Breaking of={sentence(shown.value.heading)} />
                        </bdi>
                    </h2>
                    <p class="say">
                        <bdi>
                            <Breaking of={sentence(explanationOf(shown.value))} />
                        </bdi>
                    </p>
                </section>
            </div>
        );
    if (!place)
        return (
            <p class="empty">
                {isPhone()
                    ? "Tap a span of the timeline to see what it is."
                    : "Click a span of the timeline, or move with the arrow keys, to see what it is."}
            </p>
        );
    if (!of) return <p class="empty">Nothing is known of this moment.</p>;
    return (
        <div class="details">
            <section>
                <h2>
                    <bdi>
                        <Breaking of={laneTitle(place.kind, of)} />
                    </bdi>
                    <CloseButton />
                </h2>
                {isExplained.value && shown.value && <Explanation of={shown.value} />}
                <div class="buttons">
                    <button type="button" disabled={of.span === 0} onClick={() => neighbour(-1)}>
                        ← Before
                    </button>
                    <button
                        type="button"
                        disabled={of.span + 1 >= of.spans}
                        onClick={() => neighbour(1)}
                    >
                        After →
                    </button>
                    <button type="button" onClick={() => showRange({ from: of.begin, to: of.end })}>
                        Zoom (Z)
                    </button>
                    {kind.value === "goroutine" && (
                        <button type="button" onClick={() => void followWakeUps()}>
                            Wake-up (B)
                        </button>
                    )}
                    {place.kind === "goroutine" && (
                        <button type="button" onClick={() => showPath(`goroutine=${of.id}`)}>
                            {inWords("Why did the {task} take so long?")}
                        </button>
                    )}
                    <button
                        type="button"
                        aria-label="More commands"
                        aria-haspopup="menu"
                        onClick={menuOfSelection}
                    >
                        …
                    </button>
                </div>
            </section>
            <section>
                <Facts of={of} kind={place.kind} />
                {place.kind === "goroutine" && <WaitsForLock />}
            </section>
            <Merged />
            <Stacks of={of} />
            {place.kind === "goroutine" && like.value && <Alike of={of} />}
            {chain.value.length > 1 && (
                <section>
                    <h3>Wake-up chain, latest first</h3>
                    <ol class="stack">
                        {chain.value.map((step) => (
                            <li key={`${step.lane} ${step.span}`}>
                                <button
                                    type="button"
                                    class="textlink"
                                    onClick={() =>
                                        void selectSpan("goroutine", step.lane, step.span, false)
                                    }
                                >
                                    {laneTitle("goroutine", step)}
                                </button>{" "}
                                {spanWords(step, " (", ")")}, {duration(step.end - step.begin)}
                            </li>
                        ))}
                    </ol>
                </section>
            )}
        </div>
    );
}
