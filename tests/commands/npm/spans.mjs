// Prints requests of OTLP as lines of JSON, decoded by OpenTelemetry's own code of its protocol buffers; then, in
// hexadecimal, an answer of which it is that 3 spans were rejected.
//
// usage: node spans.mjs FOLDER_OF_MODULES FILE...
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const [modules, ...files] = process.argv.slice(2)
const require = createRequire(`${modules}/x.js`)
const transformer = dirname(require.resolve('@opentelemetry/otlp-transformer/package.json'))
const root = require(join(transformer, 'build/src/generated/root.js'))
const { ExportTraceServiceRequest, ExportTraceServiceResponse } = root.opentelemetry.proto.collector.trace.v1

// IDs are hexadecimal in OTLP's JSON.
const plain = (key, value) => (/Id$/.test(key) ? Buffer.from(value, 'base64').toString('hex') : value)
for (const name of files) {
    const request = ExportTraceServiceRequest.decode(readFileSync(name))
    console.log(JSON.stringify(ExportTraceServiceRequest.toObject(request, { longs: String, bytes: String }), plain))
}
const partial = { partialSuccess: { rejectedSpans: 3, errorMessage: 'too old' } }
console.log(Buffer.from(ExportTraceServiceResponse.encode(ExportTraceServiceResponse.create(partial)).finish()).toString('hex'))
