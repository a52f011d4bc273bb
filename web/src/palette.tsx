/* The search field in the head, which "/" focuses: searches the trace and all commands. */
import { signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api, type Found } from "./api";
import { cutCommand, pngOfView } from "./export";
import { stackEntries } from "./flame";
import { count, duration, parseDuration, parseTimes, sentence, shortName } from "./format";
import { Find } from "./icons";
import { listSpansIn } from "./in_function";
import { keys } from "./keys";
import type { Lane } from "./lane_table";
import { foldAll, hasGroups, lanes, laneTitle, unfoldAll } from "./lanes";
import { FIRST, type Answer as Locks, showLock, titleOf } from "./locks";
import { showPath } from "./path";
import { timeText } from "./ruler";
import { selectAt } from "./select";
import { canLink, copyLink, saveOneFile } from "./share";
import { stateWord } from "./span_words";
import {
    axis,
    end,
    filter,
    group,
    isPhone,
    kind,
    origin,
    palette,
    panels,
    range,
    say,
    scroll,
    showAll,
    showRange,
    sortBy,
    sorts,
    status,
    tab,
    theme,
    view,
} from "./state";
import { endsOf } from "./table";
import { inWords, term } from "./words";

interface Entry {
    what: string;
    text: string;
    /* What distinguishes it from others with the same name. */
    more?: string;
    run: () => void;
    /* For a command that is not always available. */
    isThere?: () => boolean;
}

/* The commands of keys, without those that the selection has itself and without moves, which are held keys. */
const commands: Entry[] = [
    ...keys
        .filter((key) => key.group !== "Selection" && !key.move && !key.keys.includes("/"))
        .map((key) => ({ ...key, what: key.shown })),
    { what: "share", text: "copy link to this view", run: () => void copyLink(), isThere: canLink },
    { what: "save", text: "save the timeline as PNG", run: pngOfView },
    {
        what: "save",
        text: "save viewer, trace, this view and notes in one file",
        run: () => void saveOneFile(),
    },
    { what: "save", text: "copy the command that cuts the trace to this part", run: cutCommand },
    ...(["light", "dark", "auto"] as const).map((name) => ({
        what: "colours",
        text: `${name} colours`,
        run: () => {
            theme.value = name;
        },
    })),
    ...panels
        .filter(([, , called]) => called)
        .map(([name, , called]) => ({
            what: "panel",
            text: `panel: ${called}`,
            run: () => {
                tab.value = name;
            },
        })),
    ...sorts.map(([name, text]) => ({
        what: "sort",
        text: `sort lanes by ${text}`,
        run: () => {
            sortBy(name);
        },
    })),
    ...(["name", "creator", "task", "none"] as const).map((name) => ({
        what: "group",
        text: name === "none" ? "do not group lanes" : `group lanes by ${name}`,
        run: () => {
            group.value = name;
        },
    })),
    { what: "group", text: "fold all groups", run: foldAll, isThere: hasGroups },
    { what: "group", text: "unfold all groups", run: unfoldAll, isThere: hasGroups },
];

function goTo(at: number): void {
    const half = (view.value.to - view.value.from) / 2;
    showRange({ from: at - half / 2, to: at + half / 2 });
}

/* MARK: Places */

/* "at 12.059 ms, for 1.2 ms" */
function whenText({ at, end }: { at: number; end: number }): string {
    const from = `at ${timeText(at, end > at ? Math.max(1, (end - at) / 100) : 1000)}`;
    return end > at ? `${from}, for ${duration(end - at)}` : from;
}

/* The state that a lane spends most of its time in. */
function stateOf(lane: number): string {
    const { columns, count: many } = lanes.value;
    if (lane >= many) return "";
    const [most, ns] = (["runnable", "running", "waiting", "syscall", "blocked"] as const)
        .map((name) => [name, columns[name][lane]] as const)
        .reduce((a, b) => (b[1] > a[1] ? b : a));
    return ns > 0 ? `mostly ${stateWord(most)}` : "";
}

