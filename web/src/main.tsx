/* Starts the page: asks the server how far it has read, and keeps asking. */
import { batch } from "@preact/signals";
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import { ApiError, api } from "./api";
import { App } from "./app";
import { keepColors } from "./colors";
import { offerFrame } from "./framed";
import { listen } from "./keys";
import { keepLanes, keepTasks } from "./lanes";
import { keepNotes } from "./notes";
import { keepMark, keepSpan } from "./select";
import { follow, fromFragment, keepFragment, offline, status, view, whole } from "./state";
import { frameTimes } from "./timeline";
import { keepWaits } from "./waits";
import { acceptDrops } from "./wasm/open";

/* Until somebody moves, the window is all that there is. */
let untouched = !fromFragment();

function take(now: NonNullable<typeof status.value>): void {
    const before = status.peek();
    const window = view.peek();
    batch(() => {
        status.value = now;
        offline.value = "";
        if (untouched && before && (window.from !== 0 || window.to !== before.end))
            untouched = window.to === 0;
        if (untouched && now.end > 0) view.value = whole.value;
        else if (follow.peek() && before && now.end > before.end) {
            const length = window.to - window.from;
            view.value = { from: now.end - length, to: now.end };
        }
    });
    if (now.done) untouched = false;
}

function failed(error: unknown): void {
    const isToken = error instanceof ApiError && error.status === 403;
    offline.value = isToken
        ? "The server wants the whole address that trail view printed, with its token."
        : "The server does not answer: has trail view ended? What is on the screen stays.";
}

/*
 * Often while the trace is being read; then so that the server knows that somebody is there. Whether it has SQL it may
 * know a moment later.
 */
async function poll(afterwards = 0): Promise<void> {
    let wait = 200;
    let more = 0;
    try {
        const now = await api.status();
        take(now);
        if (now.done) {
            wait = afterwards < 5 ? 1000 : 20000;
            more = afterwards + 1;
        }
    } catch (error) {
        failed(error);
        wait = 3000;
    }
    setTimeout(() => void poll(more), wait);
}

keepColors();
keepFragment();
keepLanes();
keepTasks();
keepWaits();
keepSpan();
keepMark();
keepNotes();
listen();
acceptDrops();
offerFrame();
render(<App />, document.body);
void poll();
Object.assign(globalThis, { trailFrameTimes: frameTimes });
