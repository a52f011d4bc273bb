/*
 * What a report can do where scripts run: sort its tables, zoom its flame graphs and search them. All
 * that it shows is in the document without it.
 */
"use strict";

document.documentElement.classList.add("live");

/* MARK: Tables */

function cellValue(row, column) {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
}

function compare(a, b) {
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function sortTable(table, head) {
    const column = head.cellIndex;
    const body = table.tBodies[0];
    const down = head.getAttribute("aria-sort") !== "descending" &&
        (head.getAttribute("aria-sort") === "ascending" || head.classList.contains("n"));
    for (const other of table.tHead.rows[0].cells)
        other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = Array.from(body.rows);
    rows.sort((a, b) => compare(cellValue(a, column), cellValue(b, column)) * (down ? -1 : 1));
    body.append(...rows);
}

for (const table of document.querySelectorAll("table")) {
    for (const head of table.tHead.querySelectorAll("th")) {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...head.childNodes);
        button.addEventListener("click", () => sortTable(table, head));
        head.append(button);
    }
}

/* MARK: Flame graphs */

function nameOf(frame) {
    const title = frame.firstElementChild.textContent;
    return title.slice(0, title.lastIndexOf(": "));
}

/* A frame with its place in shares of the whole. */
function readFrame(element) {
    const share = (name) => parseFloat(element.getAttribute(name)) / 100;
    return {
        element,
        x: share("x"),
        width: share("width"),
        depth: Number(element.dataset.d),
        name: nameOf(element),
    };
}

/* As html_drawn_begin writes it: the style sheet shortens what has no room. */
function drawnText(svg, name) {
    const text = document.createElementNS(svg, "foreignObject");
    const box = document.createElement("div");
    const span = document.createElement("span");
    text.setAttribute("width", "100%");
    text.setAttribute("height", "100%");
    span.textContent = name;
    box.append(span);
    text.append(box);
    return text;
}

function place(frame, x, width) {
    const element = frame.element;
    element.setAttribute("x", 100 * x + "%");
    element.setAttribute("width", 100 * width + "%");
    if (!element.querySelector("span") && width > 0.015)
        element.append(drawnText(element.namespaceURI, frame.name));
}

/* The frame becomes as wide as the page, and with it what is above it; what is beside it goes. */
function zoom(frames, to) {
    const tiny = 1e-6;
    for (const frame of frames) {
        const above = frame.depth < to.depth && frame.x <= to.x + tiny &&
            frame.x + frame.width >= to.x + to.width - tiny;
        const inside = frame.depth >= to.depth && frame.x >= to.x - tiny &&
            frame.x + frame.width <= to.x + to.width + tiny;
        frame.element.setAttribute("visibility", above || inside ? "visible" : "hidden");
        frame.element.setAttribute("display", above || inside ? "inline" : "none");
        frame.element.classList.toggle("past", above);
        if (above)
            place(frame, 0, 1);
        else if (inside)
            place(frame, (frame.x - to.x) / to.width, frame.width / to.width);
    }
}

/* How much of the whole the frames have that were found; what is inside another counts once. */
function search(frames, word) {
    const wanted = word.toLowerCase();
    const hits = frames.filter((frame) => {
        const hit = wanted !== "" && frame.name.toLowerCase().includes(wanted);
        frame.element.classList.toggle("hit", hit);
        return hit;
    });
    hits.sort((a, b) => a.x - b.x || a.depth - b.depth);
    let sum = 0;
    let end = -1;
    for (const hit of hits) {
        if (hit.x + hit.width <= end + 1e-9)
            continue;
        sum += hit.width;
        end = hit.x + hit.width;
    }
    return { count: hits.length, share: sum };
}

/* The next frame in the direction of an arrow key. */
function neighbour(frames, from, key) {
    const beside = frames.filter((frame) => frame.depth === from.depth);
    const at = beside.indexOf(from);
    switch (key) {
    case "ArrowUp":
        return frames.find((frame) => frame.depth === from.depth - 1 && frame.x <= from.x + 1e-6 &&
            frame.x + frame.width >= from.x + from.width - 1e-6);
    case "ArrowDown":
        return frames.find((frame) => frame.depth === from.depth + 1 && frame.x >= from.x - 1e-6 &&
            frame.x < from.x + from.width);
    case "ArrowLeft":
        return beside[at - 1];
    case "ArrowRight":
        return beside[at + 1];
    default:
        return undefined;
    }
}

function focusFrame(frames, frame) {
    for (const other of frames)
        other.element.setAttribute("tabindex", other === frame ? "0" : "-1");
    frame.element.focus();
}

function makeTools(figure, frames) {
    const tools = document.createElement("div");
    const label = document.createElement("label");
    const input = document.createElement("input");
    const reset = document.createElement("button");
    const found = document.createElement("output");
    tools.className = "tools";
    input.type = "search";
    label.append("Search ", input);
    reset.type = "button";
    reset.textContent = "Show all";
    reset.addEventListener("click", () => zoom(frames, frames[0]));
    input.addEventListener("input", () => {
        const hits = search(frames, input.value);
        found.textContent = input.value === "" ? "" :
            hits.count + " frames, " + (100 * hits.share).toFixed(1) + " % of all";
    });
    tools.append(label, found, reset, "Click a frame to zoom; arrow keys move, Enter zooms.");
    figure.insertBefore(tools, figure.querySelector(".flames"));
}

for (const figure of document.querySelectorAll(".flame")) {
    const frames = Array.from(figure.querySelectorAll(".flames > svg"), readFrame);
    makeTools(figure, frames);
    for (const frame of frames) {
        frame.element.setAttribute("tabindex", frame === frames[0] ? "0" : "-1");
        frame.element.setAttribute("role", "button");
        frame.element.setAttribute("aria-label", frame.element.firstElementChild.textContent);
        frame.element.addEventListener("click", () => zoom(frames, frame));
        frame.element.addEventListener("keydown", (event) => {
            const next = neighbour(frames, frame, event.key);
            if (event.key === "Enter" || event.key === " ")
                zoom(frames, frame);
            else if (next)
                focusFrame(frames, next);
            if (next || event.key === "Enter" || event.key === " ")
                event.preventDefault();
        });
    }
}
