/*
 * Compares two traces: each in its own page with its own lanes, filter and panels, in a frame, one
 * above the other. Their windows move together: `t` in the first trace is aligned with `t - offset`
 * in the second, each counted from the start of its trace. The output of `trail diff` is below, on
 * demand.
 */
import { computed, effect, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api, type Status } from "./api";
import { Choice } from "./choice";
import { bytes, count, duration, parseDuration } from "./format";
import type { Framed } from "./framed";
import { LABELS } from "./geometry";
import { ContextMenu } from "./menu";
import { plain } from "./plain";
import { whenSettled } from "./settled";
import { message, type Range, status, theme } from "./state";
import { type Column, Table } from "./table";
import {
    changeText,
    type Figures,
    inOrder,
    isChanged,
    type Metric,
    partOf,
    verdictOf,
} from "./verdict";

const names = ["a", "b"] as const;
/* The parameters of the fragment. */
export const parameters = [...names, "off", "diff"];

/* How much later the second trace is shown, in ns. */
const offset = signal(0);
const isDiffOpen = signal(false);
/* The fragments of the two pages' addresses. */
const fragments = [signal(""), signal("")];
const facts = [signal<Status | null>(null), signal<Status | null>(null)];
const titles = [signal(""), signal("")];
const frames: (Framed | null)[] = [null, null];
/* The window of the first trace. */
const view = signal<Range>({ from: 0, to: 1 });

function shifted({ from, to }: Range, by: number): Range {
    return { from: from + by, to: to + by };
}

/* MARK: Common time */

/* The range that covers both traces, in the first one's time. */
const both = computed<Range | null>(() => {
    const [a, b] = [facts[0].value, facts[1].value];
    if (!a || !b) return null;
    return {
        from: Math.min(0, offset.value),
        to: Math.max(a.end, b.end + offset.value, 1),
    };
});

/* setView calls the frame's onView listener synchronously: such calls are ignored. */
let moving = false;

function move(which: number, window: Range): void {
    moving = true;
    frames[which]?.setView(window);
    moving = false;
}

function onMoved(which: number, now: Range): void {
    if (moving || !(now.to > now.from)) return;
    const { value } = offset;
    view.value = which === 0 ? now : shifted(now, value);
    if (which === 0) move(1, shifted(now, -value));
    else move(0, shifted(now, value));
}

function setOffset(ns: number): void {
    offset.value = Math.round(ns);
    if (view.value.to > 1) move(1, shifted(view.value, -offset.value));
}

function take(which: number, window: Window): void {
    const framed = (window as Window & { trailFramed?: Framed }).trailFramed;
    if (!framed) return;
    frames[which] = framed;
    framed.onStatus((now) => {
        facts[which].value = now;
        /* Its vocabulary. */
        status.value ??= now;
    });
    framed.onView((now) => onMoved(which, now));
    framed.onFragment((now) => {
        if (now) fragments[which].value = now;
    });
}

/* MARK: The fragment */

/* Restores the state from the address. Returns false if it has no fragment for the first trace. */
function fromFragment(): boolean {
    const parts = new URLSearchParams(location.hash.slice(1));
    const [a, b] = names.map((name) => parts.get(name) ?? "");
    offset.value = Math.round(Number(parts.get("off"))) || 0;
    isDiffOpen.value = parts.get("diff") === "1";
    fragments[0].value = a;
    fragments[1].value = b;
    return a !== "";
}

function toFragment(): string {
    const parts = new URLSearchParams();
    if (offset.value) parts.set("off", String(offset.value));
    if (isDiffOpen.value) parts.set("diff", "1");
    names.forEach((name, i) => {
        if (fragments[i].value) parts.set(name, fragments[i].value);
    });
    return parts.toString();
}

/* The initial fragments of the frames; later changes are reported by the frames. */
let first = ["", ""];

export function keepComparison(): void {
    /* Until both traces are read, the window is the whole range, unless the address gives a window. */
    let untouched = !fromFragment();
    first = fragments.map((of) => of.value);
    effect(() => {
        const now = both.value;
        if (!now) return;
        frames[0]?.setOuter(now);
        frames[1]?.setOuter(shifted(now, -offset.value));
        if (!untouched) return;
        move(0, now);
        onMoved(0, now);
        untouched = !(facts[0].value?.done && facts[1].value?.done);
    });
    whenSettled(toFragment, (text) => history.replaceState(null, "", `#${text}`));
    addEventListener("hashchange", () => {
        fromFragment();
        document.querySelectorAll("iframe").forEach((frame, i) => {
            /* A fragment alone would be one of this page's address. */
            const its = frame.contentWindow?.location;
            its?.replace(`${its.href.replace(/#.*/, "")}#${fragments[i].value}`);
        });
    });
    names.forEach((name, i) => {
        void fetch(`${name}/api/status`)
            .then((answer) => answer.json())
            .then(({ title }: { title: string }) => {
                titles[i].value = plain(title);
            })
            .catch(() => {
                /* The frames report that the server does not answer. */
            });
    });
}

