import assert from 'node:assert/strict';
import { test } from 'node:test';
import { m as clauses } from '../clauses/words';
import { m as look } from '../views/look/words';
import { m as search } from '../views/search/words';
import { loadWords, m, namespace, setLanguage } from './i18n.svelte';
import type { LanguageCode } from './languages';

type Messages = Record<string, unknown>;
const files = import.meta.glob<Messages>(['../../messages/**/{en,de}.json', '!../../messages/terms/*'], {
  eager: true,
  import: 'default',
});
const sources = import.meta.glob<string>(['../**/*.{ts,svelte}', '!../words/**', '!../**/*.test.ts'], {
  eager: true,
  query: '?raw',
  import: 'default',
});
const texts = (language: string): Messages => {
  const languageFiles = Object.entries(files).filter(([path]) => path.endsWith(`/${language}.json`));
  const { $schema, ...messages } = Object.assign({}, ...languageFiles.map(([, file]) => file));
  return messages;
};
const keys = Object.keys(texts('en'));

test('every message is used', () => {
  const all = Object.values(sources).join('\n');
  const unused = keys.filter((key) => !new RegExp(`\\bm\\.${key}\\b`).test(all));
  assert.deepEqual(unused, []);
});

test('a module cannot read a message of a namespace that it does not load', () => {
  // The compiler fails at each of these comments if the line below it has no error.
  const wrong = [
    // @ts-expect-error: the shell does not load the messages that pages share
    () => m.cancel(),
    // @ts-expect-error: nor do clauses load those of a view that has clauses
    () => clauses.search_title(),
    // @ts-expect-error: nor does one view load those of another
    () => search.look_lead(),
  ];
  const right = [() => search.search_title(), () => search.search_and(), () => look.cancel(), () => look.skip()];
  assert.equal(wrong.length + right.length, 7);
});

test('a module loads every namespace in the language that was set last', async () => {
  Object.assign(globalThis, { document: { documentElement: {} } });
  await Promise.all([setLanguage('fr'), setLanguage('de')]);
  const modules = import.meta.glob(['../**/words.ts', '!../words/**']);
  await Promise.all(Object.values(modules).map((load) => load()));
  await loadWords();
  const all: Messages = m;
  for (const language of ['de', 'en'] as const) {
    await setLanguage(language);
    for (const [key, text] of Object.entries(texts(language))) {
      const message = all[key];
      assert.equal(typeof message, 'function', key);
      if (typeof text === 'string' && !text.includes('{')) assert.equal((message as () => string)(), text, key);
    }
  }
  await assert.rejects(setLanguage('tlh' as LanguageCode), /no words for tlh/);
  assert.equal(m.skip(), texts('en').skip);
});

test('a message that a page stores changes with the language', async () => {
  await setLanguage('en');
  const skipMessage = m.skip;
  assert.equal(skipMessage(), texts('en').skip);
  await setLanguage('de');
  assert.equal(skipMessage(), texts('de').skip);
  await setLanguage('en');
});

test('messages that cannot be loaded are requested twice more', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const failLoads = (times: number) => async () => {
    if (times-- > 0) throw new TypeError('Failed to fetch dynamically imported module');
    return { late: () => 'late' };
  };
  const loads = async () => {
    const loading = loadWords();
    for (const pause of [300, 3_000]) {
      await new Promise((resolve) => setImmediate(resolve));
      t.mock.timers.tick(pause);
    }
    await loading;
  };
  const lateWords = namespace({ './words/late/en.js': failLoads(2) });
  await loads();
  assert.equal(lateWords.late(), 'late');
  namespace({ './words/never/en.js': failLoads(3) });
  await assert.rejects(loads(), /Failed to fetch/);
});