/* Best matches first: texts that begin with the wanted one, then those with a word that does, whole words before others. A number
 * means a lane or task; the server returns these first. */
function bestFirst(entries: Entry[], wanted: string): Entry[] {
    if (/^\d*$/.test(wanted)) return entries;
    const text = wanted.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    const [before, after] = ["(?<![\\p{L}\\p{N}])", "(?![\\p{L}\\p{N}])"];
    const orders = [`^${text}${after}`, `^${text}`, `${before}${text}${after}`, before + text];
    const forms = orders.map((order) => new RegExp(order, "iu"));
    const rank = (of: Entry) => {
        const found = forms.findIndex((form) => form.test(of.text));
        return found < 0 ? forms.length : found;
    };
    const ranks = new Map(entries.map((of) => [of, rank(of)]));
    return entries.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
}

const listed = (...texts: string[]) => texts.filter(Boolean).join(", ");

function ofLane(what: string, lane: Lane): Entry {
    return {
        what,
        text: laneTitle(kind.value, lane),
        more: listed(stateOf(lane.lane), whenText({ at: lane.begin, end: lane.end })),
        run: () => void selectAt(kind.value, lane.lane, lane.begin, true),
    };
}

function fromFound(found: Found): Entry {
    const { type, lane, at, end, id, task } = found;
    const name = shortName(found.text) || found.text;
    const isLane = type === found.kind;
    if (type === "function" && lane < 0)
        return { what: type, text: name, run: () => listSpansIn(found.text) };
    const whose = id === undefined || isLane ? "" : laneTitle(found.kind, { id });
    if (task !== undefined)
        return {
            what: type,
            text: `${task} ${name}`,
            more: listed(whose, whenText(found)),
            run: () => showPath(`task=${task}`, "requests"),
        };
    return {
        what: laneWords[type]?.()[0] ?? type,
        text: isLane && id !== undefined ? laneTitle(found.kind, { id, name }) : name,
        more: listed(
            isLane ? (found.kind === kind.value ? stateOf(lane) : "") : whose && `in ${whose}`,
            whenText(found),
        ),
        run: () => {
            if (lane < 0 || /^(region|log)$/.test(type))
                showRange({ from: at, to: Math.max(end, at + 1) });
            if (lane < 0) return;
            kind.value = found.kind;
            void selectAt(found.kind, lane, at, true);
        },
    };
}

/* The words for a lane, singular and plural. */
const laneWords: Record<string, () => [string, string]> = {
    goroutine: () => [term("task"), term("tasks")],
    proc: () => [term("slot"), term("slots")],
    thread: () => ["thread", "threads"],
};

/* "2.05s", "2.0-2.1 s", on the ruler's scale. */
function timeEntries(text: string): Entry[] {
    const zero = axis.value === "relative" ? origin.value : 0;
    const times = parseTimes(text);
    const at = parseDuration(text);
    if (times) {
        const [from, to] = [times.from + zero, Math.min(times.to + zero, end.value)];
        const step = Math.max(1, (times.to - times.from) / 100);
        if (from >= end.value) return [afterEnd(from)];
        return [
            {
                what: "range",
                text: `select ${timeText(from, step)} to ${timeText(to, step)}`,
                run: () => {
                    range.value = { from, to };
                    tab.value = "range";
                    showRange({ from, to });
                },
            },
        ];
    }
    if (at === null || at < 0) return [];
    if (at + zero > end.value) return [afterEnd(at + zero)];
    return [{ what: "time", text: `go to ${timeText(at + zero, 1)}`, run: () => goTo(at + zero) }];
}

function afterEnd(at: number): Entry {
    const text = `${duration(at)} is after the end: the trace is ${duration(end.value)} long`;
    return { what: "time", text, run: () => say(text) };
}