/* The file's name; with its folders if both have the same name. */
function Title(props: { which: number }) {
    const whole = titles[props.which].value;
    const [a, b] = titles.map((title) => title.value.split("/").pop());
    return <bdi title={whole}>{a === b ? whole : whole.split("/").pop()}</bdi>;
}

/* MARK: Differences */

/* Without events there is no median and no longest: "". */
function figure(value: number | undefined, unit: string): string {
    if (value === undefined || value === null) return "";
    if (unit === "ns") return duration(value);
    if (unit === "bytes") return bytes(value);
    return Number.isInteger(value) ? count(value) : value.toPrecision(4);
}

function signed(row: Metric): string {
    return (
        (row.change > 0 ? "+" : row.change < 0 ? "−" : "") + figure(Math.abs(row.change), row.unit)
    );
}

function share(row: Metric): string {
    const before = row.a?.value ?? 0;
    if (!before) return row.change ? "new" : "";
    if (!row.b?.value) return "gone";
    return changeText(before, row.change);
}

function figures(title: string, key: keyof Figures, of: "a" | "b"): Column<Metric> {
    return {
        title: `${title} ${of.toUpperCase()}`.trim(),
        value: (row) => row[of]?.[key] ?? 0,
        text: (row) => {
            const its = row[of];
            const isNone = key !== "value" && its?.count === 0;
            return isNone ? "" : figure(its?.[key], row.unit);
        },
        unit: "number",
    };
}

const columns: Column<Metric>[] = [
    { title: "kind", value: partOf },
    { title: "name", value: (row) => row.name },
    { title: "measure", value: (row) => row.figure },
    figures("", "value", "a"),
    figures("", "value", "b"),
    { title: "change", value: (row) => row.change, text: signed, unit: "number" },
    { title: "relative", value: share, unit: "number" },
    ...(["a", "b"] as const).map((of) => figures("median", "p50", of)),
    ...(["a", "b"] as const).map((of) => figures("p99", "p99", of)),
    ...(["a", "b"] as const).map((of) => figures("longest", "max", of)),
];

/* Available once both have been read; the server keeps the answer for the table. */
function Verdict() {
    const text = useSignal("");
    const isDone = useComputed(() => facts.every((of) => of.value?.done));
    useSignalEffect(() => {
        if (!isDone.value) return;
        api.run<{ metrics: Metric[] }>("diff", { limit: 0 })
            .then(({ metrics }) => {
                text.value = verdictOf(metrics);
            })
            .catch(() => {
                /* The table shows the error. */
            });
    });
    return (
        <p class="verdict" role="status">
            <bdi>{text.value || "Comparing …"}</bdi>
        </p>
    );
}

/* Shows in both traces what a row is about, in a window that has both places. */
async function showBoth(row: Metric): Promise<void> {
    const places = await Promise.all(
        frames.map((frame) => frame?.show(row.of, row.name).catch(() => null)),
    );
    const all = places.flatMap((of, i) => (of ? [shifted(of, i * offset.value)] : []));
    if (all.length === 0) return;
    const from = Math.min(...all.map((of) => of.from));
    const to = Math.max(...all.map((of) => of.to));
    const margin = Math.max((to - from) / 10, 50);
    const { from: first, to: last } = both.value ?? { from, to };
    const window = { from: Math.max(from - margin, first), to: Math.min(to + margin, last) };
    move(0, window);
    onMoved(0, window);
}

