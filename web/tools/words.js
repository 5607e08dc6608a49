// Compiles messages/**/*.json into src/words: one module a language, so that a page loads only its reader's.
// A message that a language does not have is the English one.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { compile } from '@inlang/paraglide-js';

const out = new URL('../src/words', import.meta.url).pathname;
const english = new URL('../messages/en.json', import.meta.url);
if (!existsSync(english)) throw new Error('messages/en.json is missing');
JSON.parse(readFileSync(english, 'utf8'));

rmSync(out, { recursive: true, force: true });
await compile({
  project: new URL('../project.inlang', import.meta.url).pathname,
  outdir: out,
  outputStructure: 'locale-modules',
  strategy: ['globalVariable', 'baseLocale'],
  emitGitIgnore: false,
  emitPrettierIgnore: false,
});
if (!readFileSync(`${out}/messages/en.js`, 'utf8').includes('export const')) {
  throw new Error('the compiler found no messages');
}
