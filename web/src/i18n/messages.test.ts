import assert from 'node:assert/strict';
import { test } from 'node:test';
import { languages } from './languages';

interface Variants {
  readonly declarations: readonly string[]; // for example "input count", "local form = count: plural"
  readonly selectors: readonly string[];
  readonly match: Readonly<Record<string, string>>; // texts by form, for example "form=one"
}
type Messages = Readonly<Record<string, string | readonly [Variants]>>;

type Terms = Readonly<Record<string, readonly string[]>>; // by English term: a language's word for it, then other accepted stems

const files = import.meta.glob<Messages>(['../../messages/**/*.json', '!../../messages/terms/*'], {
  eager: true,
  import: 'default',
});
const tables = import.meta.glob<Terms>('../../messages/terms/*.json', { eager: true, import: 'default' });
const tableOf = (code: string): Terms => tables[`../../messages/terms/${code}.json`] ?? {};
const folderOf = (path: string) => path.replace(/[^/]*$/, '');
const messagesOf = (code: string): Messages => {
  const all = Object.entries(files).filter(([path]) => path.endsWith(`/${code}.json`));
  all.sort(([a], [b]) => (folderOf(a) < folderOf(b) ? -1 : 1));
  const { $schema: _, ...messages } = Object.assign({}, ...all.map(([, file]) => file));
  return messages;
};
const english = messagesOf('en');
const others = languages.map((l) => l.code).filter((code) => code !== 'en');

// Messages with the same text as in English: names, and words that the languages share.
const sameEverywhere = [
  'input_pixels',
  'input_place_at',
  'models_added',
  'models_auc',
  'models_col_auc',
  'models_compare_before',
  'models_v',
  'models_version_auc',
  'search_unit_km',
  'side_bar',
  'version',
];
const sameIn: Readonly<Record<string, readonly string[]>> = {
  da: [
    'examples_by_token',
    'id',
    'input_id',
    'input_label_mark',
    'input_metadata',
    'input_model',
    'inputs_metadata',
    'inputs_model',
    'models_col_name',
    'models_col_version',
    'models_eval_mean',
    'search_clause_metadata',
    'search_kind_metadata',
    'search_north',
    'search_radius',
    'search_south',
    'sync_at',
    'sync_browser',
    'sync_summary_offline',
    'theme_system',
  ],
  de: [
    'concepts_name',
    'examples_by_token',
    'id',
    'input_field_name',
    'input_id',
    'input_original',
    'input_status',
    'inputs_urls',
    'models_col_version',
    'models_rename_concept',
    'name',
    'search_north',
    'search_radians',
    'search_save_name',
    'search_south',
    'search_unit_mi',
    'search_unit_rad',
    'search_west',
    'search_zoom',
    'sync_browser',
    'sync_summary_offline',
    'theme_system',
  ],
  es: [
    'endpoint',
    'examples_by_token',
    'id',
    'input_id',
    'input_label_mark',
    'inputs_errors',
    'look_general',
    'models_check_no',
    'search_east',
    'search_north',
    'search_radians',
    'search_south',
    'search_unit_mi',
    'search_unit_rad',
    'search_zoom',
  ],
  fi: ['examples_by_token', 'models_eval_mean', 'search_radians', 'search_unit_rad'],
  fr: [
    'actions',
    'applications',
    'concepts',
    'concepts_absent',
    'concepts_count',
    'description',
    'id',
    'input_id',
    'input_latitude',
    'input_longitude',
    'input_type',
    'inputs_absent',
    'models_active',
    'models_col_concepts',
    'models_col_version',
    'models_concept',
    'models_concept_count',
    'models_concepts',
    'models_source',
    'search_centre',
    'search_centre_short',
    'search_east',
    'search_north',
    'search_radians',
    'search_south',
    'search_unit_mi',
    'search_unit_rad',
    'search_zoom',
    'sync_at',
  ],
  hu: ['examples_by_token', 'models_eval_mean', 'search_radians', 'search_unit_rad'],
  it: [
    'account',
    'endpoint',
    'examples_by_token',
    'id',
    'input_file',
    'input_id',
    'input_label_mark',
    'models_check_no',
    'password',
    'search_east',
    'search_north',
    'search_radians',
    'search_south',
    'search_unit_mi',
    'search_unit_rad',
    'sync_browser',
    'sync_summary_offline',
  ],
  ja: ['id', 'input_id', 'search_radians', 'search_unit_rad'],
  ko: ['id', 'input_id'],
  nl: [
    'account',
    'concepts_count',
    'examples_by_token',
    'id',
    'input_id',
    'input_model',
    'inputs_camera',
    'inputs_model',
    'look_camera',
    'look_model',
    'mark_conflict',
    'models_camera',
    'models_col_name',
    'models_concept',
    'models_concept_count',
    'models_concept_name',
    'search_clause_input',
    'search_clause_url',
    'search_clauses',
    'search_concept',
    'search_hit',
    'search_north',
    'search_radians',
    'search_score',
    'search_unit_mi',
    'search_unit_rad',
    'search_west',
    'studio_sync',
    'sync_browser',
    'sync_label_concept',
    'sync_summary_offline',
    'sync_train_model_name',
    'train_concept_unnamed',
    'train_sample_insect',
  ],
  no: [
    'examples_by_token',
    'id',
    'input_id',
    'input_metadata',
    'inputs_metadata',
    'models_eval_mean',
    'search_clause_metadata',
    'search_kind_metadata',
    'search_north',
    'search_radius',
    'search_south',
  ],
  pl: [
    'endpoint',
    'examples_by_token',
    'input_model',
    'inputs_model',
    'models_col_name',
    'search_east',
    'search_north',
    'search_radians',
    'search_south',
    'search_west',
    'sync_folder',
  ],
  pt: [
    'endpoint',
    'examples_by_token',
    'id',
    'input_id',
    'input_label_mark',
    'input_latitude',
    'input_longitude',
    'search_north',
    'search_radians',
    'search_south',
    'search_unit_mi',
    'search_unit_rad',
    'sync_summary_offline',
  ],
  sv: [
    'examples_by_token',
    'id',
    'input_id',
    'input_metadata',
    'inputs_metadata',
    'models_col_version',
    'models_precision',
    'search_clause_metadata',
    'search_kind_metadata',
    'search_north',
    'search_south',
    'sync_at',
    'sync_summary_offline',
    'theme_system',
  ],
  tr: ['input_label_mark', 'models_eval_mean', 'search_radians', 'search_unit_rad'],
  'zh-TW': ['id', 'input_id'],
  zh: ['id', 'input_id'],
};

