// Reads the types of a module's exported functions from its binary, since WebAssembly.Module.exports omits them. Generates the forwarder, a
// module between a guest and its kernels. The kernels import the guest's memory, so they do not exist yet when the guest is instantiated.
// The guest therefore imports the forwarder's functions. Each of them calls a kernel through a table, without a detour through JavaScript.
//
//     guest ──import──▶ forwarder: call_indirect ──table──▶ kernels
//       └──────────────── memory ────────────────────────────┘

/** A function with its type. Types are encoded as in the binary: 0x7f i32, 0x7e i64, 0x7d f32, 0x7c f64. */
export interface Function {
  name: string;
  params: number[];
  results: number[];
}

type Type = Omit<Function, 'name'>;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

class Bytes {
  at = 0;
  readonly data: Uint8Array;
  constructor(data: Uint8Array) {
    this.data = data;
  }
  byte(): number {
    const b = this.data[this.at++];
    if (b === undefined) throw new WebAssembly.CompileError('the module ends early');
    return b;
  }
  uint(): number {
    let v = 0;
    for (let factor = 1; ; factor *= 128) {
      const b = this.byte();
      v += (b & 0x7f) * factor;
      if (b < 0x80) return v;
    }
  }
  take(n: number): Uint8Array {
    this.at += n;
    if (this.at > this.data.length) throw new WebAssembly.CompileError('the module ends early');
    return this.data.subarray(this.at - n, this.at);
  }
  name(): string {
    return decoder.decode(this.take(this.uint()));
  }
  list<T>(read: (s: Bytes) => T): T[] {
    return Array.from({ length: this.uint() }, () => read(this));
  }
}

/** Returns the functions that a module exports, in their order. It throws a CompileError if the module imports anything but memories. */
export function functionsOf(module: Uint8Array): Function[] {
  const all = new Bytes(module);
  if (decoder.decode(all.take(4)) !== '\0asm') throw new WebAssembly.CompileError('not a WebAssembly module');
  all.take(4);
  let types: Type[] = [];
  let functions: number[] = []; // index of each function's type in `types`
  while (all.at < module.length) {
    const id = all.byte();
    const section = new Bytes(all.take(all.uint()));
    if (id === 1) types = section.list(type);
    if (id === 2) section.list(checkImport);
    if (id === 3) functions = section.list((s) => s.uint());
    if (id === 7)
      return section.list(readExport).flatMap(({ name, kind, index }) => {
        const found = types[functions[index] ?? -1];
        return kind === 0 && found ? [{ name, ...found }] : [];
      });
  }
  return [];
}

function type(s: Bytes): Type {
  if (s.byte() !== 0x60) throw new WebAssembly.CompileError('a type that is no function');
  const list = () => [...s.take(s.uint())];
  return { params: list(), results: list() };
}

function checkImport(s: Bytes): void {
  const [module, name, kind] = [s.name(), s.name(), s.byte()];
  if (kind !== 2) throw new WebAssembly.CompileError(`${module}.${name} is imported and no memory`);
  const limits = s.byte();
  s.uint();
  if (limits & 1) s.uint();
}

function readExport(s: Bytes): { name: string; kind: number; index: number } {
  return { name: s.name(), kind: s.byte(), index: s.uint() };
}

function uint(v: number): number[] {
  const out = [];
  for (; v >= 128; v = Math.floor(v / 128)) out.push((v % 128) | 128);
  return [...out, v];
}

const vector = (items: number[][]) => [...uint(items.length), ...items.flat()];
const withSize = (body: number[]) => [...uint(body.length), ...body];
const encodeName = (text: string) => withSize([...encoder.encode(text)]);
const section = (id: number, items: number[][]) => [id, ...withSize(vector(items))];

/**
 * Returns a module that exports `table` and, for each function, a function with the same name and type. It calls the table's entry at the
 * index of the function in the list.
 */
export function forwarder(functions: Function[]): Uint8Array<ArrayBuffer> {
  const types = functions.map((f) => [0x60, ...withSize(f.params), ...withSize(f.results)]);
  const bodies = functions.map((f, i) => {
    const locals = f.params.flatMap((_, p) => [0x20, ...uint(p)]); // local.get p
    return withSize([0, ...locals, 0x41, ...encodeSigned(i), 0x11, ...uint(i), 0, 0x0b]); // i32.const i, call_indirect
  });
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, types),
    ...section(
      3,
      functions.map((_, i) => uint(i)),
    ),
    ...section(4, [[0x70, 1, ...uint(functions.length), ...uint(functions.length)]]),
    ...section(7, [[...encodeName('table'), 1, 0], ...functions.map((f, i) => [...encodeName(f.name), 0, ...uint(i)])]),
    ...section(10, bodies),
  ]);
}

function encodeSigned(v: number): number[] {
  const out = [];
  for (; v >= 64; v = Math.floor(v / 128)) out.push((v % 128) | 128);
  return [...out, v];
}
