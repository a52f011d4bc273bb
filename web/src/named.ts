/* Finds what a row of the comparison of two traces is about, in one of them. */
import { api } from "./api";
import { shortName } from "./format";
import { FIRST, type Answer as Locks, showLock } from "./locks";
import { type Path, queryOf, showPath } from "./path";
import { filter, type Range, say, scroll, showAll, tab } from "./state";

function missing(what: string, name: string): null {
    say(`There is no ${what} ${name} in this trace.`);
    return null;
}

async function showNamedLock(name: string): Promise<Range | null> {
    const { locks, origin_ns } = await api.run<Locks>("locks", { limit: FIRST });
    const row = locks.find(({ identity }) => identity === name);
    if (row) tab.value = "locks";
    return (row && (await showLock(row, origin_ns))) || missing("wait for", name);
}

/* Shows the path of a task or region, without moving the window. */
async function showNamedPath(of: string, panel: "path" | "requests"): Promise<Range> {
    showPath(of, panel, "lanes");
    const { begin_ns, end_ns, origin_ns } = await api.run<Path>("why", queryOf(of));
    return { from: begin_ns - origin_ns, to: end_ns - origin_ns };
}

/* Shows the lock, task, region or start function of a row of differences: the longest, if several
 * have the name. Returns where it is; null: nowhere. */
export async function showNamed(of: string, name: string): Promise<Range | null> {
    if (of === "locks") return showNamedLock(name);
    if (of === "tasks") {
        const { tasks } = await api.run<{ tasks: { id: number }[] }>("tasks", { name, limit: 1 });
        return tasks[0] ? showNamedPath(`task=${tasks[0].id}`, "requests") : missing("task", name);
    }
    if (of === "regions")
        return showNamedPath(`region=${name}`, "path").catch(() => missing("region", name));
    if (of === "goroutines") {
        filter.value = shortName(name);
        scroll.value = 0;
    } else {
        tab.value = "summary";
        showAll();
    }
    return null;
}
