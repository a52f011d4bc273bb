/*
 * The rows of the timeline: the positions of an arrangement's lanes and of the rows of their
 * groups. Rows are objects only while they are examined.
 */
import type { Arrangement, Groups } from "./arrange";
import type { Lane } from "./lane_table";
import { each, type Work } from "./slices";

interface Place {
    top: number;
    height: number;
}
export type LaneRow = Place & { type: "lane"; lane: Lane; first: boolean; open: boolean };
/* `lanes`: the group's members. */
export type GroupRow = Place & {
    type: "group";
    name: string;
    lanes: Uint32Array;
    folded: boolean;
};
export type Row = GroupRow | LaneRow;

const GROUP_HEIGHT = 24;
/* A folded group shows what its lanes do. */
const FOLDED_HEIGHT = 38;

export interface Looks {
    laneHeight: number;
    /* Height added to an unfolded lane. */
    openHeight: number;
    unfolded: ReadonlySet<number>;
    folded: ReadonlySet<string>;
}

export class Layout {
    /* Number of rows. */
    count = 0;
    /* For each row, the lane, or for a group's row -1 - the group. */
    private readonly what: Int32Array;
    /* The top of each row, and the end of the last one. */
    private readonly tops: Float64Array;
    /* By lane; 0: no row, else its row + 1. */
    private readonly rowOf: Uint32Array;

    constructor(
        readonly of: Arrangement,
        private readonly looks: Looks,
    ) {
        const most = of.order.length + (of.groups?.names.length ?? 0);
        this.what = new Int32Array(most);
        this.tops = new Float64Array(most + 1);
        this.rowOf = new Uint32Array(of.table.count);
    }

    private add(what: number, height: number): void {
        this.what[this.count] = what;
        this.tops[this.count + 1] = this.tops[this.count] + height;
        this.count++;
    }

    private hasRow({ begins, hidesSingle }: Groups, group: number): boolean {
        return !hidesSingle || begins[group + 1] - begins[group] > 1;
    }

    /* Adds the group's row, if it has one. Returns whether its lanes are hidden. */
    private addGroup(groups: Groups, group: number): boolean {
        if (!this.hasRow(groups, group)) return false;
        const isFolded = this.looks.folded.has(groups.names[group]);
        this.add(-1 - group, isFolded ? FOLDED_HEIGHT : GROUP_HEIGHT);
        return isFolded;
    }

    *fill(): Work<Layout> {
        const { order, groups } = this.of;
        const { laneHeight, openHeight, unfolded } = this.looks;
        let group = 0;
        let isHidden = false;
        yield* each(order.length, (place) => {
            if (groups && groups.begins[group] === place) isHidden = this.addGroup(groups, group++);
            if (isHidden) return;
            const lane = order[place];
            this.add(lane, laneHeight + (unfolded.has(lane) ? openHeight : 0));
            this.rowOf[lane] = this.count;
        });
        return this;
    }

    get height(): number {
        return this.tops[this.count];
    }

    row(number: number): Row {
        const { table, order, pins, groups } = this.of;
        const what = this.what[number];
        const top = this.tops[number];
        const place = { top, height: this.tops[number + 1] - top };
        if (what >= 0) {
            const open = this.looks.unfolded.has(what);
            const lane = table.get(what) as Lane;
            return { type: "lane", lane, first: number < pins, open, ...place };
        }
        const { names, begins } = groups as Groups;
        const group = -1 - what;
        const name = names[group];
        const lanes = order.subarray(begins[group], begins[group + 1]);
        return { type: "group", name, lanes, folded: this.looks.folded.has(name), ...place };
    }

    /* The row of a lane, if it is visible. */
    ofLane(lane: number): LaneRow | undefined {
        const number = this.rowOf[lane];
        return number ? (this.row(number - 1) as LaneRow) : undefined;
    }

    /* The number of the first row that ends below `top`. */
    private firstBelow(top: number): number {
        let low = 0;
        let high = this.count;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.tops[middle + 1] <= top) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    /* The rows from `top` on. */
    *from(top: number): Generator<Row> {
        for (let i = this.firstBelow(top); i < this.count; i++) yield this.row(i);
    }

    /* The rows in a vertical section. */
    between(top: number, bottom: number): Row[] {
        const rows: Row[] = [];
        for (let i = this.firstBelow(top); i < this.count && this.tops[i] < bottom; i++)
            rows.push(this.row(i));
        return rows;
    }

    /* The first lane from a row on, down (1) or up (-1). */
    private laneFrom(row: number, step: 1 | -1): number | undefined {
        for (let i = row; i >= 0 && i < this.count; i += step)
            if (this.what[i] >= 0) return this.what[i];
        return undefined;
    }

    /* The first visible lane. */
    first(): number | undefined {
        return this.laneFrom(0, 1);
    }

    /* The visible lane below (1) or above (-1) another one; below one that is not visible, the first. */
    beside(lane: number, step: 1 | -1): number | undefined {
        const row = (this.rowOf[lane] ?? 0) - 1;
        return this.laneFrom(row + step, step);
    }

    /* The groups that have a row. */
    groupNames(): string[] {
        const { groups } = this.of;
        return groups?.names.filter((_, group) => this.hasRow(groups, group)) ?? [];
    }
}
