import assert from 'node:assert/strict';
import { test } from 'node:test';
import { languages } from './languages';

interface Plural {
  declarations: string[];
  selectors: string[];
  match: Record<string, string>;
}
type Message = string | [Plural];

const files = import.meta.glob<Record<string, Message>>('../messages/*.json', { eager: true, import: 'default' });
const sources = import.meta.glob<string>(['./**/*.{ts,svelte}', '!./words/**', '!./**/*.test.ts'], {
  eager: true,
  query: '?raw',
  import: 'default',
});

const words = (code: string): Record<string, Message> => {
  const { $schema, ...messages } = files[`../messages/${code}.json`] ?? {};
  return messages;
};
const forms = (message: Message): string[] =>
  typeof message === 'string' ? [message] : Object.values(message[0].match);
const holes = (text: string): string => (text.match(/\{\w+\}/g) ?? []).sort().join();
const english = words('en');

test('every message is used', () => {
  const all = Object.values(sources).join('\n');
  const unused = Object.keys(english).filter((key) => !new RegExp(`\\bm\\.${key}\\b`).test(all));
  assert.deepEqual(unused, []);
});

for (const { code } of languages) {
  test(`the words in ${code}`, () => {
    const theirs = words(code);
    assert.deepEqual(Object.keys(theirs).sort(), Object.keys(english).sort());
    const categories = new Intl.PluralRules(code).resolvedOptions().pluralCategories;
    for (const [key, message] of Object.entries(theirs)) {
      const ours = english[key] as Message;
      assert.equal(typeof message, typeof ours, key);
      for (const form of forms(message)) assert.notEqual(form.trim(), '', key);
      if (typeof message === 'string') {
        assert.equal(holes(message), holes(ours as string), key);
        continue;
      }
      const given = Object.keys(message[0].match).map((form) => form.split('=')[1]);
      for (const category of categories) {
        assert.ok(given.includes(category) || given.includes('*'), `${key} has no form for ${category}`);
      }
      // A form for one or two may leave the number out; nothing may name what is neither given nor made here.
      const made = message[0].declarations.map((line) => `{${line.split(' ')[1]}}`);
      const inputs = [...holes(forms(ours).at(-1) ?? '').split(','), ...made];
      for (const form of forms(message)) {
        for (const hole of holes(form).split(',')) assert.ok(!hole || inputs.includes(hole), `${key}: ${hole}`);
      }
    }
  });
}
