import assert from 'node:assert/strict';
import { test } from 'node:test';
import { languages } from './languages';

interface Variants {
  readonly declarations: readonly string[]; // "input count", "local form = count: plural"
  readonly selectors: readonly string[];
  readonly match: Readonly<Record<string, string>>; // "form=one" to its text
}
type Messages = Readonly<Record<string, string | readonly [Variants]>>;

const files = import.meta.glob<Messages>('../messages/**/*.json', { eager: true, import: 'default' });
const of = (code: string): Messages => {
  const all = Object.entries(files).filter(([path]) => path.endsWith(`/${code}.json`));
  const { $schema: _, ...messages } = Object.assign({}, ...all.map(([, file]) => file));
  return messages;
};
const english = of('en');
const others = languages.map((l) => l.code).filter((code) => code !== 'en');

// What reads the same as in English, and is right to: names, and words that the languages share.
const sameEverywhere = ['side_bar', 'version'];
const sameIn: Readonly<Record<string, readonly string[]>> = {
  da: ['by_token_word', 'count_inputs', 'email', 'id'],
  de: ['by_token_word', 'name', 'workflows'],
  es: ['by_token_word', 'endpoint'],
  fi: ['by_token_word'],
  fr: ['actions', 'applications', 'concepts', 'count_workflows', 'description', 'email', 'pages', 'workflows'],
  hu: ['by_token_word', 'email'],
  it: ['account', 'by_token_word', 'count_inputs', 'count_workflows', 'email', 'endpoint', 'password'],
  nl: ['account', 'by_token_word', 'count_workflows', 'email', 'lesson_insect', 'workflows'],
  no: ['by_token_word'],
  pl: ['by_token_word', 'email', 'endpoint'],
  pt: ['by_token_word', 'email', 'endpoint'],
  sv: ['by_token_word', 'id'],
};

test('every language has a file in every folder, no file is of another, and no message is in two', () => {
  const folders = new Set(Object.keys(files).map((path) => path.replace(/[^/]*$/, '')));
  const wanted = [...folders].flatMap((folder) => languages.map(({ code }) => `${folder}${code}.json`));
  assert.deepEqual(Object.keys(files).sort(), wanted.sort());
  const names = Object.entries(files).flatMap(([path, file]) => (path.endsWith('/en.json') ? Object.keys(file) : []));
  const twice = names.filter((name, i) => name !== '$schema' && names.indexOf(name) !== i);
  assert.deepEqual(twice, []);
});

for (const code of others) {
  test(`${code} says what English says`, () => {
    const messages = of(code);
    assert.deepEqual(Object.keys(messages), Object.keys(english));
    for (const [key, here] of Object.entries(messages)) {
      const there = english[key];
      assert.equal(typeof here, typeof there, `${key} is one text or has forms, as the English one`);
      for (const [form, text] of texts(here)) {
        const where = `${key} ${form}`;
        assert.notEqual(text.trim(), '', where);
        assert.doesNotMatch(text, /[!！]/, where);
        const missing = holes(there).filter((hole) => !holes(here, text).includes(hole));
        assert.ok(missing.length <= (spelled(code, form) ? 1 : 0), `${where} leaves out ${missing}`);
        const added = holes(here, text).filter((hole) => !holes(there).includes(hole));
        assert.deepEqual(added, [], where);
      }
    }
  });

  test(`${code} has every form of a number`, () => {
    const { pluralCategories } = new Intl.PluralRules(code).resolvedOptions();
    for (const [key, message] of Object.entries(of(code))) {
      if (typeof message === 'string') continue;
      const [{ selectors, match, declarations }] = message;
      assert.deepEqual(selectors, ['form'], key);
      assert.deepEqual(Object.keys(match).sort(), pluralCategories.map((c) => `form=${c}`).sort(), key);
      const inputs = (of: Messages[string] | undefined) =>
        typeof of === 'object' ? of[0].declarations.filter((d) => d.startsWith('input ')) : [];
      assert.deepEqual(inputs(message), inputs(english[key]), key);
      assert.ok(declarations.includes('local form = count: plural'), key);
    }
  });

  test(`${code} leaves nothing in English`, () => {
    const same = Object.entries(of(code)).filter(([key, message]) => {
      const words = texts(english[key]).map(([, text]) => text);
      return texts(message).some(([, text]) => words.includes(text));
    });
    assert.deepEqual(
      same
        .map(([key]) => key)
        .filter((key) => !sameEverywhere.includes(key))
        .sort(),
      sameIn[code] ?? [],
    );
  });
}

/** A message's texts by their form, which is empty where there is but one. */
function texts(message: Messages[string] | undefined): [string, string][] {
  if (message === undefined) return [];
  return typeof message === 'string' ? [['', message]] : Object.entries(message[0].match);
}

/** The inputs that a text shows, or any text of a message; a local value counts as the input that it shows. */
function holes(message: Messages[string] | undefined, text?: string): string[] {
  if (message === undefined) return [];
  const locals = new Map(
    (typeof message === 'string' ? [] : message[0].declarations).flatMap((d) => {
      const [, local = '', input = ''] = /^local (\w+) = (\w+):/.exec(d) ?? [];
      return local ? [[local, input] as const] : [];
    }),
  );
  const all = text === undefined ? texts(message).map(([, t]) => t) : [text];
  const names = all.flatMap((t) => [...t.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => locals.get(name) ?? name));
  return [...new Set(names)].sort();
}

/** Whether a form stands for one number only, which may then be a word: "مدخلان" are two inputs. */
function spelled(code: string, form: string): boolean {
  const rules = new Intl.PluralRules(code);
  return [...Array(200).keys()].filter((n) => form === `form=${rules.select(n)}`).length === 1;
}
