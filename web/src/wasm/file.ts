/* Decompresses traces, and the embedded parts of the viewer, with the browser's decompressor. */

/* Bytes collected before they become a Blob, which the browser may keep on disk. */
const PART = 16 << 20;

/* Limit of the decompressed size, against decompression bombs. */
const MOST_BYTES = 2 ** 31;

async function formatOf(file: Blob): Promise<string | null> {
    const bytes = new Uint8Array(await file.slice(0, 4).arrayBuffer());
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) return "gzip";
    const isZstd = [0x28, 0xb5, 0x2f, 0xfd].every((byte, i) => bytes[i] === byte);
    return isZstd ? "zstd" : null;
}

function decompressor(format: string): DecompressionStream {
    try {
        return new DecompressionStream(format as CompressionFormat);
    } catch {
        throw new Error(`This browser cannot decompress ${format}: use ${format} -d first.`);
    }
}

export async function decompressed(file: Blob, format: string): Promise<Blob> {
    const reader = file.stream().pipeThrough(decompressor(format)).getReader();
    const parts: Blob[] = [];
    let some: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return new Blob([...parts, ...some]);
        some.push(value as Uint8Array<ArrayBuffer>);
        size += value.length;
        if (size > (parts.length + 1) * PART) {
            parts.push(new Blob(some));
            some = [];
        }
        if (size > MOST_BYTES) {
            await reader.cancel();
            throw new Error("The decompressed trace is larger than 2 GB.");
        }
    }
}

/* The trace, decompressed if necessary. */
export async function plain(file: Blob): Promise<Blob> {
    const format = await formatOf(file);
    if (!format) return file;
    try {
        return await decompressed(file, format);
    } catch (error) {
        if (error instanceof TypeError) throw new Error(`The ${format} data are damaged.`);
        throw error;
    }
}
