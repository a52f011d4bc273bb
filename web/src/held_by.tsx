/* The holder of the lock for which a span still waits when the trace ends, as the panel of locks has it. */
import type { Span } from "./api";
import { laneOf, lanes, laneTitle } from "./lanes";
import { FIRST, type Answer as Locks } from "./locks";
import { jump, useRun } from "./run";

export function HeldBy(props: { of: Span }) {
    const { of } = props;
    const locks = useRun<Locks>("locks", () => ({ limit: FIRST }), "whole").value.value?.locks;
    const lock = locks?.find((row) => row.wait_kind === of.wait_kind && row.object === of.object);
    const lane = lock?.holder === undefined ? null : laneOf(lock.holder, of.begin);
    const holder = lane === null ? undefined : lanes.value.get(lane);
    if (!holder) return null;
    return (
        <>
            <dt>Held by</dt>
            <dd>
                <button
                    type="button"
                    class="textlink"
                    onClick={() => jump(holder.id, of.begin, of.end)}
                >
                    {laneTitle("goroutine", holder)}
                </button>
            </dd>
        </>
    );
}
