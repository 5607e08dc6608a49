import assert from 'node:assert/strict';
import { test } from 'node:test';
import { revoke } from './blobs';

test('a URL is revoked only after its element has begun to load it', async (t) => {
  const order: string[] = [];
  t.mock.method(URL, 'revokeObjectURL', (address: string) => order.push(`revoked ${address}`));
  queueMicrotask(() => order.push('loading')); // as an img element does when its address is set
  revoke('blob:1');
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(order, ['loading', 'revoked blob:1']);
});
