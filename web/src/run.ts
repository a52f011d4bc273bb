/* Answers of the analyses (the output of `trail NAME --json`), cached by command and parameters. */
import { computed, type Signal, signal, useSignalEffect } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { api, type Query } from "./api";
import { laneOf, lanes, lanesLoaded, reveal } from "./lanes";
import { selectLongest } from "./select";
import { type Area, kind, range, say, showRange, showTimeline, status } from "./state";
import { inWords } from "./words";

export interface Answer<T> {
    state: "asking" | "good" | "bad";
    value?: T;
    error?: string;
}

const kept = new Map<string, Answer<unknown>>();

/* The status changes often; the parts that analyses depend on do not. */
const isRead = computed(() => Boolean(status.value?.done));
const canRun = computed(() => Boolean(status.value?.can_run));

/* Commands that can be restricted to goroutines. */
const ofGoroutines = new Set(["goroutines", "regions", "profile", "latency", "locks", "find"]);

/* The goroutines to which an area is restricted, if they exist in its time; null: all. */
export function goroutinesOf(area: Area | null): number[] | null {
    if (area?.of?.kind !== "goroutine") return null;
    const there = area.of.lanes
        .map((lane) => lanes.value.get(lane))
        .filter((lane) => lane !== undefined)
        .filter((lane) => lane.begin < area.to && lane.end > area.from);
    return [...new Set(there.map((lane) => lane.id))];
}

/* The range that an answer covers: the selected range and its goroutines, or the whole trace. */
export function window(command: string): Query {
    const now = range.value;
    if (!now) return {};
    const times = { from: Math.round(now.from), to: Math.round(now.to) };
    const ids = ofGoroutines.has(command) ? goroutinesOf(now) : null;
    return ids ? { ...times, goroutine: ids.join(",") } : times;
}

/* Requests an analysis once the trace has been read, and again when the selected range changes,
 * unless it covers the whole trace. */
export function useRun<T>(
    command: string,
    extra: () => Query,
    of: "range" | "whole" = "range",
): Signal<Answer<T>> {
    const answer = useMemo(() => signal<Answer<T>>({ state: "asking" }), []);
    useSignalEffect(() => {
        if (!isRead.value) return;
        const query: Query = { ...(of === "range" ? window(command) : {}), ...extra() };
        const key = `${command} ${JSON.stringify(query)}`;
        if (query.goroutine === "") {
            answer.value = { state: "bad", error: inWords("No {task} of the area is there then.") };
            return;
        }
        const known = kept.get(key);
        if (known) {
            answer.value = known as Answer<T>;
            return;
        }
        if (!canRun.value) {
            answer.value = {
                state: "bad",
                error: "Analyses need a file: save the trace and open that.",
            };
            return;
        }
        answer.value = { state: "asking", value: answer.peek().value };
        let isOld = false;
        const take = (found: Answer<T>) => {
            if (!isOld) answer.value = found;
        };
        api.run<T>(command, query)
            .then((value) => {
                if (kept.size > 30) kept.delete(kept.keys().next().value as string);
                const found = { state: "good", value } as const;
                kept.set(key, found);
                take(found);
            })
            .catch((error: Error) => take({ state: "bad", error: error.message }));
        return () => {
            isOld = true;
        };
    });
    return answer;
}

/* MARK: Links from tables to the timeline */

/*
 * Shows a goroutine in a range of times in ns since the first event, and selects its longest span
 * there. Returns false if it is not selected.
 */
export async function jump(id: number | null, from: number, to: number): Promise<boolean> {
    showTimeline();
    if (id === null) {
        showRange({ from, to });
        return true;
    }
    kind.value = "goroutine";
    await lanesLoaded();
    return showLane(id, from, to);
}

async function showLane(id: number, from: number, to: number): Promise<boolean> {
    const lane = laneOf(id, from);
    if (lane === null) {
        say(`${inWords("{Task}")} ${id} is not in the timeline.`);
        return false;
    }
    showRange({ from, to: Math.max(to, from + 1) });
    const isSelected = await selectLongest("goroutine", lane, { from, to });
    if (isSelected) await reveal(lane);
    return isSelected;
}
