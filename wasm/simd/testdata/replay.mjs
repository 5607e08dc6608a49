// Does what node_test.go recorded once more, and compares: node replay.mjs FOLDER
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.argv[2]
const module = new WebAssembly.Module(readFileSync(join(folder, 'kernels.wasm')))
const bits = new DataView(new ArrayBuffer(8))

// value is an argument as JavaScript passes it; a float's bits that are not a number may not survive.
function value(type, text) {
  if (type === 'I') return BigInt.asIntN(64, BigInt(text))
  if (type === 'i') return Number(text) | 0
  bits.setUint32(0, Number(text))
  return bits.getFloat32(0)
}

// unsigned is a result as the recording has it.
function unsigned(want, got) {
  if (got === undefined) return '0'
  if (typeof got === 'bigint') return BigInt.asUintN(64, got).toString()
  if (Number.isInteger(got) && String(got >>> 0) === want) return want
  bits.setFloat32(0, got)
  return String(bits.getUint32(0))
}

let memory, kernels
for (const op of JSON.parse(readFileSync(join(folder, 'operations.json'), 'utf8'))) {
  if (op.pages) {
    memory = new WebAssembly.Memory({ initial: op.pages })
    kernels = new WebAssembly.Instance(module, { env: { memory } }).exports
  } else if (op.bytes) {
    new Uint8Array(memory.buffer).set(Buffer.from(op.bytes, 'base64'), op.at)
  } else if (op.call) {
    const got = kernels[op.call](...op.args.map((text, i) => value(op.types[i], text)))
    if (Number.isNaN(got)) continue
    assert.equal(unsigned(op.result, got), op.result, op.call)
  } else {
    const sum = createHash('sha256').update(new Uint8Array(memory.buffer)).digest('hex')
    assert.equal(sum, op.sum, 'memory')
  }
}
