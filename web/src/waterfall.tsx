/*
 * A task or region over time: a row for each goroutine that took part in it, with its regions, its states, where the
 * critical path ran, and its logs; then a row for each task that it began.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { RUNNABLE, RUNNING, SYSCALL, WAITING } from "./api";
import { css, nameColor, palette } from "./colors";
import { duration, NO_NAME } from "./format";
import { laneOf, lanes } from "./lanes";
import { named, type Path, type Segment, stateText } from "./path";
import { type Picture, painted, picturesOf } from "./pictures";
import {
    type Answers,
    depthsOf,
    fullTitle,
    isInherited,
    type Log,
    lengthOf,
    type Member,
    type Region,
    rangeOf,
    regionsOf,
    waitsIn,
} from "./requests";
import { jump } from "./run";
import { selectAt } from "./select";
import { type Range, showRange } from "./state";
import { waitName, waitTitle } from "./waits";
import { inWords } from "./words";

const PIXELS = 2000;
const MOST_ROWS = 100;
const PALE = 0.3;
const DEPTH_PX = 15;
/* The share of the track that leaves room for a text. */
const ROOM = 0.12;

interface Row {
    goroutine: number;
    /* Its start function; empty: unknown. */
    group: string;
    /* When it first did something for the member. */
    first: number;
    regions: Region[];
    path: Segment[];
    logs: Log[];
}

/* In the order in which they took part; the one at the beginning first. */
export function rowsOf(of: Member, answers: Answers, path: Path): Row[] {
    const rows = new Map<number, Row>();
    const rowOf = (goroutine: number, at: number) => {
        const row = rows.get(goroutine) ?? {
            goroutine,
            group: "",
            first: Number.POSITIVE_INFINITY,
            regions: [],
            path: [],
            logs: [],
        };
        row.first = Math.min(row.first, at);
        rows.set(goroutine, row);
        return row;
    };
    const [creator, ...others] = of.task?.goroutines ?? [];
    if (creator !== undefined) rowOf(creator, of.from);
    for (const region of regionsOf(of, answers))
        rowOf(region.goroutine, rangeOf(region, answers).from).regions.push(region);
    for (const segment of path.segments) {
        const row = rowOf(segment.goroutine, segment.begin_ns - path.origin_ns);
        row.path.push(segment);
        row.group ||= segment.group;
    }
    for (const log of of.task?.logs ?? [])
        rowOf(log.goroutine, log.time_ns - answers.origin_ns).logs.push(log);
    for (const goroutine of others) rowOf(goroutine, of.to);
    return [...rows.values()].sort((a, b) => a.first - b.first);
}

/* The pictures of the rows' lanes during the member. */
function usePictures(numbers: number[], of: Range): ReadonlyMap<number, Picture> {
    const found = useSignal<ReadonlyMap<number, Picture>>(new Map());
    const { from, to } = of;
    const wanted = numbers.join();
    useEffect(() => {
        let isOld = false;
        if (wanted === "" || to <= from) return;
        const how = { from: Math.floor(from), to: Math.ceil(to), width: PIXELS, fresh: to };
        picturesOf("goroutine", wanted.split(",").map(Number), how)
            .then((pictures) => {
                if (!isOld) found.value = pictures;
            })
            .catch(() => {
                /* Without the states, regions and the path are still shown. */
            });
        return () => {
            isOld = true;
        };
    }, [wanted, from, to]);
    return found.value;
}

/* The states of a lane, pale where it did not work for the member. */
function States(props: { picture?: Picture; own: Range[] }) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const { picture, own } = props;
    useEffect(() => {
        const to = canvas.current?.getContext("2d");
        if (!to || !picture) return;
        const from = painted(picture, 0);
        to.canvas.width = picture.width;
        to.canvas.height = from.height;
        to.globalAlpha = PALE;
        to.drawImage(from, 0, 0);
        to.globalAlpha = 1;
        const scale = picture.width / (picture.to - picture.from);
        for (const part of own) {
            const x = Math.floor((part.from - picture.from) * scale);
            const width = Math.max(1, Math.ceil(lengthOf(part) * scale));
            to.clearRect(x, 0, width, from.height);
            to.drawImage(from, x, 0, width, from.height, x, 0, width, from.height);
        }
    }, [picture, own]);
    return <canvas ref={canvas} class="states" />;
}

