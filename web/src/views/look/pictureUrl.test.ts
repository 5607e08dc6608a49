import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameOfUrl } from './pictureUrl';

test('a picture at a URL is named by the last part of its path', () => {
  const names: [string, string | undefined][] = [
    ['https://example.com/a/sea%20view.jpg?size=2', 'sea view.jpg'],
    [' http://example.com/a/ ', 'a'],
    ['https://example.com', 'example.com'],
    ['https://example.com/50%.jpg', '50%.jpg'], // not a valid escape
    ['ftp://example.com/a.jpg', undefined],
    ['a.jpg', undefined],
  ];
  for (const [url, want] of names) assert.equal(nameOfUrl(url), want, url);
});
