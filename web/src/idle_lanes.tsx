/* The lanes that are left out: those with nothing in the window, and the runtime's. One line below
 * the timeline. */
import { count } from "./format";
import { hiddenLanes } from "./lanes";
import { kindWord } from "./panel";
import { RuntimeSwitch } from "./runtime";
import { kind, showsIdle, showsRuntime } from "./state";

export function IdleLanes() {
    const { idle, runtime } = hiddenLanes.value;
    const has = idle > 0 || runtime > 0 || showsIdle.value || showsRuntime.value;
    if (!has || kind.value !== "goroutine") return null;
    const one = (many: number) => `${count(many)} ${kindWord(kind.value, many !== 1)}`;
    return (
        <p class="idle-lanes">
            {(idle > 0 || showsIdle.value) && (
                <span>
                    {showsIdle.value
                        ? "Lanes with nothing in the window are shown."
                        : `${one(idle)} ${idle === 1 ? "does" : "do"} nothing here.`}{" "}
                    <button
                        type="button"
                        class="textlink"
                        onClick={() => {
                            showsIdle.value = !showsIdle.value;
                        }}
                    >
                        {showsIdle.value ? "Fold them" : "Show them"}
                    </button>
                </span>
            )}
            {(runtime > 0 || showsRuntime.value) && <RuntimeSwitch what={one(runtime)} />}
        </p>
    );
}
