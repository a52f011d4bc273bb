/* The head of the page: file, facts, search and commands; below it, damage to the trace. */
import { api } from "./api";
import { bytes, count, duration, eventsText } from "./format";
import { isFramed } from "./framed";
import { Logo, Theme } from "./icons";
import { isEmpty, isNoTrace } from "./nothing";
import { SearchBox } from "./palette";
import { ShareMenu } from "./share";
import { follow, help, offline, say, status, theme } from "./state";
import { OpenButton } from "./wasm/open";
import { term } from "./words";

function Facts() {
    const now = status.value;
    if (!now) return <span class="faint">opening …</span>;
    if (isNoTrace()) return null;
    /* A recording of a C program has Go's format, but is not from Go. */
    const version = now.version && now.made_by === "Go" ? `Go 1.${now.version} format` : "";
    const more = [
        version,
        eventsText(now.events),
        `${count(now.goroutines)} ${term(now.goroutines === 1 ? "task" : "tasks")}`,
    ]
        .filter(Boolean)
        .map((text) => ` · ${text}`)
        .join("");
    return (
        <span class="faint facts" title={duration(now.end) + more}>
            {duration(now.end)}
            <span class="optional">{more}</span>
        </span>
    );
}

function Progress() {
    const now = status.value;
    if (!now || now.done) return null;
    const known = now.size_bytes > 0;
    // Events can be ordered once all of their generation, about a second, has arrived.
    const held = now.live ? Math.max(0, (now.received_bytes ?? 0) - now.read_bytes) : 0;
    const share = known ? Math.min(1, now.read_bytes / now.size_bytes) : undefined;
    const text =
        `${now.live ? "arriving" : "reading"}: ${bytes(now.read_bytes + held)}` +
        (known ? ` of ${bytes(now.size_bytes)}` : "") +
        (held > 0 ? `, ${bytes(held)} of them of a generation that has not ended` : "");
    return (
        <div class="progress">
            <progress value={share} max={1} aria-label="Reading the trace" />
            <span class="faint" title={text}>
                {text}
            </span>
            {now.live && (
                <button
                    type="button"
                    aria-pressed={follow.value}
                    onClick={() => {
                        follow.value = !follow.value;
                    }}
                >
                    {follow.value ? "Pause" : "Follow"}
                </button>
            )}
        </div>
    );
}

export function Head() {
    const next = { auto: "light", light: "dark", dark: "auto" } as const;
    return (
        <header>
            <span class="logo">
                <Logo /> <span class="optional">trail</span>
            </span>
            <h1 title={status.value?.title}>
                <bdi>{status.value?.title.split("/").pop() ?? ""}</bdi>
            </h1>
            <Facts />
            <Progress />
            <SearchBox />
            <OpenButton />
            {status.value && !isNoTrace() && <ShareMenu />}
            <button
                type="button"
                class="quiet icon optional"
                aria-label={`Colours: ${theme.value}`}
                title={`Colours: ${theme.value}`}
                onClick={() => {
                    theme.value = next[theme.value];
                }}
            >
                <Theme />
            </button>
            <button
                type="button"
                class="quiet icon optional"
                aria-label="Help"
                onClick={() => {
                    help.value = true;
                }}
            >
                ?
            </button>
        </header>
    );
}

/* The view belongs to the old file: lanes have other numbers in the new one. */
async function readAnew(): Promise<void> {
    try {
        await api.again();
        const shown = isFramed ? parent : window;
        shown.history.replaceState(null, "", shown.location.href.replace(/#.*/, ""));
        shown.location.reload();
    } catch (error) {
        say((error as Error).message);
    }
}

function Changed() {
    return (
        <div class="banner" role="alert">
            <span>
                <b>The file has changed since it was read.</b> What is shown is of the file as it
                was.
            </span>
            <button type="button" onClick={() => void readAnew()}>
                Read it anew
            </button>
        </div>
    );
}

export function Banner() {
    const now = status.value;
    if (offline.value)
        return (
            <div class="banner" role="alert">
                {offline.value}
            </div>
        );
    if (now?.changed) return <Changed />;
    if (now?.error && !isNoTrace())
        return (
            <div class="banner" role="alert" title={now.error}>
                <span>
                    {isEmpty() ? (
                        <b>The trace is damaged: nothing of it can be shown.</b>
                    ) : (
                        <>
                            <b>The trace is damaged: {duration(now.end)} of it are shown.</b> Sums
                            and shares are of the recovered part; <code>trail check</code> shows
                            where it is damaged.
                        </>
                    )}
                </span>
            </div>
        );
    return null;
}
