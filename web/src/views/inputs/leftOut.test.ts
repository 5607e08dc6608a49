import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { kindOf, reasonFor, table } from './leftOut';
import { unzip, ZipError } from './zip';
import { type Entry, zipOf } from './zip.testkit';

interface Golden {
  table: typeof table;
  paths: [path: string, reason: string][];
  files: { name: string; hex: string; kind: string }[];
  names: (Pick<Entry, 'hex' | 'flags' | 'unicode' | 'wrong' | 'mode'> & {
    made_by: number;
    want: string;
    error: string;
  })[];
}

// The import command writes and checks the same file.
const golden: Golden = JSON.parse(await readFile('../origin/server/collection/testdata/leftout.json', 'utf8'));
const bytesOf = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));

test('the import of the pages leaves out the same files as the import command', () => {
  assert.deepEqual(table, golden.table);
  for (const [path, reason] of golden.paths) assert.equal(reasonFor(path) ?? '', reason, path);
});

test('the first bytes of a file give the same kind as in the import command', () => {
  for (const { name, hex, kind } of golden.files) assert.equal(kindOf(bytesOf(hex)) ?? '', kind, name);
});

test('the names in a zip are the same as in the import command', async () => {
  assert.ok(golden.names.length > 15);
  for (const { want, error, made_by, ...entry } of golden.names) {
    const files = await unzip(zipOf([{ ...entry, madeBy: made_by, text: 'picture' }]));
    assert.deepEqual(
      files.map(({ name }) => name),
      want ? [want] : [],
    );
    for (const file of files) {
      if (error) await assert.rejects(file.bytes(100), ZipError);
      else assert.equal(Buffer.from(await file.bytes(100)).toString(), 'picture');
    }
  }
});
