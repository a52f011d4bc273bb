/* Entry point of the page. Polls the server for the state of reading. */
import { batch } from "@preact/signals";
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import { keepKnown } from "./address";
import { ApiError, api } from "./api";
import { App } from "./app";
import { keepColors } from "./colors";
import { keepFinding } from "./culprit";
import { offerFrame } from "./framed";
import { keepFragment } from "./history";
import { listen } from "./keys";
import { keepLanes, keepRows, keepTasks } from "./lanes";
import { keepMoving } from "./moving";
import { showNamed } from "./named";
import { keepNotes } from "./notes";
import { keepMark, keepSpan } from "./select";
import { beginAsShared } from "./share";
import { follow, fromFragment, offline, parameters, status, view, whole } from "./state";
import { frameTimes } from "./timeline";
import { keepWaits } from "./waits";
import { acceptDrops } from "./wasm/open";

beginAsShared();

/* Until the window is moved, it shows the whole trace as it grows. */
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
        ? "Open the complete address that trail view printed, including the token."
        : "No answer from the server. Is trail view still running?";
}

/*
 * Polls often while the trace is being read. Afterwards polls a few more times, because the server
 * may find out late whether it has SQL, and then rarely, so that the server knows that the page is
 * still open, and the page whether the file has changed.
 */
async function poll(afterwards = 0): Promise<void> {
    let wait = 200;
    let more = 0;
    try {
        const now = await api.status();
        take(now);
        if (now.done) {
            wait = afterwards < 5 ? 1000 : 5000;
            more = afterwards + 1;
        }
    } catch (error) {
        failed(error);
        wait = 3000;
    }
    setTimeout(() => void poll(more), wait);
}

keepColors();
keepKnown(parameters);
keepFragment();
keepMoving();
keepLanes();
keepRows();
keepTasks();
keepWaits();
keepSpan();
keepMark();
keepFinding();
keepNotes();
listen();
acceptDrops();
offerFrame(showNamed);
render(<App />, document.body);
void poll();
Object.assign(globalThis, { trailFrameTimes: frameTimes });