// The English forms of the terms, longest first. A form matches whole words, and only once: an “API key” is not a “key” too.
const forms = Object.entries(tableOf('en'))
  .flatMap(([term, words]) => words.map((word) => ({ term, word })))
  .sort((a, b) => b.word.length - a.word.length)
  .map(({ term, word }) => ({ term, word, pattern: new RegExp(`(?<![\\w’-])${word}(?![\\w-])`, 'gi') }));

// Messages with a term's word in another sense: a key of the keyboard.
const otherSense = ['models_examples_do key', 'models_examples_off key', 'shortcuts_on key'];
// Messages that do not need the language's word for a term.
const wordless: Readonly<Record<string, readonly string[]>> = {
  // A photo that the camera takes.
  ko: ['camera_take picture'],
  'zh-TW': ['camera_take picture'],
  zh: ['camera_take picture'],
};
// The inputs with the number that selects a plural form. If a message has several of them, the first in this list selects.
const counts = ['changed', 'calls', 'versions', 'left', 'shown', 'n', 'count'];
// Messages with a number that is never 0. A form for 0 and 1 is then for 1 only.
const atLeastOne = ['inputs_nothing', 'look_first_all', 'models_advice_few'];

test('every language has a file in every folder, and no message is in two files', () => {
  const folders = new Set(Object.keys(files).map(folderOf));
  const expected = [...folders].flatMap((folder) => languages.map(({ code }) => `${folder}${code}.json`));
  assert.deepEqual(Object.keys(files).sort(), expected.sort());
  const names = Object.entries(files).flatMap(([path, file]) => (path.endsWith('/en.json') ? Object.keys(file) : []));
  const twice = names.filter((name, i) => name !== '$schema' && names.indexOf(name) !== i);
  assert.deepEqual(twice, []);
});

test('every language has a word for every term', () => {
  assert.deepEqual(Object.keys(tables).sort(), languages.map(({ code }) => `../../messages/terms/${code}.json`).sort());
  for (const { code } of languages) {
    assert.deepEqual(Object.keys(tableOf(code)), Object.keys(tableOf('en')), code);
    for (const [term, words] of Object.entries(tableOf(code))) assert.ok(words[0], `${code} ${term}`);
  }
  const used = Object.values(english).flatMap((message) => formsIn(message).map(({ word }) => word));
  assert.deepEqual(
    forms.map(({ word }) => word).filter((word) => !used.includes(word)),
    [],
  );
});

