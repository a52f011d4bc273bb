/* The table of keyboard shortcuts: their actions, and their texts in the help and in menus. */
import { pointerTime } from "./coordinates";
import { svgOfView } from "./export";
import { menuOfSelection } from "./lane_menu";
import { lanes, layout, scrollTo } from "./lanes";
import { isMenuKey } from "./menu";
import { type Move, press, release, settle } from "./motion";
import { addNote } from "./notes";
import {
    follow as followTo,
    followWakeUps,
    neighbour,
    nextLane,
    nextMark,
    select,
    selectAt,
    selectSpan,
} from "./select";
import {
    axis,
    back,
    chain,
    follow,
    forward,
    help,
    kind,
    like,
    markFacts,
    origin,
    pan,
    pinned,
    range,
    say,
    scroll,
    selected,
    showAll,
    showRange,
    span,
    tab,
    toggle,
    unfolded,
    view,
    zoom,
} from "./state";
import { hasMachines } from "./words";

interface Key {
    keys: string[];
    shown: string;
    text: string;
    group: string;
    run: () => void;
    /* For a key that keeps moving while it is held; `run` is one step. */
    move?: Move;
    /* For a key that not every trace has. */
    isThere?: () => boolean;
}

function moving(keys: string[], shown: string, text: string, move: Move): Key {
    return { group: "Window", keys, shown, text, move, run: () => move(1) };
}

/* What zooming keeps in place: the time under the pointer, else the selected span, else the
 * middle. */
function middle(): number {
    const { from, to } = view.peek();
    const under = pointerTime();
    if (under !== null) return under;
    const now = span.peek();
    const at = now ? (Math.max(now.begin, from) + Math.min(now.end, to)) / 2 : (from + to) / 2;
    return at > from && at < to ? at : (from + to) / 2;
}

function closeOne(): void {
    if (help.value) help.value = false;
    else if (chain.value.length) chain.value = [];
    else if (like.value) like.value = null;
    else if (range.value) range.value = null;
    else if (selected.value) select(null);
    else tab.value = null;
}

function first(): void {
    const lane = layout.peek().first();
    if (lane === undefined) return;
    const from = Math.max(lanes.peek().get(lane)?.begin ?? 0, view.peek().from);
    void selectAt(kind.peek(), lane, from, false);
}

/* From a log or sample, the first step goes to the span that contains it. */
function step(by: () => void): () => void {
    return () => {
        const at = markFacts.peek()?.goroutine;
        if (at?.span !== undefined) void selectSpan("goroutine", at.lane, at.span, false);
        else if (selected.peek() && span.peek()) by();
        else first();
    };
}

/* Immediately, so that the next key is the first letter of the search. */
function toSearch(): void {
    document.querySelector<HTMLElement>(".palette input")?.focus();
}