/* Names that several lanes share: selecting one shows all of them. */
function nameEntries(wanted: string): Entry[] {
    const { names, columns, count: many } = lanes.value;
    const those = new Map<number, number>();
    names.forEach((name, i) => {
        if (name.toLowerCase().includes(wanted)) those.set(i, 0);
    });
    if (those.size === 0 || wanted.length < 2) return [];
    for (let lane = 0; lane < many; lane++) {
        const known = those.get(columns.name[lane]);
        if (known !== undefined) those.set(columns.name[lane], known + 1);
    }
    return [...those]
        .filter(([, of]) => of > 1)
        .sort((a, b) => b[1] - a[1])
        .slice(0, 3)
        .map(([name, of]) => ({
            what: `${count(of)} ${laneWords[kind.value]()[1]}`,
            text: shortName(names[name]) || names[name],
            more: "shows only these",
            run: () => {
                filter.value = shortName(names[name]) || names[name];
                scroll.value = 0;
                showAll();
            },
        }));
}

/* The locks with their waits, requested when the search is opened; null: not known. */
const locks = signal<Locks | null>(null);

function lockEntries(words: string[]): Entry[] {
    const { locks: rows = [], origin_ns = 0 } = locks.value ?? {};
    return rows
        .filter((row) => words.every((word) => titleOf(row).toLowerCase().includes(word)))
        .slice(0, 8)
        .map((row) => ({
            what: "lock",
            text: titleOf(row),
            more: `${count(row.waits + row.unfinished)} ${row.waits + row.unfinished === 1 ? "wait" : "waits"}, ${duration(row.wait_ns + row.unfinished_ns)}`,
            run: () => {
                tab.value = "locks";
                showLock(row, origin_ns);
            },
        }));
}

function requestLocks(): void {
    if (locks.peek() || !status.peek()?.done || !status.peek()?.can_run) return;
    api.run<Locks>("locks", { limit: FIRST })
        .then((found) => {
            locks.value = found;
        })
        .catch(() => {});
}

/* The lanes with the number "18", "G18", "thread 18". */
function numbered(text: string): Lane[] {
    const [, word, id] = /^(\D*?)\s*(\d+)$/.exec(text.trim().toLowerCase()) ?? [];
    if (!["", "g", "p", "m", laneWords[kind.value]()[0]].includes(word)) return [];
    return id === undefined ? [] : lanes.value.withId(Number(id)).slice(0, 3);
}

/* Whether the page has found it before the server did. */
function isNumbered(found: Found, text: string): boolean {
    const isLane = found.type === found.kind && found.kind === kind.value;
    return isLane && numbered(text).some((lane) => lane.lane === found.lane);
}

function localEntries(text: string): Entry[] {
    const wanted = text.trim().toLowerCase();
    const words = wanted.split(/\s+/);
    const those = [...commands, ...stackEntries()]
        .filter((of: Entry) => of.isThere?.() ?? true)
        .map((of) => ({ ...of, text: inWords(of.text) }))
        .filter((of) =>
            words.every((word) => `${of.what} ${of.text}`.toLowerCase().includes(word)),
        );
    if (!wanted) return those;
    return [...nameEntries(wanted), ...lockEntries(words), ...bestFirst(those, wanted).slice(0, 8)];
}

/* What is typed in the form of a time, or of a lane's number, is that. */
function exactEntries(text: string): Entry[] {
    const those = numbered(text).map((lane) => ofLane(laneWords[kind.value]()[0], lane));
    return [...timeEntries(text), ...those];
}

/* A long text has both its ends, since titles of locks differ at theirs. */
function Ends(props: { of: string }) {
    const [head, tail] = endsOf(props.of);
    return (
        <bdi class="shortened" title={props.of}>
            <span>{head}</span>
            <span>{tail}</span>
        </bdi>
    );
}

