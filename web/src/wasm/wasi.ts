/*
 * The part of WASI (preview 1) that the parser needs: one read-only file, which every path opens, and captured stdout
 * and stderr. The clock always returns 0 and the environment is empty.
 */

/* Bytes that can be read synchronously. */
export interface Bytes {
    readonly size: number;
    read(from: number, to: number): Uint8Array;
}

/* Thrown when the program calls exit. */
export class Exit extends Error {
    constructor(readonly code: number) {
        super(`exit ${code}`);
    }
}

const GOOD = 0;
const BAD_DESCRIPTOR = 8;
const INVALID = 28;
const IO = 29;
const NOT_SUPPORTED = 52;
const READ_ONLY = 69;

const RIGHT_TO_WRITE = 64n;

const DIRECTORY = 3;
const REGULAR = 4;

/* The descriptor of the folder "/", and the first descriptor of a file. */
const FOLDER = 3;
const FIRST = 4;

export class Wasi {
    /* stdout and stderr */
    readonly written: Uint8Array[][] = [[], []];
    private memory = new WebAssembly.Memory({ initial: 0 });
    /* Positions of the open descriptors of the file; undefined: closed. */
    private readonly places: (number | undefined)[] = [];

    constructor(
        private readonly file: Bytes,
        private readonly mostWritten: number,
    ) {}

    attach(memory: WebAssembly.Memory): void {
        this.memory = memory;
    }

    /* The imports of a module; functions that are not implemented return NOT_SUPPORTED. */
    imports(module: WebAssembly.Module): WebAssembly.Imports {
        const all: Record<string, (...values: never[]) => number> = {};
        const ours: Record<string, unknown> = this.functions;
        for (const { name } of WebAssembly.Module.imports(module))
            all[name] = (ours[name] as () => number) ?? (() => NOT_SUPPORTED);
        return { wasi_snapshot_preview1: all };
    }

    private get view(): DataView {
        return new DataView(this.memory.buffer);
    }

    private place(fd: number): number | undefined {
        return this.places[fd - FIRST];
    }

    /* The buffers listed in `count` entries of 8 bytes at `at`. */
    private *vectors(at: number, count: number): Generator<Uint8Array> {
        for (let i = 0; i < count; i++) {
            const begin = this.view.getUint32(at + 8 * i, true);
            const size = this.view.getUint32(at + 8 * i + 4, true);
            yield new Uint8Array(this.memory.buffer, begin, size);
        }
    }

    /* Reads at a position of the file. Returns -1 if the browser fails. */
    private readAt(place: number, vectors: number, count: number): number {
        let at = place;
        for (const part of this.vectors(vectors, count)) {
            const end = Math.min(at + part.length, this.file.size);
            if (at >= end) break;
            try {
                part.set(this.file.read(at, end));
            } catch {
                return -1;
            }
            at = end;
        }
        return at - place;
    }

    private putFileStatus(to: number): number {
        new Uint8Array(this.memory.buffer, to, 64).fill(0);
        this.view.setUint8(to + 16, REGULAR);
        this.view.setBigUint64(to + 32, BigInt(this.file.size), true);
        return GOOD;
    }

    private readonly functions = {
        environ_sizes_get: (count: number, size: number) => {
            this.view.setUint32(count, 0, true);
            this.view.setUint32(size, 0, true);
            return GOOD;
        },
        environ_get: () => GOOD,
        clock_time_get: (_clock: number, _precision: bigint, to: number) => {
            this.view.setBigUint64(to, 0n, true);
            return GOOD;
        },
        random_get: (at: number, size: number) => {
            crypto.getRandomValues(new Uint8Array(this.memory.buffer, at, size));
            return GOOD;
        },
        proc_exit: (code: number): number => {
            throw new Exit(code);
        },
        fd_prestat_get: (fd: number, to: number) => {
            if (fd !== FOLDER) return BAD_DESCRIPTOR;
            this.view.setUint32(to, 0, true);
            this.view.setUint32(to + 4, 1, true);
            return GOOD;
        },
        fd_prestat_dir_name: (fd: number, to: number, size: number) => {
            if (fd !== FOLDER || size < 1) return BAD_DESCRIPTOR;
            this.view.setUint8(to, "/".charCodeAt(0));
            return GOOD;
        },
        fd_fdstat_get: (fd: number, to: number) => {
            if (fd >= FIRST && this.place(fd) === undefined) return BAD_DESCRIPTOR;
            new Uint8Array(this.memory.buffer, to, 24).fill(0);
            this.view.setUint8(to, fd === FOLDER ? DIRECTORY : REGULAR);
            this.view.setBigUint64(to + 8, ~0n, true);
            this.view.setBigUint64(to + 16, ~0n, true);
            return GOOD;
        },
        fd_filestat_get: (fd: number, to: number) =>
            this.place(fd) === undefined ? BAD_DESCRIPTOR : this.putFileStatus(to),
        path_filestat_get: (
            _fd: number,
            _flags: number,
            _path: number,
            _size: number,
            to: number,
        ) => this.putFileStatus(to),
        path_open: (
            _folder: number,
            _lookup: number,
            _path: number,
            _size: number,
            _how: number,
            rights: bigint,
            _inherited: bigint,
            _flags: number,
            to: number,
        ) => {
            if (rights & RIGHT_TO_WRITE) return READ_ONLY;
            this.view.setUint32(to, FIRST + this.places.push(0) - 1, true);
            return GOOD;
        },
        fd_close: (fd: number) => {
            if (this.place(fd) === undefined) return BAD_DESCRIPTOR;
            this.places[fd - FIRST] = undefined;
            return GOOD;
        },
        fd_read: (fd: number, vectors: number, count: number, to: number) => {
            const place = this.place(fd);
            if (place === undefined) return BAD_DESCRIPTOR;
            const size = this.readAt(place, vectors, count);
            if (size < 0) return IO;
            this.places[fd - FIRST] = place + size;
            this.view.setUint32(to, size, true);
            return GOOD;
        },
        fd_pread: (fd: number, vectors: number, count: number, place: bigint, to: number) => {
            if (this.place(fd) === undefined) return BAD_DESCRIPTOR;
            const size = this.readAt(Number(place), vectors, count);
            if (size < 0) return IO;
            this.view.setUint32(to, size, true);
            return GOOD;
        },
        fd_seek: (fd: number, offset: bigint, whence: number, to: number) => {
            const place = this.place(fd);
            if (place === undefined) return BAD_DESCRIPTOR;
            const next = [0, place, this.file.size][whence] + Number(offset);
            if (!(next >= 0)) return INVALID;
            this.places[fd - FIRST] = next;
            this.view.setBigUint64(to, BigInt(next), true);
            return GOOD;
        },
        fd_tell: (fd: number, to: number) => {
            const place = this.place(fd);
            if (place === undefined) return BAD_DESCRIPTOR;
            this.view.setBigUint64(to, BigInt(place), true);
            return GOOD;
        },
        fd_write: (fd: number, vectors: number, count: number, to: number) => {
            const kept = this.written[fd - 1];
            if (!kept) return BAD_DESCRIPTOR;
            let size = 0;
            for (const part of this.vectors(vectors, count)) {
                kept.push(part.slice());
                size += part.length;
            }
            this.count += size;
            if (this.count > this.mostWritten) throw new TooLong();
            this.view.setUint32(to, size, true);
            return GOOD;
        },
    };

    private count = 0;
}

/* Thrown when the program writes more than the limit. */
export class TooLong extends Error {}

export function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
    let at = 0;
    for (const part of parts) {
        all.set(part, at);
        at += part.length;
    }
    return all;
}
