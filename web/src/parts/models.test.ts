import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadWords, setLanguage } from '../i18n/i18n.svelte';
import { modelName } from './models';

const general = { id: 'aaa03c23b3724a16a56b629203edc62c', name: 'general-v1.3', display_name: 'General' };

test('a built-in model has a translated name, and a custom model has its own name', async () => {
  Object.assign(globalThis, { document: { documentElement: {} } });
  await setLanguage('de');
  await loadWords();
  assert.equal(modelName(general), 'Allgemein');
  assert.equal(modelName({ id: 'sails', name: 'Sails', display_name: 'Sails 2' }), 'Sails 2');
  assert.equal(modelName({ id: 'sails', name: 'Sails' }), 'Sails');
});
