/* The search field of the head, which "/" moves to: searches the trace and all commands. */
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api, type Found } from "./api";
import { cutCommand, pngOfView, svgOfView } from "./export";
import { parseDuration, shortName } from "./format";
import { Find } from "./icons";
import { keys } from "./keys";
import { foldAll, hasGroups, lanes, laneTitle, unfoldAll } from "./lanes";
import { addNote } from "./notes";
import { timeText } from "./ruler";
import { selectAt } from "./select";
import { canLink, copyLink, saveOneFile } from "./share";
import { group, kind, palette, panels, showRange, sort, sorts, tab, theme, view } from "./state";
import { inWords } from "./words";

interface Entry {
    what: string;
    text: string;
    run: () => void;
    /* Of a command that is not always there. */
    isThere?: () => boolean;
}

const commands: Entry[] = [
    ...keys
        .filter((key) => key.group !== "Selection" && !key.keys.includes("/"))
        .map((key) => ({ ...key, what: key.shown })),
    { what: "share", text: "copy link to this view", run: () => void copyLink(), isThere: canLink },
    { what: "save", text: "save the timeline as PNG", run: pngOfView },
    { what: "save", text: "save the timeline as SVG", run: svgOfView },
    {
        what: "save",
        text: "save viewer, trace, this view and notes in one file",
        run: () => void saveOneFile(),
    },
    { what: "save", text: "copy the command that cuts the trace to this part", run: cutCommand },
    { what: "note", text: "bookmark this view", run: addNote },
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
            sort.value = name;
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

function fromFound(found: Found): Entry {
    return {
        what: found.type,
        text: shortName(found.text) || found.text,
        run: () => {
            if (found.lane >= 0) {
                kind.value = found.kind;
                if (found.type === "region" || found.type === "task" || found.type === "log")
                    showRange({ from: found.at, to: Math.max(found.end, found.at + 1) });
                void selectAt(found.kind, found.lane, found.at, true);
            } else {
                showRange({ from: found.at, to: Math.max(found.end, found.at + 1) });
            }
        },
    };
}

function localEntries(text: string): Entry[] {
    const wanted = text.toLowerCase();
    const at = parseDuration(text);
    const found: Entry[] =
        at === null || at < 0
            ? []
            : [{ what: "time", text: `go to ${timeText(at, 1)}`, run: () => goTo(at) }];
    const byId = /^[gpmGPM]?(\d+)$/.exec(text.trim());
    for (const lane of byId ? lanes.value.withId(Number(byId[1])).slice(0, 3) : [])
        found.push({
            what: kind.value,
            text: laneTitle(kind.value, lane),
            run: () => void selectAt(kind.value, lane.lane, lane.begin, true),
        });
    const words = wanted.split(/\s+/);
    const those = commands
        .filter((of) => of.isThere?.() ?? true)
        .map((of) => ({ ...of, text: inWords(of.text) }))
        .filter((of) =>
            words.every((word) => `${of.what} ${of.text}`.toLowerCase().includes(word)),
        );
    return [...found, ...(wanted ? those.slice(0, 8) : those)];
}

export function SearchBox() {
    const input = useRef<HTMLInputElement>(null);
    const text = useSignal("");
    const chosen = useSignal(0);
    const results = useSignal<Found[]>([]);
    const entries = useComputed(() => [
        ...localEntries(text.value),
        ...results.value.map(fromFound),
    ]);
    useSignalEffect(() => {
        const wanted = text.value.trim();
        results.value = [];
        if (wanted.length < 2) return;
        const asked = new AbortController();
        const timer = setTimeout(() => {
            api.find(wanted, asked.signal)
                .then((found) => {
                    results.value = found.results;
                })
                .catch(() => {});
        }, 120);
        return () => {
            clearTimeout(timer);
            asked.abort();
        };
    });
    const leave = () => {
        text.value = "";
        chosen.value = 0;
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
                    "Search: a function, {task}, task, region, log, a time, or a command",
                )}
                aria-expanded={isOpen}
                aria-controls="found"
                aria-activedescendant={isOpen ? `found${chosen.value}` : undefined}
                placeholder={inWords("Search {tasks}, functions, tasks, times, commands")}
                value={text.value}
                onFocus={() => {
                    palette.value = true;
                }}
                onBlur={() => {
                    palette.value = false;
                }}
                onInput={(event) => {
                    text.value = event.currentTarget.value;
                    chosen.value = 0;
                }}
                onKeyDown={(event) => {
                    if (event.key === "Enter") run(entries.value[chosen.value]);
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
                            <span class="what">{entry.what}</span> <bdi>{entry.text}</bdi>
                        </div>
                    ))}
                    {entries.value.length === 0 && (
                        <p class="empty">Nothing of this name is in the trace.</p>
                    )}
                </div>
            )}
        </search>
    );
}
