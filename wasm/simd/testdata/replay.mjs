// Repeats the operations that a test has recorded, and compares every result and the complete memory.

const bits = new DataView(new ArrayBuffer(8));

// value returns a recorded argument as a JavaScript value. The bits of a float that is NaN can change.
function value(type, text) {
  if (type === 'I') return BigInt.asIntN(64, BigInt(text));
  if (type === 'i') return Number(text) | 0;
  bits.setUint32(0, Number(text));
  return bits.getFloat32(0);
}

// unsigned returns a result in the format of the recording.
function unsigned(want, got) {
  if (got === undefined) return '0';
  if (typeof got === 'bigint') return BigInt.asUintN(64, got).toString();
  if (Number.isInteger(got) && String(got >>> 0) === want) return want;
  bits.setFloat32(0, got);
  return String(bits.getUint32(0));
}

async function sha256(data) {
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
  return Array.from(sum, (b) => b.toString(16).padStart(2, '0')).join('');
}

function equal(got, want, label) {
  if (got !== want) throw new Error(`${label}: ${got}, want ${want}`);
}

/** Repeats operations with a module of kernels, and returns the number of calls. */
export async function replay(bytes, operations) {
  const module = await WebAssembly.compile(bytes);
  let memory, kernels;
  let calls = 0;
  for (const op of operations) {
    if (op.pages) {
      memory = new WebAssembly.Memory({ initial: op.pages });
      kernels = (await WebAssembly.instantiate(module, { env: { memory } })).exports;
    } else if (op.bytes) {
      const data = Uint8Array.from(atob(op.bytes), (c) => c.charCodeAt(0));
      new Uint8Array(memory.buffer).set(data, op.at);
    } else if (op.call) {
      calls++;
      const got = kernels[op.call](...op.args.map((text, i) => value(op.types[i], text)));
      if (!Number.isNaN(got)) equal(unsigned(op.result, got), op.result, op.call);
    } else {
      equal(await sha256(memory.buffer), op.sum, 'memory');
    }
  }
  return calls;
}
