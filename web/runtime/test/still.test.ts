import assert from 'node:assert/strict';
import test from 'node:test';
import { putResult } from '../src/envelope.gen.ts';
import { Reader, Writer } from '../src/envelope.ts';
import { codes, encodeJob, failures, type Result, type Run } from '../src/messages.ts';
import { analysePicture, type ModuleNeed, missingModule } from '../src/still.ts';

const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const emptyFunction = [1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 5, 3, 1, 0, 0];
/** A program that exports memory and an empty function with this name. */
const program = (name: string) =>
  new WebAssembly.Module(
    new Uint8Array([
      ...header,
      ...emptyFunction,
      ...[7, 13 + name.length, 2, 6, ...Buffer.from('memory'), 2, 0, name.length, ...Buffer.from(name), 0, 0],
      ...[10, 4, 1, 2, 0, 0x0b],
    ]),
  );
const command = program('_start'); // writes nothing
const reactor = program('main'); // lacks malloc

const encode = (r: Result) => putResult(Writer.envelope(), r).finish();
const job = encodeJob({ want: 1 }, new Uint8Array([7]));
const done: Result = { analysis: new Uint8Array([1]) };

/** Analyses a picture whose decoding needs the runs of each round. It returns the result and the fields that each call of the guest got. */
async function analyse(rounds: Run[][], modules: (need: ModuleNeed) => WebAssembly.Module | Result) {
  const requests: { outputs: number[]; failure: number }[] = [];
  const guest = {
    call(_: string, request: Uint8Array) {
      const seen = { outputs: [] as number[], failure: 0 };
      for (const r = Reader.envelope(request); r.next(); ) {
        if (r.number === 11) seen.outputs.push(r.raw().length);
        if (r.number === 12) seen.failure = r.uint();
      }
      const runs = rounds[requests.push(seen) - 1];
      const failed = seen.failure && { error: codes.corrupt };
      return encode(failed || (runs ? { decoding: { runs, memory: 1 << 20, time: 30_000 } } : done));
    },
  };
  const needs: ModuleNeed[] = [];
  let [clock, decoded] = [0, 0];
  const result = await analysePicture(guest as Parameters<typeof analysePicture>[0], job, {
    async module(need) {
      needs.push(need);
      return modules(need);
    },
    onDecoded: () => decoded++,
    now: () => (clock += 10_000),
  });
  return { result, requests, needs, decoded };
}

test('the guest gets the outputs of all runs in order, and each run gets the remaining time', async () => {
  const run = (name: string): Run => ({ module: name, bytes: 0 });
  const { result, requests, needs, decoded } = await analyse([[run('a'), run('b')], [run('c')]], () => command);
  assert.deepEqual(result, encode(done));
  assert.deepEqual(
    requests.map((r) => r.outputs),
    [[], [0, 0], [0, 0, 0]],
  );
  assert.deepEqual(
    needs.map((n) => [n.name, n.left, n.time]),
    [
      ['a', 30_000, 30_000],
      ['b', 20_000, 30_000],
      ['c', 30_000, 30_000],
    ],
  );
  assert.equal(decoded, 2);
});

test('a run that fails or writes too little is a failure', async () => {
  for (const [module, bytes] of [
    [command, 1],
    [reactor, 0],
  ] as const) {
    const { result, requests } = await analyse([[{ module: 'a', bytes }]], () => module);
    assert.deepEqual(result, encode({ error: codes.corrupt }));
    assert.deepEqual(requests.at(-1), { outputs: [], failure: failures.decode });
  }
});

test('without its decoding module, a picture fails with the name of the module', async () => {
  const missing = missingModule('jpegxl.wasm', false);
  const { result, requests } = await analyse([[{ module: 'jpegxl.wasm', bytes: 0 }]], () => missing);
  assert.deepEqual(result, missing);
  assert.match(missing.text ?? '', /jpegxl\.wasm/);
  assert.equal(requests.length, 1);
});
