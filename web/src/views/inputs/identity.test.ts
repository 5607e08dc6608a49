import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { newId } from './identity';

test('a picture without an ID of a list has the same ID as at the import command', async () => {
  const cases: { path?: string; url?: string; id: string }[] = JSON.parse(
    await readFile('../origin/server/collection/testdata/ids.json', 'utf8'),
  );
  for (const { path, url, id } of cases)
    assert.equal(await newId({ name: '', ...(path !== undefined ? { file: path } : { url }) }, ''), id, path ?? url);
});

test('a picture without a path and a URL has the first half of its SHA-256 as its ID', async () => {
  assert.equal(await newId({ name: 'image.png' }, '0123456789abcdef'.repeat(4)), '0123456789abcdef'.repeat(2));
});
