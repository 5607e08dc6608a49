import assert from 'node:assert/strict';
import test from 'node:test';
import { type Input, runCommand, withMemory } from '../src/command.ts';

const [i32, i64] = [0x7f, 0x7e];
const uint = (v: number): number[] => (v < 128 ? [v] : [(v % 128) | 128, ...uint(Math.floor(v / 128))]);
const encodeSigned = (v: number): number[] =>
  v < 64 ? [v & 0x7f] : [(v % 128) | 128, ...encodeSigned(Math.floor(v / 128))];
const vector = (items: number[][]) => [...uint(items.length), ...items.flat()];
const withSize = (body: number[]) => [...uint(body.length), ...body];
const encodeName = (text: string) => withSize([...new TextEncoder().encode(text)]);
const section = (id: number, items: number[][]) => [id, ...withSize(vector(items))];

/** A step of the program: either a call of a WASI function, whose result is stored at the address `to`, or bytes of code. */
type Step = [name: keyof typeof types, args: (number | bigint)[], to: number] | number[];

const types = {
  args_sizes_get: [i32, i32],
  args_get: [i32, i32],
  path_open: [i32, i32, i32, i32, i32, i64, i64, i32, i32],
  path_filestat_get: [i32, i32, i32, i32, i32],
  path_unlink_file: [i32, i32, i32],
  fd_read: [i32, i32, i32, i32],
  fd_pread: [i32, i32, i32, i64, i32],
  fd_seek: [i32, i64, i32, i32],
  fd_write: [i32, i32, i32, i32],
  proc_exit: [i32],
};
const names = Object.keys(types) as (keyof typeof types)[];

/** A program with these steps and with `data` in its memory. By default the memory has two pages and no maximum. */
function program(steps: Step[], data: [at: number, bytes: number[]][] = [], limits = [0, 2]): Uint8Array<ArrayBuffer> {
  const code = steps.flatMap((step) => {
    const [name, args, to] = step;
    if (typeof name === 'number') return step as number[];
    const push = (args as (number | bigint)[]).flatMap((a) =>
      typeof a === 'bigint' ? [0x42, ...encodeSigned(Number(a))] : [0x41, ...encodeSigned(a)],
    );
    const call = [...push, 0x10, names.indexOf(name as keyof typeof types)];
    return name === 'proc_exit' ? call : [0x41, ...encodeSigned(to as number), ...call, 0x36, 2, 0]; // i32.store
  });
  const imports = names.map((n, i) => [...encodeName('wasi_snapshot_preview1'), ...encodeName(n), 0, i]);
  const functions = names.map((n) => [0x60, ...withSize(types[n]), ...(n === 'proc_exit' ? [0] : [1, i32])]);
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [...functions, [0x60, 0, 0]]),
    ...section(2, imports),
    ...section(3, [uint(names.length)]),
    ...section(5, [limits]),
    ...section(7, [
      [...encodeName('memory'), 2, 0],
      [...encodeName('_start'), 0, ...uint(names.length)],
    ]),
    ...section(10, [withSize([0, ...code, 0x0b])]),
    ...section(
      11,
      data.map(([at, bytes]) => [0, 0x41, ...encodeSigned(at), 0x0b, ...withSize(bytes)]),
    ),
  ]);
}

const text = (s: string) => [...new TextEncoder().encode(s)];
const pair = (at: number, n: number) => [at & 255, at >> 8, 0, 0, n & 255, n >> 8, 0, 0]; // an iovec: address and length
const input: Input = {
  name: 'in',
  size: 10,
  read: (offset, p) => p.set(text('0123456789').slice(offset, offset + p.length)),
};

function run(steps: Step[], data?: [number, number[]][], out?: (p: Uint8Array) => boolean) {
  const written: number[] = [];
  const module = new WebAssembly.Module(program(steps, data));
  const ended = runCommand(module, ['name', 'ü'], input, (p) => out?.(p) ?? written.push(...p) > 0, 3 * 65536);
  return { ...ended, written };
}

const errors = 1024; // address of the steps' results
const dump: Step = ['fd_write', [1, 16, 1, 2000], 2004]; // writes the vector at 16

