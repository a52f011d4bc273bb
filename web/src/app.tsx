/* The page: head, findings, timeline, and the panels below it. */
import type { MarkFacts, MarkKind } from "./api";
import { headHeight, MAP_HEIGHT } from "./draw_head";
import { duration, shortName } from "./format";
import { Banner, Head } from "./head";
import { IdleLanes } from "./idle_lanes";
import { shownKeys } from "./keys";
import { laneTitle, layout } from "./lanes";
import { ContextMenu } from "./menu";
import { Empty, isEmpty, isNoTrace, NoTrace } from "./nothing";
import { Overview } from "./overview";
import { Inspector, Panels } from "./panels";
import { timeText } from "./ruler";
import { markWord } from "./select";
import { spanWords } from "./span_words";
import {
    help,
    isPhone,
    isWide,
    mark,
    markFacts,
    message,
    range,
    selected,
    span,
    status,
    tab,
} from "./state";
import { Timeline } from "./timeline";
import { Toolbar } from "./toolbar";
import { SourceBanner } from "./wasm/open";
import { inWords } from "./words";

function Help() {
    const shown = shownKeys();
    const groups = [...new Set(shown.map((key) => key.group))];
    return (
        // biome-ignore lint/a11y/noStaticElementInteractions: a click beside the box closes it, as Escape does
        // biome-ignore lint/a11y/useKeyWithClickEvents: Escape
        <div
            class="veil"
            onClick={(event) => {
                if (event.target === event.currentTarget) help.value = false;
            }}
        >
            <div class="help" role="dialog" aria-label="Keys">
                <h2>Keys</h2>
                <div class="columns">
                    {groups.map((name) => (
                        <section key={name}>
                            <h3>{name}</h3>
                            <dl>
                                {shown
                                    .filter((key) => key.group === name)
                                    .map((key) => (
                                        <div key={key.shown}>
                                            <dt>
                                                <kbd>{key.shown}</kbd>
                                            </dt>
                                            <dd>{inWords(key.text)}</dd>
                                        </div>
                                    ))}
                            </dl>
                        </section>
                    ))}
                    <section>
                        <h3>Mouse</h3>
                        <dl>
                            <div>
                                <dt>Drag</dt>
                                <dd>moves the timeline</dd>
                            </div>
                            <div>
                                <dt>Wheel</dt>
                                <dd>
                                    up and down; with Shift to the sides; with Ctrl, or two fingers,
                                    zooms
                                </dd>
                            </div>
                            <div>
                                <dt>Drag over the ruler</dt>
                                <dd>selects a range of all lanes</dd>
                            </div>
                            <div>
                                <dt>Shift drag</dt>
                                <dd>over lanes: selects a range of these lanes</dd>
                            </div>
                            <div>
                                <dt>Ctrl drag</dt>
                                <dd>zooms to the box</dd>
                            </div>
                            <div>
                                <dt>Right click</dt>
                                <dd>shows the commands for what is there</dd>
                            </div>
                            <div>
                                <dt>Double click</dt>
                                <dd>zooms to the span</dd>
                            </div>
                        </dl>
                    </section>
                </div>
                <div class="foot">
                    <button
                        type="button"
                        onClick={() => {
                            help.value = false;
                        }}
                    >
                        Close (Esc)
                    </button>
                </div>
            </div>
        </div>
    );
}

/* Number of frames in the text for screen readers; the panel shows all of them. */
const SPOKEN = 12;

function spokenMark(of: MarkKind, facts: MarkFacts): string {
    const whose = facts.goroutine ? ` of ${laneTitle("goroutine", facts.goroutine)}` : "";
    const frames = facts.stack.slice(0, SPOKEN).map((frame) => shortName(frame.function) || "?");
    const more = facts.stack.length - frames.length;
    return (
        `${markWord(of)}${whose} at ${timeText(facts.at, 1)}${facts.text && `, ${facts.text}`}: ` +
        (frames.length ? `in ${frames.join(", called by ")}` : "no stack is known") +
        (more > 0 ? `, and ${more} more` : "")
    );
}

/* The selection as text for screen readers, which cannot read the canvases. */
function Mirror() {
    const now = span.value;
    const place = selected.value;
    const text =
        mark.value && markFacts.value
            ? spokenMark(mark.value.kind, markFacts.value)
            : now && place
              ? `${laneTitle(place.kind, now)}: ${spanWords(now, ", ", "")}, ` +
                `${duration(now.end - now.begin)}, span ${now.span + 1} of ${now.spans}` +
                (now.waker ? `, woken by ${laneTitle("goroutine", now.waker)}` : "")
              : range.value
                ? `selected ${duration(range.value.to - range.value.from)}`
                : "";
    return (
        <div class="hidden" aria-live="polite">
            {message.value || text}
        </div>
    );
}

/* Over the timeline if that is shown, else in the flow of the page: it covers no controls. */
function Message() {
    return message.value ? <div class="message">{message.value}</div> : null;
}

/* Whether a phone has room for the selection below the lanes. */
function hasRoomBelow(): boolean {
    return isPhone() && tab.value === null && layout.value.height < innerHeight / 3;
}

/* The height that the lanes have, if the selection has what is left below them; 0: all there is. */
function heightOfLanes(): number {
    return hasRoomBelow() ? MAP_HEIGHT + headHeight() + layout.value.height : 0;
}

export function App() {
    const hasLanes = !isNoTrace() && !isEmpty() && !(isPhone() && tab.value);
    const height = heightOfLanes();
    const live = status.value?.live && !status.value.done && status.value.events === 0;
    return (
        <>
            <Head />
            <SourceBanner />
            <Banner />
            {!hasLanes && <Message />}
            {isNoTrace() ? (
                <NoTrace />
            ) : (
                <main>
                    <Overview />
                    {isEmpty() ? (
                        <Empty />
                    ) : (
                        <>
                            <Toolbar />
                            <div class="middle">
                                <div class="column" style={height ? "flex: none" : ""}>
                                    <Timeline height={height}>{hasLanes && <Message />}</Timeline>
                                    <IdleLanes />
                                </div>
                                {(isWide.value || hasRoomBelow()) && <Inspector />}
                            </div>
                        </>
                    )}
                    {live && <p class="wait">Waiting for the first events …</p>}
                    <Panels />
                    <ContextMenu />
                </main>
            )}
            <Mirror />
            {help.value && <Help />}
        </>
    );
}
