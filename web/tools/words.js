// Compiles messages/**/*.json into src/words: two modules a language, so that a page loads only its reader's, and the
// shell only what it says itself. A message that a language does not have is the English one.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { compileProject } from '@inlang/paraglide-js';
import messageFormat from '@inlang/plugin-message-format';
import { loadProjectInMemory, newProject } from '@inlang/sdk';

const here = (/** @type {string} */ path) => new URL(path, import.meta.url).pathname;
const out = here('../src/words');
const settings = JSON.parse(readFileSync(here('../project.inlang/settings.json'), 'utf8'));
const project = await loadProjectInMemory({ blob: await newProject({ settings }), providePlugins: [messageFormat] });
await importMessages();
const output = await compileProject({
  project,
  compilerOptions: {
    outdir: out,
    outputStructure: 'locale-modules',
    strategy: ['globalVariable', 'baseLocale'],
    emitGitIgnore: false,
    emitPrettierIgnore: false,
  },
});
await project.close();
if (!output['messages/en.js']?.includes('export const')) throw new Error('the compiler found no messages');

rmSync(out, { recursive: true, force: true });
for (const [path, text] of Object.entries(output)) {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  writeFileSync(join(out, path), text);
}

/**
 * Reads all messages into the project. The project's own import takes 13 s, because it asks its database about each message. One
 * insert for many rows takes a second.
 */
async function importMessages() {
  /** @type {string[]} */
  const patterns = settings['plugin.inlang.messageFormat'].pathPattern;
  const files = settings.locales.flatMap((/** @type {string} */ locale) =>
    patterns
      .map((pattern) => here(`../${pattern.replace('{locale}', locale)}`))
      .map((name) => ({ name, locale, content: readFileSync(name) })),
  );
  const read = await messageFormat.importFiles?.({ files, settings });
  if (!read) throw new Error('the plugin reads no messages');
  const id = (/** @type {string} */ bundle, /** @type {string} */ locale) => `${bundle} ${locale}`;
  const bundles = [...new Map(read.bundles.map((bundle) => [bundle.id, bundle])).values()];
  const messages = read.messages.map((message) => ({ ...message, id: id(message.bundleId, message.locale) }));
  const variants = read.variants.map((variant) => {
    if (!('messageBundleId' in variant)) throw new Error('a variant without a message');
    const { messageBundleId, messageLocale, ...rest } = variant;
    return { ...rest, messageId: id(messageBundleId, messageLocale) };
  });
  for (const rows of chunks(bundles)) await project.db.insertInto('bundle').values(rows).execute();
  for (const rows of chunks(messages)) await project.db.insertInto('message').values(rows).execute();
  for (const rows of chunks(variants)) await project.db.insertInto('variant').values(rows).execute();
}

/** Splits rows into parts that fit into one insert. @template T @param {T[]} rows @returns {T[][]} */
function chunks(rows) {
  const size = 500;
  return Array.from({ length: Math.ceil(rows.length / size) }, (_, n) => rows.slice(n * size, (n + 1) * size));
}

// messages/LANGUAGE.js keeps what the shell says; all else goes to pages/LANGUAGE.js, which comes with a page.
const shell = saidBy(['main.ts', 'views/studio/Studio.svelte']);
mkdirSync(join(out, 'pages'));
for (const [path, text] of Object.entries(output)) {
  const file = path.match(/^messages\/(?!_index)(.*)$/)?.[1];
  if (!file) continue;
  const head = text.slice(0, text.indexOf('\nexport '));
  const blocks = [...text.matchAll(/^export (?:const (\w+) = [\s\S]*?^\};|\{ (\w+) \} from "\.\/en\.js")/gm)];
  const mine = (/** @type {boolean} */ wanted) =>
    blocks.filter(([, own, other]) => shell.has(own ?? other ?? '') === wanted).map(([block]) => block);
  for (const [to, wanted] of /** @type {const} */ ([
    [join(out, path), true],
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
