/*
 * The panel of locks and channels (`trail locks`): number and duration of waits for each, open
 * waits, and the findings about those (`trail summary`), which name holders and cycles.
 */

import { api, type Frame } from "./api";
import { Findings } from "./findings";
import { First, queryOf, useFirst } from "./first";
import { count, duration, NO_NAME, sentence, shortName } from "./format";
import { type LockId, LockOverTime } from "./lock_time";
import { Waiting } from "./panel";
import { jump, useRun } from "./run";
import { chosenLock, type Range } from "./state";
import type { Finding } from "./summary";
import { type Column, Table } from "./table";
import { inWords, term } from "./words";

interface Wait {
    ns: number;
    begin_ns: number;
    goroutine: number;
}

interface Site {
    count: number;
    ns: number;
    stack: Frame[];
}

interface LockRow extends LockId {
    kind: string;
    /* Unique in the trace. */
    title: string;
    /* What `trail diff` calls it: locks may share it. */
    identity: string;
    waits: number;
    wait_ns: number;
    wait: { p50_ns: number; p99_ns: number; max_ns: number };
    longest?: Wait;
    unfinished: number;
    unfinished_ns: number;
    longest_unfinished?: Wait;
    holds: number;
    hold_ns: number;
    waiters: Site[];
    held: Site[];
}

/* Kinds of findings about waits that are open when the trace ends. */
const open = new Set(["deadlock", "maybe-deadlock", "open-wait"]);

function place(frames: Frame[] | undefined): string {
    const frame = frames?.find((one) => !/^(runtime|sync|internal)\W/.test(one.function));
    if (!frame) return "";
    const file = frame.file ? ` (${frame.file.split("/").pop()}:${frame.line})` : "";
    return shortName(frame.function) + file;
}

function waitedAt(row: LockRow): string {
    return place(row.waited) || place(row.waiters[0]?.stack);
}

/* A holder at the end may be known, but not since when. */
function heldText({ holds, hold_ns, holder, can_be_held }: LockRow): string {
    if (holds > 0) return duration(hold_ns);
    if (holder != null) return `at the end, by ${term("task_id")}${holder}`;
    return can_be_held ? "not recorded" : "";
}

/* Those of waits that are open at the end, and of holds, only if there are any. A lock without a name is called by the
 * place where it is waited for. */
function columnsFor(rows: LockRow[]): Column<LockRow>[] {
    const has = {
        "still waiting": rows.some((row) => row.unfinished > 0),
        "waited so far": rows.some((row) => row.unfinished > 0),
        held: rows.some((row) => row.holds > 0 || row.holder != null),
        "taken in": rows.some((row) => row.held.length > 0),
        "waited in": rows.some((row) => row.name !== ""),
    };
    return columns.filter(({ title }) => has[title as keyof typeof has] ?? true);
}

const columns: Column<LockRow>[] = [
    { title: "lock", value: nameOf },
    { title: "kind", value: (row) => row.kind },
    { title: "waits", value: (row) => row.waits, unit: "number" },
    { title: "waited", value: (row) => row.wait_ns, unit: "ns" },
    { title: "still waiting", value: (row) => row.unfinished, unit: "number" },
    { title: "waited so far", value: (row) => row.unfinished_ns, unit: "ns" },
    { title: "median", value: (row) => row.wait.p50_ns, unit: "ns" },
    { title: "p99", value: (row) => row.wait.p99_ns, unit: "ns" },
    { title: "longest", value: (row) => row.wait.max_ns, unit: "ns" },
    {
        title: "held",
        value: (row) => row.hold_ns,
        unit: "ns",
        text: heldText,
    },
    { title: "waited in", value: waitedAt },
    { title: "taken in", value: (row) => place(row.held[0]?.stack) },
    { title: "woken in", value: (row) => place(row.woken) },
];

export const titleOf = (row: LockRow): string => sentence(row.title);

/* The title without the kind, which has its own column: "cache_mu", "main.get (main.go:7)". */
function nameOf(row: LockRow): string {
    const rest = row.title.startsWith(row.kind) ? row.title.slice(row.kind.length) : row.title;
    return sentence(rest.replace(/^ (in )?/, "")) || waitedAt(row) || NO_NAME;
}

/* Shows a lock over time, and its longest wait. Returns where that is; null: nothing waited for it. */
export async function showLock(row: LockRow, origin: number): Promise<Range | null> {
    chosenLock.value = row.title;
    const wait = leadsTo(row);
    if (!wait) return null;
    const from = wait.begin_ns - origin;
    const of = { from, to: from + wait.ns };
    await jump(wait.goroutine, of.from, of.to);
    return of;
}

/* The lock with that wait as its longest one is the one that the panel shows over time. */
export async function chooseLockOf(goroutine: number, begin: number): Promise<void> {
    const { locks } = await api.run<Answer>("locks", { limit: FIRST });
    const isIt = (wait?: Wait) => wait?.goroutine === goroutine && wait.begin_ns === begin;
    const row = locks.find((one) => isIt(one.longest) || isIt(one.longest_unfinished));
    if (row) chosenLock.value = row.title;
}

/* The wait that a row leads to: an open one, else the longest. */
function leadsTo(row: LockRow): Wait | undefined {
    return row.longest_unfinished ?? row.longest;
}

function StillOpen(props: { many: number; ns: number }) {
    const { many, ns } = props;
    const summary = useRun<{ origin_ns: number; findings: Finding[] }>("summary", () => ({})).value;
    const found = summary.value?.findings.filter((one) => open.has(one.kind)) ?? [];
    if (many === 0 && found.length === 0) return null;
    return (
        <section class="open-waits">
            {many > 0 && (
                <p class="warn">
                    {inWords(
                        `${count(many)} ${many === 1 ? "{task} was" : "{tasks} were"} still waiting at the end,`,
                    )}{" "}
                    {duration(ns)} in all.
                </p>
            )}
            <Findings findings={found} origin={summary.value?.origin_ns ?? 0} />
        </section>
    );
}

export interface Answer {
    origin_ns: number;
    all: number;
    unfinished: number;
    unfinished_ns: number;
    locks: LockRow[];
}

/* The locks that are requested first; their answer is computed ahead (runs.c). */
export const FIRST = 500;

export function LocksPanel() {
    const first = useFirst(FIRST);
    const answer = useRun<Answer>("locks", () => queryOf(first)).value;
    const of = answer.value;
    if (!of?.locks) return <Waiting answer={answer} />;
    const isMany = of.locks.length < of.all || first.match.value !== "";
    const lock = of.locks.find((row) => row.title === chosenLock.value);
    return (
        <div>
            <StillOpen many={of.unfinished} ns={of.unfinished_ns} />
            {isMany && (
                <First shown={of.locks.length} all={of.all} rows={first} by="by the time waited" />
            )}
            <div class="with-chart">
                <Table
                    name="locks"
                    columns={columnsFor(of.locks)}
                    rows={of.locks}
                    onWords={isMany ? first.onWords : undefined}
                    mark={(row) => row.unfinished > 0}
                    isShown={(row) => row.title === chosenLock.value}
                    order="most waiting first, waits for work last"
                    empty="No waits for locks or channels."
                    onRow={(row) => void showLock(row, of.origin_ns)}
                />
                {lock && <LockOverTime key={lock.title} of={lock} title={titleOf(lock)} />}
            </div>
        </div>
    );
}
