// Prints the rows of Parquet files as lines of JSON, each after the name of its file, read by hyparquet.
//
// usage: node rows.mjs FOLDER_OF_MODULES FILE...
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [modules, ...files] = process.argv.slice(2)
const load = (name) => import(pathToFileURL(createRequire(`${modules}/x.js`).resolve(name)))
const { parquetReadObjects } = await load('hyparquet')
const { compressors } = await load('hyparquet-compressors')

const decoder = new TextDecoder()
const plain = (value) => {
    if (typeof value === 'bigint') return String(value)
    if (value instanceof Uint8Array) return decoder.decode(value)
    return value
}

for (const name of files) {
    const bytes = readFileSync(name)
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)
    console.log(JSON.stringify(name))
    for (const row of await parquetReadObjects({ file, compressors }))
        console.log(JSON.stringify(Object.fromEntries(Object.entries(row).map(([key, value]) => [key, plain(value)]))))
}
