import assert from 'node:assert/strict';
import { test } from 'node:test';
import settings from '../../project.inlang/settings.json' with { type: 'json' };
import { bestLanguage, directionOf, languages, nameOf } from './languages';

test('the pages have the languages of the messages', () => {
  assert.deepEqual(languages.map((l) => l.code).sort(), [...settings.locales].sort());
  assert.equal(new Set(languages.map((l) => l.name)).size, 23);
});

test('the pages use the first language of the browser that they have', () => {
  const cases: [string[], string][] = [
    [[], 'en'],
    [['xx', 'el-GR'], 'en'],
    [['de-AT', 'en'], 'de'],
    [['el', 'fr-CA'], 'fr'],
    [['nb-NO'], 'no'],
    [['nn'], 'no'],
    [['pt-BR'], 'pt'],
    [['zh'], 'zh'],
    [['zh-CN'], 'zh'],
    [['zh-Hans-SG'], 'zh'],
    [['zh-HK'], 'zh-TW'],
    [['zh-Hant'], 'zh-TW'],
  ];
  for (const [preferred, code] of cases) assert.equal(bestLanguage(preferred), code, preferred.join());
});

test('Arabic is written from the right', () => {
  assert.deepEqual(
    languages.filter((l) => directionOf(l.code) === 'rtl').map((l) => l.code),
    ['ar'],
  );
  assert.equal(nameOf('no'), 'Norsk');
  assert.equal(nameOf('xx'), 'xx');
});
