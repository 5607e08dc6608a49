import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportApp, Failure } from './console';

/** Answers each request and records the requests and the downloads. */
function rig(answer: () => Response) {
  const calls: string[] = [];
  const link = { href: '', download: '-', click: () => void calls.push(`download ${link.href}`) };
  Object.assign(globalThis, {
    fetch: async (path: string, init: RequestInit) => {
      calls.push(`${init.method} ${path}`);
      return answer();
    },
    document: { createElement: () => link },
  });
  return calls;
}

test('an export that the server allows is downloaded', async () => {
  const calls = rig(() => Response.json({ status: { code: 10000 } }));
  await exportApp('a b');
  assert.deepEqual(calls, ['GET /console/apps/a%20b/export-status', 'download /console/apps/a%20b/export']);
});

test('while an export is running, the page gets the reason and downloads nothing', async () => {
  const status = { code: 11005, description: 'Too Many Requests', reason: 'export' };
  const calls = rig(() => Response.json({ status }, { status: 429, headers: { 'Retry-After': '10' } }));
  const failure = await exportApp('a').catch((f) => f);
  assert.ok(failure instanceof Failure);
  assert.deepEqual([failure.status, failure.reason, failure.retryAfter], [429, 'export', 10]);
  assert.deepEqual(calls, ['GET /console/apps/a/export-status']);
});
