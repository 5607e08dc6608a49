import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Application } from '../../host/application.svelte';
import { BulkEdit } from './bulkEdit.svelte';
import type { Change, Input } from './calls';

const input = (id: string, ...labels: { id: string; value: number }[]) =>
  ({ id, data: { concepts: labels } }) as unknown as Input; // no other member is read

test('undoing a labelling gives each picture its earlier label, and leaves pictures without a change', async () => {
  const writes: [string, readonly Change[]][] = [];
  const PATCH = async (_: string, { body }: { body: { action: string; inputs: readonly Change[] } }) => {
    writes.push([body.action, body.inputs]);
    return { inputs: body.inputs.map(({ id }) => ({ id, status: { code: id === 'failed' ? 30100 : 30200 } })) };
  };
  const work = new BulkEdit({ id: 'app', write: { PATCH } } as unknown as Application); // the job uses nothing else
  const town = (value: number) => ({ id: 'town', value });
  const inputs = [
    input('none'),
    input('absent', town(0)),
    input('present', { id: 'dog', value: 0 }, town(1)),
    input('failed'),
  ];
  for (const [index, one] of inputs.entries()) work.selection.toggle(index, one);
  assert.ok(!work.canUndoLabelling);
  await work.label('name', 'town', 1);
  assert.ok(work.canUndoLabelling);
  writes.length = 0;
  await work.undoLabelling('undo');
  assert.deepEqual(writes, [
    ['remove', [{ id: 'none', data: { concepts: [{ id: 'town' }] } }]],
    ['merge', [{ id: 'absent', data: { concepts: [town(0)] } }]],
  ]);
  assert.ok(!work.canUndoLabelling);
});