export const keys: Key[] = [
    moving(["w", "+", "="], "W +", "zoom in", (steps) => zoom(0.7 ** steps, middle())),
    moving(["s", "-"], "S −", "zoom out", (steps) => zoom(0.7 ** -steps, middle())),
    moving(["a"], "A", "to the left", (steps) => pan(-0.2 * steps)),
    moving(["d"], "D", "to the right", (steps) => pan(0.2 * steps)),
    moving(["PageUp"], "PageUp", "up", (steps) => scrollTo(scroll.peek() - 300 * steps)),
    moving(["PageDown"], "PageDown", "down", (steps) => scrollTo(scroll.peek() + 300 * steps)),
    {
        group: "Window",
        keys: ["0", "Home"],
        shown: "0 Home",
        text: "the whole trace",
        run: showAll,
    },
    {
        group: "Window",
        keys: ["Backspace", "u"],
        shown: "U Backspace",
        text: "back to the window before",
        run: back,
    },
    {
        group: "Window",
        keys: ["U", "r"],
        shown: "R Shift U",
        text: "forward again",
        run: forward,
    },
    {
        group: "Window",
        keys: ["l"],
        shown: "L",
        text: "follow what arrives, or pause",
        run: () => {
            follow.value = !follow.value;
            say(follow.value ? "Following what arrives." : "Paused.");
        },
    },
    {
        group: "Selection",
        keys: ["ArrowLeft"],
        shown: "←",
        text: "the span before",
        run: step(() => neighbour(-1)),
    },
    {
        group: "Selection",
        keys: ["ArrowRight"],
        shown: "→",
        text: "the next span",
        run: step(() => neighbour(1)),
    },
    {
        group: "Selection",
        keys: ["ArrowUp"],
        shown: "↑",
        text: "the lane above",
        run: step(() => nextLane(-1)),
    },
    {
        group: "Selection",
        keys: ["ArrowDown"],
        shown: "↓",
        text: "the lane below",
        run: step(() => nextLane(1)),
    },
    {
        group: "Selection",
        keys: ["n"],
        shown: "N",
        text: "the next log or CPU sample of the lane",
        run: () => void nextMark(1),
    },
    {
        group: "Selection",
        keys: ["N"],
        shown: "Shift N",
        text: "the one before",
        run: () => void nextMark(-1),
    },
    {
        group: "Selection",
        keys: ["z"],
        shown: "Z",
        text: "zoom to the span",
        run: () => {
            const now = span.peek();
            if (now) showRange({ from: now.begin, to: now.end });
        },
    },
    {
        group: "Selection",
        keys: ["j"],
        shown: "J",
        text: "jump to the waker",
        run: () => {
            const waker = span.peek()?.waker ?? span.peek()?.ender;
            if (waker) followTo(waker);
        },
    },
    {
        group: "Selection",
        keys: ["b"],
        shown: "B",
        text: "follow the wake-up back, across lanes",
        run: () => void followWakeUps(),
    },
    {
        group: "Selection",
        keys: ["h"],
        shown: "H",
        text: "highlight spans like this one",
        run: () => {
            const now = span.peek();
            like.value = like.peek() || !now ? null : { state: now.state, reason: now.reason };
        },
    },
    {
        group: "Selection",
        keys: ["p"],
        shown: "P",
        text: "pin the lane to the top",
        run: () => {
            const lane = selected.peek()?.lane;
            if (lane === undefined) return;
            const now = pinned.peek();
            pinned.value = now.includes(lane)
                ? now.filter((other) => other !== lane)
                : [...now, lane];
        },
    },
    {
        group: "Selection",
        keys: ["Enter"],
        shown: "Enter",
        text: "unfold the {task}'s regions",
        run: () => {
            const lane = selected.peek()?.lane;
            if (lane !== undefined && kind.peek() === "goroutine")
                unfolded.value = toggle(unfolded.peek(), lane);
        },
    },
    {
        group: "Selection",
        keys: ["ContextMenu"],
        shown: "Menu, Shift F10",
        text: "the commands for what is selected",
        run: menuOfSelection,
    },
    {
        group: "Selection",
        keys: ["Escape"],
        shown: "Esc",
        text: "close, or select nothing",
        run: closeOne,
    },
    {
        group: "View",
        keys: ["1"],
        shown: "1",
        text: "lanes by {task}",
        run: () => {
            kind.value = "goroutine";
        },
    },
    {
        group: "View",
        keys: ["2"],
        shown: "2",
        text: "lanes by {slot}",
        run: () => {
            kind.value = "proc";
        },
    },
    {
        group: "View",
        keys: ["3"],
        shown: "3",
        text: "lanes by thread",
        isThere: hasMachines,
        run: () => {
            kind.value = "thread";
        },
    },
    {
        group: "View",
        keys: ["o"],
        shown: "O",
        text: "count time from the span, or from the start",
        run: () => {
            origin.value = span.peek() && !origin.peek() ? (span.peek()?.begin ?? 0) : 0;
        },
    },
    {
        group: "View",
        keys: ["x"],
        shown: "X",
        text: "wall clock on the ruler, or time since the start",
        run: () => {
            axis.value = axis.peek() === "wall" ? "relative" : "wall";
        },
    },
    {
        group: "Other",
        keys: ["/", "k"],
        shown: "/ K Ctrl K",
        text: "search, and all commands",
        run: toSearch,
    },
    { group: "Other", keys: ["m"], shown: "M", text: "bookmark this view", run: addNote },
    {
        group: "Other",
        keys: ["e"],
        shown: "E",
        text: "save the timeline as SVG",
        run: svgOfView,
    },
    {
        group: "Other",
        keys: ["?"],
        shown: "?",
        text: "this help",
        run: () => {
            help.value = !help.value;
        },
    },
];

/* The keys that this trace has. */
export function shownKeys(): Key[] {
    return keys.filter((key) => key.isThere?.() ?? true);
}

function isTyping(target: EventTarget | null): boolean {
    return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/* The key's position on the keyboard; its letter if it has none, as on a virtual keyboard. */
function placeOf(event: KeyboardEvent): string {
    return event.code || event.key;
}

export function listen(): void {
    addEventListener("keydown", (event) => {
        if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
            event.preventDefault();
            toSearch();
            return;
        }
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (isTyping(event.target) && event.key !== "Escape") return;
        const name = isMenuKey(event) ? "ContextMenu" : event.key;
        const onButton =
            event.target instanceof HTMLElement && event.target.closest("button, a, tr[tabindex]");
        if (onButton && ["Enter", " ", "ContextMenu"].includes(name)) return;
        const key = shownKeys().find((of) => of.keys.includes(name));
        if (!key) return;
        event.preventDefault();
        if (key.move) {
            press(placeOf(event), event.repeat, key.move);
            return;
        }
        settle();
        key.run();
    });
    addEventListener("keyup", (event) => release(placeOf(event)));
    addEventListener("blur", settle);
}
