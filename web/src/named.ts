/* Finds what a row of the comparison of two traces is about, in one of them. */
import { api } from "./api";
import { shortName } from "./format";
import { FIRST, type Answer as Locks, showLock } from "./locks";
import { showPath } from "./path";
import { filter, say, scroll, tab } from "./state";

const missing = (what: string, name: string) => say(`There is no ${what} ${name} in this trace.`);

/* Shows the lock, task, region or start function of a row of differences: the longest, if several
 * have the name. */
export async function showNamed(of: string, name: string): Promise<void> {
    if (of === "locks") {
        const { locks, origin_ns } = await api.run<Locks>("locks", { limit: FIRST });
        const row = locks.find(({ identity }) => identity === name);
        if (!row) return missing("wait for", name);
        tab.value = "locks";
        showLock(row, origin_ns);
    } else if (of === "tasks") {
        const { tasks } = await api.run<{ tasks: { id: number }[] }>("tasks", { name, limit: 1 });
        if (!tasks[0]) return missing("task", name);
        showPath(`task=${tasks[0].id}`, "requests");
    } else if (of === "regions") {
        showPath(`region=${name}`);
    } else if (of === "goroutines") {
        filter.value = shortName(name);
        scroll.value = 0;
    } else {
        tab.value = "summary";
    }
}