test('a program reads its file and its arguments, and writes', () => {
  const steps: Step[] = [
    ['path_open', [3, 0, 100, 2, 0, 0n, 0n, 0, 1100], errors],
    ['fd_read', [4, 24, 1, 1104], errors + 4], // four bytes to 1200
    ['fd_seek', [4, -3n, 2, 1112], errors + 8],
    ['fd_read', [4, 32, 1, 1108], errors + 12], // the rest to 1204
    ['fd_pread', [4, 24, 1, 2n, 1108], errors + 16],
    ['args_sizes_get', [1120, 1124], errors + 20],
    ['args_get', [1128, 1136], errors + 24],
    dump,
    ['proc_exit', [7], 0],
  ];
  const { code, isStopped, written } = run(steps, [
    [16, pair(1100, 120)],
    [24, pair(1200, 4)],
    [32, pair(1204, 50)],
    [100, text('in')],
  ]);
  const at = (address: number, n = 4) => written.slice(address - 1100, address - 1100 + n);
  assert.deepEqual([code, isStopped], [7, false]);
  assert.deepEqual([at(1100), at(1104), at(1112, 8)].flat(), [4, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(at(1200, 8), [...text('2345'), ...text('789'), 0]);
  assert.deepEqual([at(1120), at(1124)].flat(), [2, 0, 0, 0, 8, 0, 0, 0]);
  assert.deepEqual(at(1128, 8), [...[1136 & 255, 4, 0, 0], ...[1141 & 255, 4, 0, 0]]);
  assert.deepEqual(at(1136, 8), text('name\0ü\0'));
});

test('a program cannot open or change other files', () => {
  const { written } = run(
    [
      ['path_open', [3, 0, 100, 3, 0, 0n, 0n, 0, 1100], errors], // a file that does not exist
      ['path_open', [3, 0, 100, 2, 1, 0n, 0n, 0, 1100], errors + 4], // with the flag that creates the file
      ['path_open', [5, 0, 100, 2, 0, 0n, 0n, 0, 1100], errors + 8], // 5 is not the descriptor of a folder
      ['path_unlink_file', [3, 100, 2], errors + 12],
      ['path_filestat_get', [3, 0, 100, 3, 1104], errors + 16],
      ['fd_read', [4, 24, 1, 1104], errors + 20],
      ['fd_write', [3, 24, 1, 1104], errors + 24],
      dump,
    ],
    [
      [16, pair(errors, 28)],
      [24, pair(1200, 4)],
      [100, text('inn')],
    ],
  );
  const numbers = Array.from(new Uint32Array(new Uint8Array(written).buffer));
  assert.deepEqual(numbers, [44, 69, 8, 69, 44, 8, 8]);
});

test('a run ends when the reader of its output refuses it or throws', () => {
  const steps: Step[] = [dump, dump, ['proc_exit', [3], 0]];
  const data: [number, number[]][] = [[16, pair(100, 5)]];
  let pieces = 0;
  const ended = run(steps, data, () => ++pieces < 1);
  assert.deepEqual([ended.code, ended.isStopped, pieces], [0, true, 1]);
  assert.throws(
    () =>
      run(steps, data, () => {
        throw new RangeError('of the taker');
      }),
    new RangeError('of the taker'),
  );
});

test('a program that traps fails', () => {
  const { code, text } = run([[0x00]]); // unreachable
  assert.equal(code, 1);
  assert.match(text, /unreachable/);
});

test('a program that needs too much memory is stopped', () => {
  const grow: Step = [0x41, 1, 0x40, 0, 0x1a]; // grows the memory by a page and drops the result
  const data: [number, number[]][] = [[16, pair(100, 5)]];
  const withinLimit = run([grow, dump], data);
  assert.deepEqual([withinLimit.memory, withinLimit.written.length], [false, 5]);
  const beyondLimit = run([grow, grow, dump], data);
  assert.deepEqual([beyondLimit.memory, beyondLimit.written.length], [true, 0]);
  assert.equal(run([grow, grow]).memory, true, 'also without a call');
  const words = (code: number) =>
    run(
      [
        ['fd_write', [2, 16, 1, 2000], 2004],
        ['proc_exit', [code], 0],
      ],
      [
        [16, pair(100, 13)],
        [100, text('Out of memory')],
      ],
    ).memory;
  assert.deepEqual([words(0), words(1)], [false, true]);
});

test('the memory of a program has a maximum', async () => {
  const grow: Step = [0x41, 0, 0x41, 1, 0x40, 0, 0x36, 2, 0]; // grows the memory by a page and stores the result
  const growResult = (program: Uint8Array<ArrayBuffer>) => {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(program), {
      wasi_snapshot_preview1: Object.fromEntries(names.map((n) => [n, () => 0])),
    });
    (exports._start as () => void)();
    return new DataView((exports.memory as WebAssembly.Memory).buffer).getInt32(0, true);
  };
  assert.equal(growResult(program([grow])), 2);
  assert.equal(growResult(withMemory(program([grow]), 2 * 65536)), -1);
  assert.equal(growResult(withMemory(program([grow]), 200 * 65536)), 2);
  assert.equal(growResult(withMemory(program([grow], [], [1, 2, 2]), 200 * 65536)), -1, 'its own maximum stays');
  assert.throws(() => withMemory(program([grow]), 65536), WebAssembly.CompileError);
});
