// Compiles messages/**/*.json into src/words: two modules a language, so that a page loads only its reader's, and the
// shell only what it says itself. A message that a language does not have is the English one.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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

// messages/LANGUAGE.js keeps what the shell says; all else goes to pages/LANGUAGE.js, which comes with a page.
const shell = saidBy(['main.ts', 'views/studio/Studio.svelte']);
mkdirSync(join(out, 'pages'));
for (const file of readdirSync(join(out, 'messages'))) {
  if (file === '_index.js') continue;
  const path = join(out, 'messages', file);
  const text = readFileSync(path, 'utf8');
  const head = text.slice(0, text.indexOf('\nexport '));
  const blocks = [...text.matchAll(/^export (?:const (\w+) = [\s\S]*?^\};|\{ (\w+) \} from "\.\/en\.js")/gm)];
  const mine = (/** @type {boolean} */ wanted) =>
    blocks.filter(([, own, other]) => shell.has(own ?? other ?? '') === wanted).map(([block]) => block);
  for (const [to, wanted] of /** @type {const} */ ([
    [path, true],
    [join(out, 'pages', file), false],
  ]))
    writeFileSync(to, `${head}\n${mine(wanted).join('\n\n')}\n`);
}

/** The messages that modules say, with all that they import at once. @param {string[]} from below src */
function saidBy(from) {
  const said = new Set();
  const seen = new Set();
  const left = from.map((path) => new URL(`../src/${path}`, import.meta.url).pathname);
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const text = readFileSync(path, 'utf8');
    for (const [, name] of text.matchAll(/\bm\.(\w+)/g)) said.add(name);
    for (const [, type, next] of text.matchAll(/^ *import (type )?(?:[^'\n(]*?from )?'(\.[^']*)'/gm)) {
      if (type) continue;
      const file = join(dirname(path), /** @type {string} */ (next));
      const found = [file, `${file}.ts`].find((one) => /\.(ts|svelte)$/.test(one) && existsSync(one));
      if (found) left.push(found);
    }
  }
  return said;
}
