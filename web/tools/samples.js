// Provides the module virtual:samples: the names of a few public concepts in each language. It reads them from the bundle of the general
// model, so that the pages show the same words as a prediction.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const sampleConcepts = ['lighthouse', 'sea', 'bird', 'sunset', 'sailboat'];

/**
 * Returns the plugin.
 * @param {string} folder folder with a file for each language: lines of id, tab, name
 */
export function samples(folder) {
  const name = 'virtual:samples';
  return {
    name: 'samples',
    resolveId: (/** @type {string} */ id) => (id === name ? `\0${name}` : undefined),
    load: (/** @type {string} */ id) =>
      id === `\0${name}` ? `export default ${JSON.stringify(read(folder))}` : undefined,
  };
}

/**
 * Reads the names of the sample concepts.
 * @param {string} folder @returns {Record<string, Record<string, string>>} language → English name → name
 */
export function read(folder) {
  const root = resolve(folder);
  const names = (/** @type {string} */ file) =>
    new Map(
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => /** @type {[string, string]} */ (line.split('\t'))),
    );
  const english = new Map([...names('en.tsv')].map(([id, word]) => [word, id]));
  const files = readdirSync(root).filter((f) => f.endsWith('.tsv'));
  return Object.fromEntries(
    files.map((file) => {
      const words = names(file);
      return [
        file.slice(0, -4),
        Object.fromEntries(
          sampleConcepts.map((word) => {
            const translation = words.get(english.get(word) ?? '');
            if (!translation) throw new Error(`${file}: no name for ${word}`);
            return [word, translation];
          }),
        ),
      ];
    }),
  );
}
