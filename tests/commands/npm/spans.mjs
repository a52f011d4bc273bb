// Prints requests of OTLP as lines of JSON, decoded by OpenTelemetry's own code of its protocol buffers; then, in
// hexadecimal, an answer of which it is that 3 spans were rejected.
//
// usage: node spans.mjs FOLDER_OF_MODULES trace|metrics FILE...
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const [modules, signal, ...files] = process.argv.slice(2)
const require = createRequire(`${modules}/x.js`)
const transformer = dirname(require.resolve('@opentelemetry/otlp-transformer/package.json'))
const root = require(join(transformer, 'build/src/generated/root.js'))
const collector = root.opentelemetry.proto.collector[signal].v1
const name = `Export${signal === 'trace' ? 'Trace' : 'Metrics'}Service`
const Request = collector[`${name}Request`]
const Response = collector[`${name}Response`]

// IDs are hexadecimal in OTLP's JSON.
const plain = (key, value) => (/Id$/.test(key) ? Buffer.from(value, 'base64').toString('hex') : value)
for (const file of files) {
    const request = Request.decode(readFileSync(file))
    console.log(JSON.stringify(Request.toObject(request, { longs: String, bytes: String }), plain))
}
const rejected = signal === 'trace' ? { rejectedSpans: 3 } : { rejectedDataPoints: 3 }
const partial = { partialSuccess: { ...rejected, errorMessage: 'too old' } }
console.log(Buffer.from(Response.encode(Response.create(partial)).finish()).toString('hex'))
