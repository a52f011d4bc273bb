/* Describes what is under the pointer, in a few words next to it. */
import { stateNames } from "./api";
import { inner, markAt, pictures, rowAt, timeAt } from "./coordinates";
import { headHeight, MAP_HEIGHT } from "./draw_head";
import { onLanes, regions, tasks } from "./extras";
import { count, duration, NO_NAME, shortName } from "./format";
import { LABELS } from "./geometry";
import { columnAt, type GroupPicture, groupPictures } from "./group_pictures";
import { held } from "./held";
import { LANE_HEIGHT, laneTitle } from "./lanes";
import type { GroupRow } from "./layout";
import { kindWord } from "./panel";
import { cellAt, cellIndex, sharesAt } from "./pictures";
import { markWord } from "./select";
import { kind, scroll, size } from "./state";
import { textsOf } from "./texts";
import { inWords } from "./words";

export interface Tip {
    x: number;
    y: number;
    title: string;
    text: string;
}

/* "running 60 %, waiting 40 %", the largest share first. */
function inPercent(shares: number[]): string {
    const all = shares.reduce((sum, share) => sum + share, 0);
    return shares
        .map((share, state) => ({ share, state }))
        .filter(({ share }) => share > 0)
        .sort((a, b) => b.share - a.share)
        .map(({ share, state }) => {
            const percent = Math.round((100 * share) / all) || "<1";
            return `${inWords(stateNames[state])} ${percent} %`;
        })
        .join(", ");
}

/* The region or task at a height of a row and a time. */
function barAt(row: { lane: { lane: number }; open: boolean }, below: number, at: number) {
    const bars = [...onLanes(regions, kind.value), ...onLanes(tasks, kind.value)];
    return bars.find((of) => {
        if (of.lane !== row.lane.lane || of.begin > at || of.end < at) return false;
        return row.open
            ? below >= LANE_HEIGHT && of.depth === Math.floor((below - LANE_HEIGHT) / 13)
            : below > 15;
    });
}

/* ", holds mutex cache_mu for 15 ms", if the lane's goroutine does. */
function heldText(lane: number, at: number): string {
    const now = held.value;
    const range = now?.byLane.get(lane)?.find(({ from, to }) => from <= at && at < to);
    if (!now || !range || kind.value !== "goroutine") return "";
    const length = duration(range.to - range.from);
    return now.isInferred
        ? `; holds ${now.lock} for at least ${length}, as is inferred`
        : `; holds ${now.lock} for about ${length}`;
}

/* "waiting: mutex cache_mu, held by flush, 14.8 ms", of a span that is wide enough to have a text in its lane. */
function spanText(lane: number, at: number, state: string): string | undefined {
    const known = textsOf(kind.value).find(
        (of) => of.lane === lane && of.begin <= at && at < of.end,
    );
    if (!known) return undefined;
    const [what] = known.forms;
    return `${what.startsWith(state) ? "" : `${state}: `}${what}, ${known.time}`;
}

/* "2.3", "0.04", "120" */
function averageText(of: number): string {
    return of < 100 ? String(Number(of.toPrecision(2))) : count(Math.round(of));
}

/* How many of a folded group's lanes are in each state. */
function groupText(picture: GroupPicture, column: number): string {
    const { members, summed, peak, counts } = picture;
    const here = counts.map((of) => of[column] ?? 0);
    const all = here.reduce((sum, one) => sum + one, 0);
    const text = here
        .map((many, state) => ({ many, state }))
        .filter(({ many }) => many > 0)
        .sort((a, b) => b.many - a.many)
        .map(({ many, state }) => {
            const percent = Math.round((100 * many) / all) || "<1";
            return `${inWords(stateNames[state])} ${averageText(many)} (${percent} %)`;
        })
        .join(", ");
    const length = duration((picture.to - picture.from) / picture.columns);
    const some =
        summed < members ? ` Estimated from ${count(summed)} of the ${count(members)}.` : "";
    const average = text ? `${text}, on average in ${length}` : "none exists here";
    return `${average}. The height of the row is the most at once, ${count(Math.round(peak))}.${some}`;
}

function groupTip(row: GroupRow, x: number, y: number): Tip | null {
    if (!row.folded) return null;
    const many = count(row.lanes.length);
    const name = shortName(row.name) || NO_NAME;
    const title = `${name}: ${many} ${kindWord(kind.value, row.lanes.length !== 1)}`;
    if (x < LABELS) return { x, y, title, text: "A click unfolds the group." };
    const picture = groupPictures.get(row.name);
    const column = picture ? columnAt(picture, timeAt(x)) : -1;
    return picture && column >= 0 ? { x, y, title, text: groupText(picture, column) } : null;
}

export function tipAt(x: number, y: number): Tip | null {
    const row = rowAt(y);
    if (!row) return null;
    if (row.type === "group") return groupTip(row, x, y);
    const title = laneTitle(kind.value, row.lane);
    /* The column of names, which shortens long ones. */
    if (x < LABELS) return { x, y, title, text: "" };
    const at = timeAt(x);
    const found = markAt(row, x, y);
    if (found) {
        const { mark } = found;
        const word = markWord(found.kind);
        const text = mark.count > 1 ? `${mark.count} ${word}s` : mark.text || word;
        return { x, y, title, text: `${text}: a click shows the stack` };
    }
    const bar = barAt(row, y + scroll.value - row.top, at);
    if (bar)
        return {
            x,
            y,
            title: bar.name || bar.kind,
            text: `${bar.kind}, ${duration(bar.end - bar.begin)}`,
        };
    const picture = pictures[kind.value].get(row.lane.lane);
    const index = picture ? cellIndex(picture, at) : -1;
    if (!picture || index < 0) return null;
    const cell = cellAt(picture, index);
    const holds = heldText(row.lane.lane, at);
    if (cell.mixture) {
        const text = `several short spans: ${inPercent(sharesAt(picture, index))}. A click lists them${holds}.`;
        return { x, y, title, text };
    }
    const scale = (picture.to - picture.from) / picture.width;
    const state = inWords(stateNames[cell.state]);
    const text =
        spanText(row.lane.lane, at, state) ?? `${state}, about ${duration(cell.pixels * scale)}`;
    return { x, y, title, text: text + holds };
}

export function TipBox(props: { of: Tip }) {
    const { x, y, title, text } = props.of;
    return (
        <div
            class="tip"
            style={{
                left: `${Math.min(x + 14, LABELS + inner() - 320)}px`,
                top: `${Math.min(y + 16, size.value.height - 40) + headHeight() + MAP_HEIGHT}px`,
            }}
        >
            <b>{title}</b>
            {text && <br />}
            {text}
        </div>
    );
}