function barName(of: Region): string {
    return isInherited(of) ? "created in the task" : of.name || NO_NAME;
}

/* "look up: 4.058 ms; running 3.689 µs; waited for mutex 2.89 ms" */
function regionText(of: Region): string {
    const waits = waitsIn(of).map(
        (wait) => `waited for ${waitName(wait) || waitTitle("")} ${duration(wait.ns)}`,
    );
    const facts = [`running ${duration(of.exec_ns)}`, ...waits];
    if (of.sched_wait_ns > 0) facts.push(`ready ${duration(of.sched_wait_ns)}`);
    if (of.syscall_ns > 0) facts.push(`in system calls ${duration(of.syscall_ns)}`);
    return `${barName(of)}: ${duration(of.total_ns)}; ${facts.join("; ")}`;
}

/* Places things in a track of `scale` ns. */
function place(part: Range, member: Member, scale: number): { left: string; width: string } {
    return {
        left: `${(100 * (part.from - member.from)) / scale}%`,
        width: `${(100 * lengthOf(part)) / scale}%`,
    };
}

function RegionBar(props: { of: Region; at: Range; depth: number; member: Member; scale: number }) {
    const { of, at, member } = props;
    return (
        <button
            type="button"
            class="region"
            title={regionText(of)}
            style={{
                ...place(at, member, props.scale),
                top: `${props.depth * DEPTH_PX}px`,
                background: nameColor(of.name, palette.value.dark),
            }}
            onClick={() => jump(of.goroutine, at.from, at.to)}
        >
            {barName(of)}
        </button>
    );
}

/* The lane states for the states of segments. */
const laneStates: Record<string, number> = {
    ready: RUNNABLE,
    running: RUNNING,
    blocked: WAITING,
    syscall: SYSCALL,
};

/* Text over the states of a lane is on the colour of the segment's own state, whatever is drawn
 * below. */
function textStyle(state: string): { color: string; background: string } | undefined {
    const number = laneStates[state];
    if (number === undefined) return undefined;
    const { onState, states, text, waits } = palette.value;
    if (number === WAITING) return { color: text, background: css(waits[0].wash) };
    return { color: onState[number], background: css(states[number]) };
}

/* A segment of the critical path, with its text if there is room. */
function OnPath(props: { of: Segment; at: Range; member: Member; scale: number }) {
    const { of, at } = props;
    const text = `${stateText(of)} ${duration(lengthOf(at))}`;
    return (
        <i class="onpath" title={text} style={place(at, props.member, props.scale)}>
            {lengthOf(at) > ROOM * props.scale && <span style={textStyle(of.state)}>{text}</span>}
        </i>
    );
}

