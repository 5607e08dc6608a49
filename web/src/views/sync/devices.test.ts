import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Fetch, v2 } from '../../api/client';
import { Failure } from '../../api/console';
import type { Application } from '../../host/application.svelte';
import { type Device, isThisBrowser, makerName, readDevices } from './devices';

const browser = '00112233445566778899aabbccddeeff';
const device = (more: Partial<Device>): Device => ({ kind: 'page', position: 0, head: 0, ...more });

/** Returns an application with an origin and a local host, which answer with their names, and the names of the asked ones. */
function appWith(more: { offline?: boolean; edgeStatus?: object; failure?: Failure }) {
  const asked: string[] = [];
  const host = (name: string, failure?: Failure): Fetch => {
    return async () => {
      asked.push(name);
      if (failure) throw failure;
      return Response.json({ status: { code: 10000 }, devices: [device({ name })] });
    };
  };
  const app = { offline: false, ...more, v2: v2(host('here')), remote: v2(host('origin', more.failure)) };
  return { app: app as unknown as Application, asked };
}

test('the origin lists the devices, and the local host while the origin is unreachable', async () => {
  for (const [more, want] of [
    [{}, ['origin']],
    [{ offline: true }, ['here']],
    [{ edgeStatus: {} }, ['here']],
    [{ failure: new Failure(0) }, ['origin', 'here']],
  ] as const) {
    const { app, asked } = appWith(more);
    const { devices } = await readDevices(app);
    assert.deepEqual([asked, devices[0]?.name], [want, want.at(-1)], JSON.stringify(more));
  }
  const { app, asked } = appWith({ failure: new Failure(403) });
  await assert.rejects(readDevices(app));
  assert.deepEqual(asked, ['origin'], 'a refusal is an answer');
});

test('a page finds itself in the list', () => {
  assert.ok(isThisBrowser(device({ id: browser }), browser));
  assert.ok(isThisBrowser(device({}), browser), 'the replica of the page lists itself');
  assert.ok(!isThisBrowser(device({ id: browser.replace('0', '1') }), browser));
  assert.ok(!isThisBrowser(device({ kind: 'folder', id: browser }), browser));
});

test('a change has the description of its key, or the name of the person', () => {
  const keys = new Map([['a1b2c3d4e5f60718', 'Camera at the pond']]);
  const name = (by?: string) => makerName({ state: 'queued', ...(by && { by }) }, keys, 'Ida');
  assert.deepEqual([name('a1b2c3d4e5f60718'), name('session'), name()], ['Camera at the pond', 'Ida', 'Ida']);
});
