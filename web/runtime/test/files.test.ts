import assert from 'node:assert/strict';
import test from 'node:test';
import { PrivateFiles, storeCodes } from '../src/files.ts';

/** Opens files whose handles give these results, in turn, for each read or write. */
async function open(...results: number[]): Promise<PrivateFiles> {
  const next = () => results.shift() ?? 0;
  const handle = { read: next, write: next, getSize: () => 10, truncate: () => {}, flush: () => {}, close: () => {} };
  const file = { createSyncAccessHandle: async () => handle };
  const folder = { getDirectoryHandle: async () => folder, getFileHandle: async () => file };
  const navigator = { storage: { getDirectory: async () => folder } };
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: navigator });
  return PrivateFiles.open('store');
}

// In a private window, Chromium's handles return an error code as an unsigned number: 4294967288 if the quota is exceeded.
for (const code of [0, -1, 4294967288, 4294967291, 4])
  test(`the result ${code} of a read or write of the last 3 bytes is an error`, async () => {
    const bytes = new Uint8Array(5);
    const [first, second] = [await open(2, code), await open(2, code)];
    assert.throws(() => first.write(0, 0, bytes), { code: storeCodes.full });
    assert.throws(() => second.read(0, 0, bytes), { code: storeCodes.failed });
  });

test('reads and writes that take several calls succeed', async () => {
  const files = await open(2, 3, 5, 4, 1);
  files.write(0, 0, new Uint8Array(5));
  files.read(0, 0, new Uint8Array(5));
  files.write(0, 5, new Uint8Array(5));
});
