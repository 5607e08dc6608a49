import assert from 'node:assert/strict';
import { test } from 'node:test';
import { own } from './calls';

const key = '0123456789abcdef0123456789abcdef';
const headers = (Authorization?: string): Record<string, string> => (Authorization ? { Authorization } : {});

test('a call goes only to this server', () => {
  for (const url of ['/v2/models', 'https://here.test/v2/models', 'v2/models']) {
    assert.equal(own({ url, headers: headers() }, 'https://here.test').url, url);
  }
  for (const url of [
    'https://there.test/v2/models',
    '//there.test/',
    'http://here.test/',
    'https://here.test:8080/',
    'data:,x',
  ]) {
    assert.throws(() => own({ url, headers: headers() }, 'https://here.test'), url);
  }
});

test('a call has no cookie', () => {
  assert.equal(
    own({ url: '/v2', headers: headers(), credentials: 'include' }, 'https://here.test').credentials,
    'omit',
  );
});

test('a key without a scheme becomes a credential', () => {
  const sentHeader = (authorization: string) =>
    own({ url: '/v2', headers: headers(authorization) }, 'https://here.test').headers.Authorization;
  assert.equal(sentHeader(key), `Key ${key}`);
  assert.equal(sentHeader(` ${key}\n`), `Key ${key}`);
  assert.equal(sentHeader(`Key ${key}`), `Key ${key}`);
  assert.equal(sentHeader('Bearer abc'), 'Bearer abc');
  assert.equal(sentHeader(key.slice(1)), key.slice(1));
  for (const empty of [' ', 'Key', 'Key ', 'Bearer '])
    assert.equal(sentHeader(empty), undefined, JSON.stringify(empty));
});
