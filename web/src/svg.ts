/*
 * A canvas context that writes SVG in place of pixels: as much of it as the timeline uses. Clips
 * are applied to each element; nested elements are clipped by all.
 */
import { font, light } from "./colors";

function escapeXml(text: string): string {
    return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

function short(value: number): string {
    return String(Math.round(value * 100) / 100);
}

/* "600 12px system-ui, sans-serif" as attributes: pages forbid styles in elements. */
function fontOf(font: string): string {
    const [, weight, size, family] = /^(\d+ )?([\d.]+)px (.*)$/.exec(font) ?? [];
    const bold = weight ? ` font-weight="${weight.trim()}"` : "";
    return ` font-size="${size}"${bold} font-family="${escapeXml(family ?? "sans-serif")}"`;
}

interface Pen {
    fillStyle: string;
    strokeStyle: string;
    lineWidth: number;
    font: string;
    dash: string;
    clip: string;
}

const first: Pen = {
    fillStyle: light.text,
    strokeStyle: light.text,
    lineWidth: 1,
    font: font("t-11"),
    dash: "",
    clip: "",
};

export class SvgContext {
    readonly parts: string[] = [];
    textBaseline = "alphabetic";
    imageSmoothingEnabled = false;
    private pen = { ...first };
    private readonly saved: Pen[] = [];
    private path = "";
    private clips = 0;
    /* Measures texts and reads colours. */
    private readonly canvas = new OffscreenCanvas(1, 1).getContext(
        "2d",
    ) as OffscreenCanvasRenderingContext2D;

    /* Everything drawn from now on is moved down by `top`. */
    begin(top: number): void {
        this.pen = { ...first };
        this.parts.push(`<g transform="translate(0 ${short(top)})">`);
    }
    end(): void {
        this.parts.push("</g>");
    }

    get fillStyle(): string {
        return this.pen.fillStyle;
    }
    set fillStyle(color: string) {
        this.pen.fillStyle = color;
    }
    set strokeStyle(color: string) {
        this.pen.strokeStyle = color;
    }
    set lineWidth(width: number) {
        this.pen.lineWidth = width;
    }
    set font(font: string) {
        this.pen.font = font;
    }
    setLineDash(lengths: number[]): void {
        this.pen.dash = lengths.length ? ` stroke-dasharray="${lengths.map(short).join(" ")}"` : "";
    }
    save(): void {
        this.saved.push({ ...this.pen });
    }
    restore(): void {
        this.pen = this.saved.pop() ?? this.pen;
    }
    measureText(text: string): TextMetrics {
        this.canvas.font = this.pen.font;
        return this.canvas.measureText(text);
    }

    /* As an attribute that every reader of SVG understands; the opacity is a separate one. */
    private paint(name: "fill" | "stroke", color: string): string {
        this.canvas.fillStyle = color;
        const [, red, green, blue, alpha] =
            /^rgba\((\d+), (\d+), (\d+), ([\d.]+)\)$/.exec(String(this.canvas.fillStyle)) ?? [];
        return alpha
            ? ` ${name}="rgb(${red},${green},${blue})" ${name}-opacity="${alpha}"`
            : ` ${name}="${this.canvas.fillStyle}"`;
    }
    private stroked(): string {
        const { strokeStyle, lineWidth, dash } = this.pen;
        return ` fill="none"${this.paint("stroke", strokeStyle)} stroke-width="${lineWidth}"${dash}`;
    }
    private add(element: string, rest: string): void {
        this.parts.push(`<${element}${this.pen.clip}${rest}`);
    }

    fillRect(x: number, y: number, width: number, height: number): void {
        if (width === 0 || height === 0) return;
        const place =
            ` x="${short(Math.min(x, x + width))}" y="${short(Math.min(y, y + height))}"` +
            ` width="${short(Math.abs(width))}" height="${short(Math.abs(height))}"`;
        this.add("rect", `${place}${this.paint("fill", this.pen.fillStyle)}/>`);
    }
    strokeRect(x: number, y: number, width: number, height: number): void {
        this.beginPath();
        this.rect(x, y, width, height);
        this.stroke();
    }
    fillText(text: string, x: number, y: number, most = Number.POSITIVE_INFINITY): void {
        const isMiddle = this.textBaseline === "middle" ? ' dominant-baseline="central"' : "";
        const fit = this.measureText(text).width > most ? ` textLength="${short(most)}"` : "";
        const adjust = fit && ' lengthAdjust="spacingAndGlyphs"';
        this.add(
            "text",
            ` x="${short(x)}" y="${short(y)}"${isMiddle}${fit}${adjust}${fontOf(this.pen.font)}` +
                `${this.paint("fill", this.pen.fillStyle)}>${escapeXml(text)}</text>`,
        );
    }

    beginPath(): void {
        this.path = "";
    }
    moveTo(x: number, y: number): void {
        this.path += `M${short(x)} ${short(y)}`;
    }
    lineTo(x: number, y: number): void {
        this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`;
    }
    rect(x: number, y: number, width: number, height: number): void {
        this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
    }
    fill(): void {
        if (this.path)
            this.add("path", ` d="${this.path}"${this.paint("fill", this.pen.fillStyle)}/>`);
    }
    stroke(): void {
        if (this.path) this.add("path", ` d="${this.path}"${this.stroked()}/>`);
    }
    clip(): void {
        const id = `c${this.clips++}`;
        this.parts.push(
            `<clipPath id="${id}"${this.pen.clip}><path d="${this.path || "M0 0"}"/></clipPath>`,
        );
        this.pen.clip = ` clip-path="url(#${id})"`;
    }

    document(width: number, height: number, background: string): string {
        return (
            `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" height="${short(height)}">` +
            `<rect width="100%" height="100%"${this.paint("fill", background)}/>\n${this.parts.join("\n")}</svg>`
        );
    }
}
