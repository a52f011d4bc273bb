/*
 * The lanes of one kind as columns of numbers: a million lanes are a few arrays, not millions of
 * objects. Indexed by lane number: the server lists them in that order, from 0.
 */
import type { LaneRows } from "./api";
import { each, type Work } from "./slices";
import { sorted } from "./sorted";

/* The columns of the server's answer, in order. `name` is an index into the names; as `parent`, -1
 * means none; as `first_wait`, that the lane never waits. */
const columnNames = [
    "lane",
    "id",
    "name",
    "begin",
    "end",
    "open",
    "spans",
    "runnable",
    "running",
    "waiting",
    "syscall",
    "blocked",
    "parent",
    "first_wait",
] as const;
export type Columns = Record<(typeof columnNames)[number], Float64Array>;

export interface Lane {
    lane: number;
    id: number;
    name: string;
    begin: number;
    end: number;
}

export class LaneTable {
    constructor(
        readonly count: number,
        readonly columns: Columns,
        /* All distinct, in order of their first lanes. */
        readonly names: readonly string[],
        /* The lanes by ID; those with the same ID by number. */
        private readonly byId: Uint32Array,
    ) {}

    get(lane: number): Lane | undefined {
        const { id, name, begin, end } = this.columns;
        if (!(lane >= 0 && lane < this.count)) return undefined;
        return {
            lane,
            id: id[lane],
            name: this.names[name[lane]],
            begin: begin[lane],
            end: end[lane],
        };
    }

    /* The lanes with that ID. */
    withId(id: number): Lane[] {
        const ids = this.columns.id;
        let low = 0;
        let high = this.byId.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (ids[this.byId[middle]] < id) low = middle + 1;
            else high = middle;
        }
        const found: Lane[] = [];
        for (; ids[this.byId[low]] === id; low++) found.push(this.get(this.byId[low]) as Lane);
        return found;
    }
}

function emptyColumns(count: number): Columns {
    const pairs = columnNames.map((name) => [name, new Float64Array(count)]);
    return Object.fromEntries(pairs) as Columns;
}

export const noLanes = new LaneTable(0, emptyColumns(0), [], new Uint32Array(0));

/* Collects answers of the server, page after page, in columns, for as many lanes as there were with
 * the first page. */
export class LaneReader {
    all = 0;
    count = 0;
    private columns = emptyColumns(0);
    private readonly names: string[] = [];
    private readonly numbers = new Map<string, number>();

    /* The number of a name; equal names have the same one. */
    private numberOf(name: string): number {
        const known = this.numbers.get(name);
        if (known !== undefined) return known;
        this.numbers.set(name, this.names.length);
        return this.names.push(name) - 1;
    }

    add({ all, rows, names }: LaneRows): void {
        if (this.count === 0) {
            this.all = all;
            this.columns = emptyColumns(all);
        }
        const numbers = names.map((name) => this.numberOf(name));
        for (const row of rows.slice(0, this.all - this.count)) {
            const at = this.count++;
            columnNames.forEach((column, i) => {
                this.columns[column][at] = row[i];
            });
            this.columns.name[at] = numbers[row[2]] ?? this.numberOf("");
        }
    }

    /* The lanes so far. */
    *table(): Work<LaneTable> {
        const { count, columns } = this;
        const byId = new Uint32Array(count);
        yield* each(count, (i) => {
            byId[i] = i;
        });
        const { id } = columns;
        const ordered = yield* sorted(byId, (a, b) => id[a] - id[b]);
        return new LaneTable(count, columns, this.names, ordered);
    }
}
