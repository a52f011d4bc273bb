/*
 * The texts in spans: the state and what is waited for, in the longest form that fits. Requested
 * for lanes with a visible span wide enough for a text.
 */
import { api, type Kind, type SpanList } from "./api";
import type { WaitClass } from "./colors";
import { Kept } from "./extras";
import { duration, nameWithin, shortName } from "./format";
import { laneTitle, sharedNames } from "./lanes";
import { around } from "./moving";
import type { Drawing } from "./pictures";
import { firstCell } from "./pictures";
import { type Range, stateNumber } from "./state";
import { waitClassOf, waitTitle } from "./waits";

type Listed = SpanList["spans"][number];

export interface Text {
    kind: Kind;
    lane: number;
    begin: number;
    end: number;
    state: number;
    /* Of a wait: its class. */
    wait?: WaitClass;
    /* Longest first. */
    forms: string[];
    time: string;
}

/* Minimum width in pixels of a span with a text, and of a name in it. */
const WIDE = 28;
/* The minimum average width of a character. */
const NARROW = 3;
const MOST = 600;

/*
 * "mutex cache_mu, held by flush", "mutex cache_mu", "cache_mu"; "sleep";
 * "sync.(*Mutex).Lock in main.chargeAccount, held by main.audit (inferred)", "sync.(*Mutex).Lock, held by ...", ...,
 * "Mutex".
 */
function waitForms(of: Listed): string[] {
    const named = of.wait_kind ?? of.reason;
    const title = of.sync ?? waitTitle(named);
    if (waitClassOf(named) === "idle") return [];
    if (of.object) return withHolder(of, [`${title} ${of.object}`, of.object]);
    const place =
        of.function && waitClassOf(named) !== "sleep"
            ? [`${title} in ${shortName(of.function)}`]
            : [];
    const type = of.sync?.match(/\(\*(\w+)\)/)?.slice(1) ?? [];
    return named ? withHolder(of, [...place, title, ...type]) : [];
}

function withHolder({ held_by: holder }: Listed, forms: string[]): string[] {
    if (!holder) return forms;
    const inferred = holder.inferred ? " (inferred)" : "";
    const isOne = holder.name && !sharedNames.value.has(holder.name);
    const name = isOne ? shortName(holder.name ?? "") : laneTitle("goroutine", holder);
    /* What the wait is for: without its place, which says less than the holder. */
    const [short] = forms.slice(1).filter((form) => forms[0].startsWith(`${form} `));
    const withIt = [forms[0], short].filter(Boolean);
    return [...withIt.map((form) => `${form}, held by ${name}${inferred}`), ...forms];
}

function formsOf(of: Listed): string[] {
    if (of.goroutine) return [laneTitle("goroutine", of.goroutine)];
    const place = shortName(of.function ?? "");
    if (of.state === "waiting") return waitForms(of);
    if (of.state === "runnable") return ["ready"];
    if (of.state === "running") return place ? [place] : ["running"];
    return [...(place ? [`syscall in ${place}`] : []), "syscall"];
}

interface Wanted {
    kind: Kind;
    window: Range;
    lanes: string;
}

async function ask({ kind, window, lanes }: Wanted): Promise<Text[]> {
    const { from, to } = around(window);
    const { spans } = await api.spans({ kind, from, to, lanes, count: MOST });
    return spans.flatMap((of) => {
        const forms = formsOf(of);
        const { lane, begin, end, state } = of;
        const time = duration(end - begin);
        const wait = state === "waiting" ? waitClassOf(of.wait_kind ?? of.reason) : undefined;
        const number = stateNumber(state);
        return forms.length ? [{ kind, lane, begin, end, state: number, wait, forms, time }] : [];
    });
}

export const texts = new Kept<Text[]>(ask);

/* Those of a kind of lanes: until others arrive, the last ones may be of another kind. */
export function textsOf(kind: Kind): Text[] {
    return texts.value.value?.filter((of) => of.kind === kind) ?? [];
}

/* Whether a lane's picture has a span at least that many pixels wide in the window. */
function hasWide(pictures: Drawing, lane: number, window: Range, pixels: number): boolean {
    const picture = pictures.get(lane);
    if (!picture) return false;
    const least = (WIDE * (window.to - window.from)) / pixels;
    const perPixel = (picture.to - picture.from) / picture.width;
    for (let i = firstCell(picture, window.from); i < picture.count; i++) {
        const at = picture.offset + i * 16;
        if (picture.from + picture.data.getUint16(at, true) * perPixel > window.to) break;
        if (picture.data.getUint16(at + 2, true) * perPixel >= least) return true;
    }
    return false;
}

/* Requests the texts of a window. */
export function wantTexts(of: {
    kind: Kind;
    window: Range;
    pixels: number;
    lanes: number[];
    pictures: Drawing;
    fresh: number;
}): void {
    const { kind, window, pixels } = of;
    const wide = of.lanes.filter((lane) => hasWide(of.pictures, lane, window, pixels));
    const lanes = wide.join(",");
    if (lanes)
        texts.want(`${kind} ${window.from} ${window.to} ${lanes} ${of.fresh}`, {
            kind,
            window,
            lanes,
        });
}

/* Widths by text, all in one font: measuring is slow. */
const widths = new Map<string, number>();

export function widthOf(to: CanvasRenderingContext2D, text: string): number {
    const known = widths.get(text);
    if (known !== undefined) return known;
    if (widths.size > 5000) widths.clear();
    const width = to.measureText(text).width;
    widths.set(text, width);
    return width;
}

/* The longest form that fits into a width, or else the shortest one, cut in the middle; "": there
 * is no room. */
export function fitting(to: CanvasRenderingContext2D, of: Text, width: number): string {
    /* Forms that are certainly too long are not measured. */
    const found = of.forms.find(
        (form) => form.length * NARROW <= width && widthOf(to, form) <= width,
    );
    if (found || width < WIDE * 2) return found ?? "";
    return nameWithin(of.forms[of.forms.length - 1], "", width, (text) => widthOf(to, text));
}

/* Whether the duration fits next to the text. */
export function timeFits(
    to: CanvasRenderingContext2D,
    of: Text,
    form: string,
    width: number,
): boolean {
    return widthOf(to, form) + widthOf(to, of.time) + WIDE / 2 <= width;
}