export function SearchBox() {
    const input = useRef<HTMLInputElement>(null);
    const text = useSignal("");
    const chosen = useSignal(0);
    /* What the server has found, and for which text, since the next one may have been typed. */
    const results = useSignal<{ of: string; found: Found[] }>({ of: "", found: [] });
    const isAsking = useComputed(() => {
        const wanted = text.value.trim();
        return wanted.length >= 2 && results.value.of !== wanted;
    });
    /* Enter was pressed before there was anything to run. */
    const isEntered = useSignal(false);
    const entries = useComputed(() => {
        const found = (isAsking.value ? [] : results.value.found)
            .filter((one) => !isNumbered(one, text.value))
            .map(fromFound);
        const named = [...localEntries(text.value), ...found];
        return [...exactEntries(text.value), ...bestFirst(named, text.value.trim())];
    });
    useSignalEffect(() => {
        const wanted = text.value.trim();
        if (wanted.length < 2) return;
        const asked = new AbortController();
        const timer = setTimeout(() => {
            api.find(wanted, asked.signal)
                .catch(() => ({ results: [] }))
                .then(({ results: found }) => {
                    if (asked.signal.aborted) return;
                    results.value = { of: wanted, found };
                    if (isEntered.peek()) run(entries.peek()[0]);
                });
        }, 120);
        return () => {
            clearTimeout(timer);
            asked.abort();
        };
    });
    const leave = () => {
        text.value = "";
        results.value = { of: "", found: [] };
        chosen.value = 0;
        isEntered.value = false;
        input.current?.blur();
    };
    const run = (entry: Entry | undefined) => {
        leave();
        entry?.run();
    };
    const isOpen = palette.value;
    return (
        <search class="palette">
            <Find />
            <input
                ref={input}
                role="combobox"
                aria-label={inWords(
                    "Search: a function, {task}, lock, task, region, log, a time or range, or a command",
                )}
                aria-expanded={isOpen}
                aria-controls="found"
                aria-activedescendant={isOpen ? `found${chosen.value}` : undefined}
                placeholder={
                    isPhone()
                        ? "Search"
                        : inWords("Search {tasks}, functions, locks, task 42, 2.0-2.1 s")
                }
                value={text.value}
                onFocus={() => {
                    palette.value = true;
                    requestLocks();
                }}
                onBlur={() => {
                    palette.value = false;
                }}
                onInput={(event) => {
                    text.value = event.currentTarget.value;
                    chosen.value = 0;
                    isEntered.value = false;
                }}
                onKeyDown={(event) => {
                    if (event.key === "Enter" && isAsking.value && !entries.value.length)
                        isEntered.value = true;
                    else if (event.key === "Enter") run(entries.value[chosen.value]);
                    else if (event.key === "Escape") leave();
                    else if (event.key === "ArrowDown")
                        chosen.value = Math.min(chosen.value + 1, entries.value.length - 1);
                    else if (event.key === "ArrowUp") chosen.value = Math.max(chosen.value - 1, 0);
                    else return;
                    event.preventDefault();
                    event.stopPropagation();
                    document
                        .getElementById(`found${chosen.value}`)
                        ?.scrollIntoView({ block: "nearest" });
                }}
            />
            <kbd>/</kbd>
            {isOpen && (
                <div role="listbox" id="found" aria-label="Results">
                    {entries.value.map((entry, i) => (
                        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are the input's
                        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the input
                        <div
                            key={i}
                            id={`found${i}`}
                            role="option"
                            aria-selected={i === chosen.value}
                            onPointerDown={(event) => event.preventDefault()}
                            onClick={() => run(entry)}
                        >
                            <span class="what">{entry.what}</span> <Ends of={entry.text} />
                            {entry.more && <span class="faint"> {sentence(entry.more)}</span>}
                        </div>
                    ))}
                    {entries.value.length === 0 && (
                        <p class="empty">
                            {isAsking.value
                                ? "Searching …"
                                : "Nothing in the trace has this name or number."}
                        </p>
                    )}
                </div>
            )}
        </search>
    );
}
