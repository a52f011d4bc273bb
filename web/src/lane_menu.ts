/* The menus of the timeline: for a span and its lane, a group of lanes, and the ruler. */
import { rowAt } from "./coordinates";
import { shortName } from "./format";
import { clickRow, type Where } from "./gestures";
import { keys } from "./keys";
import type { Lane } from "./lane_table";
import { foldAll, lanes, laneTitle, layout, scrollTo, stateHeight, unfoldAll } from "./lanes";
import type { GroupRow } from "./layout";
import { type Item, openMenu } from "./menu";
import { showPath } from "./path";
import { clearTrack, counter, placed } from "./sql_track";
import {
    end,
    filter,
    folded,
    group,
    kind,
    MOST_IN_AREA,
    range,
    scroll,
    selected,
    showRange,
    span,
    tab,
    toggle,
    view,
} from "./state";

/* The command of a key. */
function byKey(name: string): Item {
    const key = keys.find((of) => of.keys[0] === name);
    return { text: key?.text ?? "", key: key?.shown.split(" ")[0], run: () => key?.run() };
}

/* MARK: Filters and ranges */

function filterItems(name: string): Item[] {
    const short = shortName(name);
    const set = (text: string) => () => {
        filter.value = text;
        scrollTo(0);
    };
    const only = { text: `show only lanes of ${short}`, run: set(short) };
    const hide = { text: `hide lanes of ${short}`, run: set(`${filter.peek()} -${short}`.trim()) };
    /* The filter hides single words only. */
    return short ? [only, ...(/\s/.test(short) ? [] : [hide])] : [];
}

/* Selects the selected or visible range, restricted to lanes. */
function areaOf(numbers: number[]): void {
    const { from, to } = range.peek() ?? {
        from: Math.max(0, view.peek().from),
        to: Math.min(end.peek(), view.peek().to),
    };
    const of = { kind: kind.peek(), lanes: numbers.slice(0, MOST_IN_AREA) };
    range.value = numbers.length > 0 ? { from, to, of } : { from, to };
    tab.value = "range";
}

function areaItems(lane: number): Item[] {
    const of = range.peek()?.of;
    const chosen = of?.kind === kind.peek() ? of.lanes : [];
    const only = { text: "sums of this lane alone", run: () => areaOf([lane]) };
    if (chosen.length === 0) return [only];
    if (!chosen.includes(lane))
        return [only, { text: "add the lane to the area", run: () => areaOf([...chosen, lane]) }];
    const rest = chosen.filter((other) => other !== lane);
    return [{ text: "take the lane out of the area", run: () => areaOf(rest) }];
}

/* MARK: Menus */

function laneMenu(x: number, y: number, lane: Lane): void {
    const isTask = kind.peek() === "goroutine";
    const spanItems: Item[] = [
        byKey("z"),
        {
            text: "select the time of the span",
            run: () => {
                const now = span.peek();
                if (now) range.value = { from: now.begin, to: Math.max(now.end, now.begin + 1) };
                tab.value = "range";
            },
        },
        byKey("h"),
        byKey("o"),
    ];
    const wakeUps: Item[] = [
        byKey("j"),
        byKey("b"),
        {
            text: "why did the {task} take so long?",
            run: () => showPath(`goroutine=${lane.id}`),
        },
    ];
    const laneItems = [byKey("p"), ...(isTask ? [byKey("Enter")] : []), ...areaItems(lane.lane)];
    openMenu(x, y, laneTitle(kind.peek(), lane), [
        spanItems,
        isTask ? wakeUps : [],
        laneItems,
        isTask ? filterItems(lane.name) : [],
    ]);
}

function groupMenu(x: number, y: number, { name, lanes: members }: GroupRow): void {
    const isFolded = folded.peek().has(name);
    const foldItems: Item[] = [
        {
            text: isFolded ? "unfold the group" : "fold the group",
            run: () => {
                folded.value = toggle(folded.peek(), name);
            },
        },
        { text: "fold all groups", run: foldAll },
        { text: "unfold all groups", run: unfoldAll },
    ];
    const sums = {
        text: "sums of the group",
        run: () => areaOf([...members.slice(0, MOST_IN_AREA)]),
    };
    const filters = group.peek() === "name" ? filterItems(name) : [];
    openMenu(x, y, shortName(name) || "no start function", [foldItems, [sums], filters]);
}

function rulerMenu(x: number, y: number): void {
    const now = range.peek();
    const whenSelected: Item[] = now
        ? [
              { text: "zoom to the selected range", run: () => showRange(now) },
              {
                  text: "select nothing",
                  run: () => {
                      range.value = null;
                  },
              },
          ]
        : [];
    const seen = { text: "select what is seen", run: () => areaOf([]) };
    const whenQueried: Item[] =
        placed.peek() || counter.peek()
            ? [{ text: "take the rows of SQL away", run: clearTrack }]
            : [];
    openMenu(x, y, "Time", [
        [seen, ...whenSelected],
        whenQueried,
        [byKey("0"), byKey("Backspace"), byKey("U")],
        [byKey("x"), byKey("m"), byKey("e")],
    ]);
}

export function onContextMenu(event: MouseEvent, where: Where): void {
    event.preventDefault();
    const { clientX: x, clientY: y, offsetX, offsetY } = event;
    const row = where === "rows" ? rowAt(offsetY) : undefined;
    if (!row) rulerMenu(x, y);
    else if (row.type === "group") groupMenu(x, y, row);
    else {
        clickRow(Math.max(offsetX, 24), offsetY);
        laneMenu(x, y, row.lane);
    }
}

/* The menu of the selected span, below its lane; if there is none, the ruler's. */
export function menuOfSelection(): void {
    const canvas = document.querySelector("canvas.rows");
    if (!canvas) return;
    const { left, top } = canvas.getBoundingClientRect();
    const place = selected.peek();
    const row = place && layout.peek().ofLane(place.lane);
    const lane = place && lanes.peek().get(place.lane);
    if (!place || !row || !lane || place.kind !== kind.peek()) rulerMenu(left + 240, top);
    else laneMenu(left + 240, top + row.top - scroll.peek() + stateHeight(row), lane);
}
