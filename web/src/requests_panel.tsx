/*
 * The panel of tasks and regions: how long those of one name took, and where the time of the
 * selected one went, next to the median of its name.
 */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Waiting } from "./panel";
import { type Answers, type Group, groupsOf, type Region, type Task } from "./requests";
import { byNumber, Chosen, GroupChoice, List, NoRequests } from "./requests_chosen";
import { MANY, ManyRequests } from "./requests_many";
import { useRun } from "./run";
import { end, status, why } from "./state";

function Groups(props: { answers: Answers }) {
    const { answers } = props;
    const groups = useMemo(() => groupsOf(answers), [answers]);
    const tasks = useMemo(() => byNumber(groups.flatMap(({ members }) => members)), [groups]);
    const wanted = useSignal("");
    const holds = (group: Group) => group.members.some((member) => member.why === why.value);
    const named = groups.find(({ key }) => key === wanted.value);
    const group = named ?? groups.find(holds) ?? groups[0];
    /* Without a choice the slowest: they are sorted. */
    const of = group?.members.find((member) => member.why === why.value) ?? group?.members[0];
    if (!group) return <NoRequests />;
    return (
        <div>
            <GroupChoice groups={groups} value={group.key} wanted={wanted} />
            <div class="requests">
                <List key={group.key} of={group} isTask={!!group.members[0]?.task} />
                {of && (
                    <Chosen key={of.why} of={of} group={group} answers={answers} tasks={tasks} />
                )}
            </div>
        </div>
    );
}

function WholeRequests() {
    const tasks = useRun<{ origin_ns: number; tasks: Task[] }>("tasks", () => ({}), "whole").value;
    const regions = useRun<{ regions: Region[] }>("regions", () => ({}), "whole").value;
    const answers = useMemo<Answers | null>(
        () =>
            tasks.value?.tasks && regions.value?.regions
                ? {
                      origin_ns: tasks.value.origin_ns,
                      tasks: tasks.value.tasks,
                      regions: regions.value.regions,
                      end: end.peek(),
                  }
                : null,
        [tasks.value, regions.value],
    );
    if (!answers) return <Waiting answer={tasks.state === "bad" ? tasks : regions} />;
    return <Groups answers={answers} />;
}

/* MARK: The panel */

export function RequestsPanel() {
    const bars = status.value?.bars;
    return (bars?.tasks ?? 0) + (bars?.regions ?? 0) > MANY ? <ManyRequests /> : <WholeRequests />;
}