for (const { code } of languages) {
  test(`${code} has a text for every form of a number`, () => {
    const { pluralCategories } = new Intl.PluralRules(code).resolvedOptions();
    for (const [key, message] of Object.entries(messagesOf(code))) {
      for (const [form, text] of texts(message)) assert.notEqual(text.trim(), '', `${key} ${form}`);
      if (typeof message === 'string') continue;
      const [{ selectors, match, declarations }] = message;
      assert.deepEqual(selectors, ['form'], key);
      assert.deepEqual(Object.keys(match).sort(), pluralCategories.map((c) => `form=${c}`).sort(), key);
      const inputs = (entry: Messages[string] | undefined) =>
        typeof entry === 'object' ? entry[0].declarations.filter((d) => d.startsWith('input ')) : [];
      assert.deepEqual(inputs(message), inputs(english[key]), key);
      assert.ok(declarations.includes('local form = count: plural'), key);
    }
  });
}

for (const code of others) {
  test(`${code} has the messages and inputs of English`, () => {
    const messages = messagesOf(code);
    assert.deepEqual(Object.keys(messages), Object.keys(english));
    for (const [key, localMessage] of Object.entries(messages)) {
      const englishMessage = english[key];
      assert.equal(typeof localMessage, typeof englishMessage, `${key} is one text or has forms, as the English one`);
      for (const [form, text] of texts(localMessage)) {
        const context = `${key} ${form}`;
        assert.doesNotMatch(text, /[!！]/, context);
        const missing = holes(englishMessage).filter((hole) => !holes(localMessage, text).includes(hole));
        const optional = isForOneNumber(code, form, atLeastOne.includes(key) ? 1 : 0)
          ? counts.filter((hole) => holes(englishMessage).includes(hole)).slice(0, 1)
          : [];
        assert.deepEqual(missing, missing.length > 0 ? optional : [], context);
        const added = holes(localMessage, text).filter((hole) => !holes(englishMessage).includes(hole));
        assert.deepEqual(added, [], context);
      }
    }
  });

  test(`${code} uses one word for a term`, () => {
    const table = tableOf(code);
    const lower = (text: string) => text.toLocaleLowerCase(code).normalize();
    const used = new Set<string>();
    const missingTerms: string[] = [];
    for (const [key, message] of Object.entries(messagesOf(code))) {
      for (const term of new Set(formsIn(english[key]).map((form) => form.term))) {
        if (otherSense.includes(`${key} ${term}`)) continue;
        const words = table[term] ?? [];
        const found = texts(message).map(([, text]) =>
          words.filter((word) => lower(withoutInputs(text)).includes(lower(word))),
        );
        for (const word of found.flat()) used.add(`${term}: ${word}`);
        if (found.some((those) => those.length === 0)) missingTerms.push(`${key} ${term}`);
      }
    }
    assert.deepEqual(missingTerms.sort(), wordless[code] ?? []);
    const stems = Object.entries(table).flatMap(([term, [, ...rest]]) => rest.map((word) => `${term}: ${word}`));
    assert.deepEqual(
      stems.filter((stem) => !used.has(stem)),
      [],
    );
  });

  test(`${code} leaves nothing in English`, () => {
    const same = Object.entries(messagesOf(code)).filter(([key, message]) => {
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

/** Returns a message's texts with their forms. The form of a single text is empty. */
function texts(message: Messages[string] | undefined): [string, string][] {
  if (message === undefined) return [];
  return typeof message === 'string' ? [['', message]] : Object.entries(message[0].match);
}

/** Replaces the inputs of a text by NUL characters. */
function withoutInputs(text: string): string {
  return text.replace(/\{\w+\}/g, '\0');
}

/** Returns the forms of terms in an English message. */
function formsIn(message: Messages[string] | undefined): typeof forms {
  return texts(message).flatMap(([, text]) => {
    let rest = withoutInputs(text);
    return forms.filter(({ pattern }) => {
      const before = rest;
      rest = rest.replace(pattern, '\0');
      return rest !== before;
    });
  });
}

/** Returns the inputs that a text shows, by default all texts of the message. A local value counts as the input that it shows. */
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

/** Reports whether a form is for only one number of at least `least`. Its text may have a word for the number: "مدخلان" are two inputs. */
function isForOneNumber(code: string, form: string, least: number): boolean {
  const rules = new Intl.PluralRules(code);
  const numbers = [...Array(200).keys()].filter((n) => form === `form=${rules.select(n)}`);
  return numbers.length > 0 && numbers.filter((n) => n >= least).length <= 1;
}