function Differences() {
    const per = useSignal("");
    const showsAll = useSignal(false);
    const rows = useSignal<Metric[] | null>(null);
    const wrong = useSignal("");
    const isDone = useComputed(() => facts.every((of) => of.value?.done));
    useSignalEffect(() => {
        if (!isDone.value) return;
        let isOld = false;
        rows.value = null;
        wrong.value = "";
        api.run<{ metrics: Metric[] }>("diff", { limit: 0, per: per.value || undefined })
            .then(({ metrics }) => {
                if (!isOld) rows.value = inOrder(metrics);
            })
            .catch((error: Error) => {
                if (!isOld) wrong.value = error.message;
            });
        return () => {
            isOld = true;
        };
    });
    return (
        <section class="panel" aria-label="Differences">
            <Choice
                label="Sums"
                value={per.value}
                options={[
                    ["", "of the whole trace"],
                    ["second", "for each second"],
                ]}
                onChoose={(text) => {
                    per.value = text;
                }}
            />
            {rows.value && !showsAll.value && (
                <span class="about">
                    {count(rows.value.filter((row) => !isChanged(row)).length)} rows that did not
                    change are left out.{" "}
                    <button
                        type="button"
                        class="textlink"
                        onClick={() => {
                            showsAll.value = true;
                        }}
                    >
                        Show them
                    </button>
                </span>
            )}
            {rows.value ? (
                <Table
                    name="differences"
                    columns={columns}
                    rows={showsAll.value ? rows.value : rows.value.filter(isChanged)}
                    empty="Nothing has changed."
                    onRow={(row) => void showBoth(row)}
                />
            ) : (
                <p class="empty">
                    {wrong.value ||
                        (isDone.value ? "Computing …" : "When both traces have been read.")}
                </p>
            )}
        </section>
    );
}

/* MARK: The page */

/* A strip that shifts the second trace by dragging, or with the arrow keys. */
function Shift() {
    const from = useSignal<{ x: number; offset: number } | null>(null);
    const perPixel = () => (view.value.to - view.value.from) / Math.max(innerWidth - LABELS, 50);
    return (
        <div
            class="shift"
            role="slider"
            tabIndex={0}
            aria-label="Offset of the second trace"
            aria-valuenow={offset.value}
            aria-valuetext={duration(offset.value)}
            onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                from.value = { x: event.clientX, offset: offset.value };
            }}
            onPointerMove={(event) => {
                if (from.value && event.buttons)
                    setOffset(from.value.offset + (event.clientX - from.value.x) * perPixel());
            }}
            onPointerUp={() => {
                from.value = null;
            }}
            onKeyDown={(event) => {
                const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
                if (!step) return;
                event.preventDefault();
                setOffset(offset.value + step * perPixel() * (event.shiftKey ? 100 : 10));
            }}
        >
            ↔ drag to shift the second trace
        </div>
    );
}

function Bar() {
    const isWrong = useSignal(false);
    /* The input's text is set only when the offset changes: a render in between must not undo what
     * is being typed. */
    const input = useRef<HTMLInputElement>(null);
    useSignalEffect(() => {
        const text = offset.value === 0 ? "0" : duration(offset.value);
        if (input.current) input.current.value = text;
    });
    const [a, b] = facts.map((of) => of.value?.wall_ns);
    return (
        <div class="bar">
            <span>
                <b>B</b> <Title which={1} />
            </span>
            <label>
                later than A by{" "}
                <input
                    ref={input}
                    aria-invalid={isWrong.value}
                    title="a time: 1.5ms, -20us; Enter"
                    onChange={(event) => {
                        const ns = parseDuration(event.currentTarget.value);
                        isWrong.value = ns === null;
                        if (ns !== null) setOffset(ns);
                    }}
                />
            </label>
            {a !== undefined && b !== undefined && (
                <button type="button" onClick={() => setOffset(b - a)}>
                    By the wall clock
                </button>
            )}
            <button type="button" disabled={offset.value === 0} onClick={() => setOffset(0)}>
                Both from their start
            </button>
            <Shift />
        </div>
    );
}

function Frame(props: { which: number }) {
    const { which } = props;
    const name = names[which];
    return (
        <iframe
            title={which === 0 ? "The first trace" : "The second trace"}
            src={`${name}/${first[which] ? `#${first[which]}` : ""}`}
            onLoad={(event) => {
                const window = event.currentTarget.contentWindow;
                if (window) take(which, window);
            }}
        />
    );
}

export function Compare() {
    const next = { auto: "light", light: "dark", dark: "auto" } as const;
    return (
        <main class="two">
            <h1 class="hidden">Two traces</h1>
            <div class="bar">
                <Verdict />
                <button
                    type="button"
                    aria-pressed={isDiffOpen.value}
                    onClick={() => {
                        isDiffOpen.value = !isDiffOpen.value;
                    }}
                >
                    Differences
                </button>
                <button
                    type="button"
                    aria-label={`Colours: ${theme.value}`}
                    onClick={() => {
                        theme.value = next[theme.value];
                    }}
                >
                    {{ auto: "◐", light: "☀", dark: "☾" }[theme.value]}
                </button>
                <span class="name">
                    <b>A</b> <Title which={0} />
                </span>
            </div>
            <Frame which={0} />
            <Bar />
            <Frame which={1} />
            {isDiffOpen.value && <Differences />}
            <ContextMenu />
            {message.value && (
                <div class="message" role="status">
                    {message.value}
                </div>
            )}
        </main>
    );
}
