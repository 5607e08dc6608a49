// Runs the module in a page with host functions of a Go test. Each call of an import is a question to the test. This worker
// waits for the answer. It gets its next command in the same way.
import { compile, Guest } from '/runtime/guest.js';

/**
 * The ranges of the guest's memory that an import reads (r) and writes (w), and the bits of its result. A range is a pair of
 * parameter indexes, of the address and the length, or a number of bytes as a string and the index of the address.
 */
const imports = {
  now: { answer: 64 },
  random: { w: [[0, 1]] },
  log: { r: [[1, 2]] },
  bundle: { r: [[0, 1]], w: [[2, 3]], answer: 64 },
  older: {
    r: [
      ['32', 0],
      [1, 2],
    ],
    w: [[3, 4]],
    answer: 64,
  },
  kv_get: { r: [[1, 2]], w: [[3, 4]], answer: 64 },
  kv_scan: {
    r: [
      [1, 2],
      [3, 4],
    ],
    answer: 64,
  },
  kv_next: { w: [[1, 2]], answer: 64 },
  kv_end: {},
  kv_snapshot: { answer: 32 },
  kv_release: {},
  kv_apply: { r: [[0, 1]], answer: 32 },
  kv_commit: { r: [[0, 1]], answer: 32 },
  kv_room: { answer: 32 },
  kv_compact: {
    r: [
      [0, 1],
      [2, 3],
    ],
    answer: 32,
  },
  picture_add: {
    r: [
      [0, 1],
      [2, 3],
    ],
    w: [['48', 5]],
    answer: 32,
  },
  picture_release: { r: [['32', 0]], answer: 32 },
  picture_drop: { r: [['32', 0]], answer: 32 },
  picture_lookup: { r: [['16', 0]], w: [[1, 2]], answer: 64 },
  token_issue: { r: [[0, 1]], w: [[2, 3]], answer: 64 },
  token_read: { r: [[0, 1]], w: [[2, 3]], answer: 64 },
  count: { w: [[0, 1]], answer: 64 },
};

/** The memory into which wire.js writes an answer: 1 when it has come, its length, and its bytes from offset 8. */
const shared = new SharedArrayBuffer(1 << 26);
const state = new Int32Array(shared, 0, 2);
const wire = new Worker('/wire.js');
const opened = new Promise((resolve) => {
  wire.onmessage = resolve;
});
wire.postMessage(shared);
await opened;

/** Sends a message to the test and waits for its answer. A message is the length of the JSON (u32), the JSON of `request`, and bytes. */
function exchange(request, bytes = new Uint8Array()) {
  const head = new TextEncoder().encode(JSON.stringify(request));
  const message = new Uint8Array(4 + head.length + bytes.length);
  new DataView(message.buffer).setUint32(0, head.length, true);
  message.set(head, 4);
  message.set(bytes, 4 + head.length);
  Atomics.store(state, 0, 0);
  wire.postMessage(message.buffer, [message.buffer]);
  while (Atomics.load(state, 0) === 0) Atomics.wait(state, 0, 0); // the last answer's wake-up may come only now
  const answer = new Uint8Array(shared, 8, state[1]).slice();
  const rest = 4 + new DataView(answer.buffer).getUint32(0, true);
  return { message: JSON.parse(new TextDecoder().decode(answer.subarray(4, rest))), bytes: answer.subarray(rest) };
}

function range([a, b], args) {
  return typeof a === 'string' ? { at: args[b] >>> 0, n: Number(a) } : { at: args[a] >>> 0, n: args[b] >>> 0 };
}

/** The bundles' files that the test has sent, by name. All guests get the same files. */
const files = new Map();

/** Returns an import `bundle` that asks the test for each file only once. */
const bundleOnce = (ask, memory) => (name, length, dst, room) => {
  const key = new TextDecoder().decode(memory().slice(name >>> 0, (name >>> 0) + (length >>> 0)));
  const file = files.get(key);
  if (file && file.length <= room >>> 0) memory().set(file, dst >>> 0);
  if (file) return BigInt(file.length);
  const n = ask(name, length, dst, room);
  if (n >= 0n && n <= BigInt(room >>> 0)) files.set(key, memory().slice(dst >>> 0, (dst >>> 0) + Number(n)));
  return n;
};

function hostFunctions(id, memory) {
  const functions = {};
  for (const [name, { r = [], w = [], answer }] of Object.entries(imports))
    functions[name] = (...args) => {
      const read = r.map((one) => range(one, args)).filter(({ n }) => n !== 0xffff_ffff); // this length means: to the end of the store
      const written = w.map((one) => range(one, args));
      const sent = new Uint8Array(read.reduce((n, one) => n + one.n, 0));
      let at = 0;
      for (const one of read) {
        sent.set(memory().subarray(one.at, one.at + one.n), at);
        at += one.n;
      }
      const request = { id, import: name, args: args.map((v) => BigInt.asUintN(64, BigInt(v)).toString()), read, written };
      const { message, bytes } = exchange(request, sent);
      at = 0;
      for (const one of written) {
        memory().set(bytes.subarray(at, at + one.n), one.at);
        at += one.n;
      }
      if (answer === 64) return BigInt.asIntN(64, BigInt(message.answer));
      return answer === 32 ? Number(BigInt.asIntN(32, BigInt(message.answer))) : undefined;
    };
  functions.bundle = bundleOnce(functions.bundle, memory);
  return functions;
}

const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
const modules = await compile(await bytes('/guest.wasm'), await bytes('/kernels.wasm'));
const services = { now: () => 0n, random: () => {}, log: () => {}, bundle: () => undefined };
const guests = new Map();

/** Executes a command of the test and returns the bytes of the result. */
async function act({ message: { id, make, call, drop }, bytes }) {
  if (drop) guests.delete(id);
  if (make) guests.set(id, await Guest.start(modules, { ...services, others: (memory) => hostFunctions(id, memory) }));
  if (call) return guests.get(id).call(call, bytes);
  return new Uint8Array();
}

let next = exchange({ ready: true });
for (;;) {
  try {
    next = exchange({ done: true }, await act(next));
  } catch (failure) {
    next = exchange({ failed: String(failure?.stack ?? failure) });
  }
}
