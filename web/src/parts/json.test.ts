import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, nest, parse, parseOrQuote, pretty } from './json';

test('values keep their original text', () => {
  const json = parse(
    ' {"n": 12345678901234567890, "f":1.0,"s":"a\\"b\\\\", "l":[1e2 , null,{"x":{}}], "é":"\\u00e9"} ',
  );
  assert.equal(at(json, 'n')?.raw, '12345678901234567890');
  assert.equal(at(json, 'f')?.raw, '1.0');
  assert.equal(at(json, 's')?.raw, '"a\\"b\\\\"');
  assert.deepEqual(
    at(json, 'l')?.items.map((i) => [i.kind, i.raw]),
    [
      ['number', '1e2'],
      ['word', 'null'],
      ['object', '{"x":{}}'],
    ],
  );
  assert.equal(at(json, 'é')?.raw, '"\\u00e9"');
  assert.equal(at(json, 'n', 'deeper'), undefined);
  assert.throws(() => parse('{"a":}'), SyntaxError);
});

test('a text other than JSON is a string', () => {
  const cases: [string, string, string][] = [
    ['14', 'number', '14'],
    [' 1.0 ', 'number', '1.0'],
    ['"14"', 'string', '"14"'],
    ['north-7', 'string', '"north-7"'],
    ['[1,', 'string', '"[1,"'],
    ['["a"]', 'list', '["a"]'],
    ['', 'string', '""'],
  ];
  for (const [text, kind, raw] of cases)
    assert.deepEqual([parseOrQuote(text).kind, parseOrQuote(text).raw], [kind, raw], text);
});

test('a path becomes nested objects', () => {
  assert.equal(nest(['a', 'b"'], '1.0'), '{"a":{"b\\"":1.0}}');
  assert.equal(nest([], '7'), '7');
});

test('the formatted text has the same values', () => {
  const text = '{"a":[1.0,{"b":{}}],"c":[],"d":{"e":null}}';
  const lines = pretty(parse(text));
  assert.equal(lines.replace(/\s/g, ''), text);
  assert.deepEqual(lines.split('\n').slice(0, 3), ['{', '  "a": [', '    1.0,']);
});
