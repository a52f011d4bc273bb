/* How long each goroutine waited, and for what, in columns like the lanes. */
import type { Order } from "./arrange";

/* The waits of a page of lanes: those of lane i are from begins[i] on, up to begins[i + 1]. */
interface Page {
    begins: Uint32Array;
    names: Uint32Array;
    ns: Float64Array;
}

export class WaitTable {
    /* All distinct, in the order in which they are found. */
    readonly names: string[] = [];
    private readonly numbers = new Map<string, number>();
    /* All pages except the last have as many lanes as the first. */
    private readonly pages: Page[] = [];
    count = 0;

    private numberOf(name: string): number {
        const known = this.numbers.get(name);
        if (known !== undefined) return known;
        this.numbers.set(name, this.names.length);
        return this.names.push(name) - 1;
    }

    /* Adds a page; a row has alternating numbers of names and ns. Several numbers may have the same
     * name. */
    add(rows: number[][], names: string[]): void {
        const length = rows.reduce((sum, row) => sum + row.length / 2, 0);
        const page = {
            begins: new Uint32Array(rows.length + 1),
            names: new Uint32Array(length),
            ns: new Float64Array(length),
        };
        let at = 0;
        rows.forEach((row, i) => {
            for (let k = 0; k + 1 < row.length; k += 2) {
                page.names[at] = this.numberOf(names[row[k]]);
                page.ns[at++] = row[k + 1];
            }
            page.begins[i + 1] = at;
        });
        this.pages.push(page);
        this.count += rows.length;
    }

    /* Calls `fn` with each number of a name and its ns. */
    private each(lane: number, fn: (name: number, ns: number) => void): void {
        if (lane >= this.count) return;
        const perPage = this.pages[0].begins.length - 1;
        const page = this.pages[Math.floor(lane / perPage)];
        const i = lane % perPage;
        for (let at = page.begins[i]; at < page.begins[i + 1]; at++)
            fn(page.names[at], page.ns[at]);
    }

    /* How long the lane waited for that. */
    time(lane: number, name: number): number {
        let sum = 0;
        this.each(lane, (of, ns) => {
            if (of === name) sum += ns;
        });
        return sum;
    }

    /* By the title of what a lane waited longest for. Lanes that never wait come last. */
    mostlyOrder(title: (name: string) => string): Order {
        const sums = new Float64Array(this.names.length);
        const key = (lane: number): number => {
            this.each(lane, (name, ns) => {
                sums[name] += ns;
            });
            let most = -1;
            this.each(lane, (name) => {
                if (sums[name] > (most < 0 ? 0 : sums[most])) most = name;
            });
            this.each(lane, (name) => {
                sums[name] = 0;
            });
            return most;
        };
        return { key, texts: this.names.map(title) };
    }
}
