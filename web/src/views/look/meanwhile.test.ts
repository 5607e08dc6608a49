import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ask } from '../../apiCall';
import { Bench } from './bench.svelte';
import { Calls, general } from './calls';
import type { Picture } from './pictures';

const shown: Picture = { id: 'p', name: 'p', blob: new Blob(['x']), base64: 'AA==', url: 'blob:p' };
const answer = (name: string) =>
  Response.json({ status: { code: 10000 }, outputs: [{ data: { concepts: [{ id: 'ai_1', name, value: 0.9 }] } }] });

/** A bench whose recogniser is not open yet, and the calls that its server gets. */
function loading() {
  let open = false;
  const sent: string[] = [];
  const device: Ask = async () => {
    if (!open) throw new DOMException('the recogniser is not open', 'InvalidStateError');
    return answer('device');
  };
  const server: Ask = async (path, init) => {
    sent.push(`${init?.method} ${path}`);
    return answer('server');
  };
  const bench = new Bench(device);
  return {
    bench,
    sent,
    use: () => {
      bench.meanwhile = { calls: new Calls(server), by: () => 'origin' };
    },
    ready: () => {
      open = true;
      bench.meanwhile = undefined;
    },
  };
}

test('without the choice no picture is sent before the recogniser is open', async () => {
  const { bench, sent } = loading();
  await bench.show(shown);
  assert.deepEqual([bench.seen, bench.failure, sent], [undefined, undefined, []]);
});

test('the server answers until the recogniser can', async () => {
  const { bench, sent, use, ready } = loading();
  use();
  await bench.show(shown);
  assert.deepEqual([bench.seen?.by, bench.seen?.concepts[0]?.name], ['origin', 'server']);
  bench.point('ai_1'); // its place would send the picture again
  await bench.choose('food');
  assert.equal(bench.seen?.by, 'origin');
  await bench.choose('own'); // trained here: no server has it
  assert.deepEqual([bench.seen, bench.failure], [undefined, undefined]);
  ready();
  await bench.choose('general');
  assert.deepEqual([bench.seen?.by, bench.seen?.concepts[0]?.name], ['device', 'device']);
  assert.deepEqual(sent, [
    `POST /v2/models/${general}/outputs`,
    'POST /v2/models/bd367be194cf45149e75f01d59f77ba7/outputs',
  ]);
});