function RowOf(props: {
    of: Row;
    member: Member;
    answers: Answers;
    origin: number;
    scale: number;
    lane: number | null;
    picture?: Picture;
}) {
    const { of, member, answers, scale, lane } = props;
    const depths = useMemo(() => depthsOf(of.regions, answers), [of, answers]);
    const own = useMemo(
        () => [
            ...of.regions.map((region) => rangeOf(region, answers)),
            ...of.path.map(({ begin_ns, end_ns }) => ({
                from: begin_ns - props.origin,
                to: end_ns - props.origin,
            })),
        ],
        [of, answers, props.origin],
    );
    const high = Math.max(0, ...[...depths.values()].map((depth) => depth + 1));
    const name = of.group || (lane === null ? "" : (lanes.value.get(lane)?.name ?? ""));
    const within = (part: Range) => ({
        from: Math.max(part.from, member.from),
        to: Math.min(part.to, member.to),
    });
    return (
        <li data-goroutine={of.goroutine}>
            <button
                type="button"
                class="textlink"
                onClick={() => jump(of.goroutine, Math.min(of.first, member.to), member.to)}
            >
                {named(of.goroutine, name)}
            </button>
            <div class="track" style={{ height: `${high * DEPTH_PX + 18}px` }}>
                {of.regions.map((region, i) => (
                    <RegionBar
                        key={i}
                        of={region}
                        at={within(rangeOf(region, answers))}
                        depth={depths.get(region) ?? 0}
                        member={member}
                        scale={scale}
                    />
                ))}
                {/* biome-ignore lint/a11y/noStaticElementInteractions: the row's name does so by keys */}
                {/* biome-ignore lint/a11y/useKeyWithClickEvents: as above */}
                <div
                    class="strip"
                    style={{ width: `${(100 * lengthOf(member)) / scale}%` }}
                    onClick={(event) => {
                        const box = event.currentTarget.getBoundingClientRect();
                        const share = (event.clientX - box.left) / Math.max(1, box.width);
                        if (lane !== null)
                            void selectAt(
                                "goroutine",
                                lane,
                                member.from + share * lengthOf(member),
                                false,
                            );
                    }}
                >
                    <States picture={props.picture} own={own} />
                </div>
                {of.path.map((segment, i) => (
                    <OnPath
                        key={i}
                        of={segment}
                        at={own[of.regions.length + i]}
                        member={member}
                        scale={scale}
                    />
                ))}
                {of.logs.map((log, i) => (
                    <i
                        key={i}
                        class="swatch log"
                        title={`${log.category ? `${log.category}: ` : ""}${log.message}`}
                        style={{
                            left: place(
                                {
                                    from: log.time_ns - answers.origin_ns,
                                    to: log.time_ns - answers.origin_ns,
                                },
                                member,
                                scale,
                            ).left,
                        }}
                    />
                ))}
            </div>
        </li>
    );
}

function Child(props: { of: Member; member: Member; scale: number; onChoose: () => void }) {
    const { of, member, scale } = props;
    return (
        <li>
            <button type="button" class="textlink" onClick={props.onChoose}>
                {fullTitle(of)}
            </button>
            <div class="track" style={{ height: `${DEPTH_PX}px` }}>
                <i
                    class="child"
                    title={`${of.name || of.title}: ${duration(lengthOf(of))}`}
                    style={place(of, member, scale)}
                />
            </div>
        </li>
    );
}

export function Waterfall(props: {
    of: Member;
    answers: Answers;
    path: Path;
    /* The members that it began. */
    begun: Member[];
    /* Length of the tracks in ns. */
    scale: number;
    onChoose: (child: Member) => void;
}) {
    const { of, answers, path } = props;
    const scale = Math.max(1, props.scale);
    const rows = useMemo(() => rowsOf(of, answers, path), [of, answers, path]);
    const shown = rows.slice(0, MOST_ROWS);
    const numbers = shown.map(({ goroutine, first }) => laneOf(goroutine, Math.min(first, of.to)));
    const pictures = usePictures([...new Set(numbers.filter((lane) => lane !== null))], of);
    return (
        <ul class="waterfall" aria-label={`${fullTitle(of)} over time`}>
            {shown.map((row, i) => (
                <RowOf
                    key={row.goroutine}
                    of={row}
                    member={of}
                    answers={answers}
                    origin={path.origin_ns}
                    scale={scale}
                    lane={numbers[i]}
                    picture={pictures.get(numbers[i] ?? -1)}
                />
            ))}
            {rows.length > shown.length && (
                <li class="faint">
                    {inWords(`and ${rows.length - shown.length} more {tasks}, which came later`)}
                </li>
            )}
            {props.begun.slice(0, MOST_ROWS).map((child) => (
                <Child
                    key={child.why}
                    of={child}
                    member={of}
                    scale={scale}
                    onChoose={() => {
                        showRange(child);
                        props.onChoose(child);
                    }}
                />
            ))}
        </ul>
    );
}
