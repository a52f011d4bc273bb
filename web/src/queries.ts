/* Queries to choose from: the named ones of `trail sql`, and those saved in this browser. */
import { signal } from "@preact/signals";
import { api } from "./api";

export interface Query {
    name: string;
    meaning: string;
    sql: string;
}

const KEY = "trail.queries";
const MOST = 200;

function isQuery(value: unknown): value is Query {
    const query = value as Query;
    return typeof query?.name === "string" && typeof query.sql === "string";
}

function load(): Query[] {
    try {
        const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
        return Array.isArray(found) ? found.filter(isQuery).slice(0, MOST) : [];
    } catch {
        return [];
    }
}

export const named = signal<Query[]>([]);
export const saved = signal<Query[]>(load());

function keep(queries: Query[]): void {
    saved.value = queries;
    localStorage.setItem(KEY, JSON.stringify(queries));
}

/* Replaces any query of that name. */
export function saveQuery(name: string, sql: string): void {
    const others = saved.peek().filter((query) => query.name !== name);
    keep([...others, { name, meaning: "", sql }].slice(-MOST));
}

export function forgetQuery(name: string): void {
    keep(saved.peek().filter((query) => query.name !== name));
}

let isAsked = false;

/* Requests the named queries once. */
export function wantNamed(): void {
    if (isAsked) return;
    isAsked = true;
    api.queries<Query[]>()
        .then((found) => {
            named.value = found;
        })
        .catch(() => {
            /* Without them, the user writes the query. */
        });
}
