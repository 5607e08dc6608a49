import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Fetch, v2 } from '../../api/client';
import { general } from '../../host/calls';
import { Calls } from './calls';
import { LookState } from './lookState.svelte';
import type { Picture } from './pictures';

const picture: Picture = { id: 'p', name: 'p', blob: new Blob(['x']), url: 'blob:p' };
const answer = (name: string) =>
  Response.json({ status: { code: 10000 }, outputs: [{ data: { concepts: [{ id: 'ai_1', name, value: 0.9 }] } }] });

/**
 * Returns a page state with a recogniser that is not open yet, and the calls that its server receives. use permits calls to the server, and
 * ready opens the recogniser.
 */
function loading() {
  let open = false;
  const sent: string[] = [];
  const device: Fetch = async () => {
    if (!open) throw new DOMException('the recogniser is not open', 'InvalidStateError');
    return answer('device');
  };
  const server: Fetch = async (path, init) => {
    sent.push(`${init?.method} ${path}`);
    return answer('server');
  };
  const look = new LookState(device);
  return {
    look,
    sent,
    use: () => {
      look.interimHost = { calls: new Calls(v2(server)), answeredBy: () => 'origin' };
    },
    ready: () => {
      open = true;
      look.interimHost = undefined;
    },
  };
}

test('no picture is sent to the server unless the person chose that', async () => {
  const { look, sent } = loading();
  await look.show(picture);
  assert.deepEqual([look.predictions, look.failure, sent], [undefined, undefined, []]);
});

test('the server answers until the recogniser has loaded', async () => {
  const { look, sent, use, ready } = loading();
  use();
  await look.show(picture);
  assert.deepEqual([look.predictions?.by, look.predictions?.concepts[0]?.name], ['origin', 'server']);
  look.hover('ai_1'); // hover must not request a heatmap, because that would send the picture again
  await look.selectModel('food');
  assert.equal(look.predictions?.by, 'origin');
  await look.selectModel('own'); // trained on the device, so no server has it
  assert.deepEqual([look.predictions, look.failure], [undefined, undefined]);
  ready();
  await look.selectModel('general');
  assert.deepEqual([look.predictions?.by, look.predictions?.concepts[0]?.name], ['device', 'device']);
  assert.deepEqual(sent, [
    `POST /v2/models/${general}/outputs`,
    'POST /v2/models/bd367be194cf45149e75f01d59f77ba7/outputs',
  ]);
});
