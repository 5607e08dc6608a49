// A plugin that runs before and after a build. Before the build, it deletes the old files. After the build, it writes the list of files
// for a start without a network, replaces every text file over 512 bytes by a compressed one, and prints the sizes. The build fails if the
// shell exceeds its limit.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** The modules that the first screen of a signed-in person loads, in addition to the script of index.html and one language. */
const firstModules = ['src/views/studio/Studio.svelte'];

/** Matches the modules of the pages that work without a network. The list contains them with all modules that they load later. */
const offlineModules = /^src\/(parts\/|views\/(?!signin\/|docs\/|account\/|applications\/))/;
/** The paths in the list that are not in the manifest of the build. */
const extraPaths = ['/', '/look', '/sync', '/theme.js', '/icon.svg', '/icon-192.png', '/manifest.webmanifest'];

/**
 * Returns the plugin.
 * @param {{shell: number}} limits maximum size of the shell in gzipped bytes
 */
export function finish({ shell }) {
  const dist = new URL('../dist', import.meta.url).pathname;
  return {
    name: 'finish',
    apply: /** @type {const} */ ('build'),
    buildStart() {
      for (const entry of existsSync(dist) ? readdirSync(dist) : []) {
        if (entry !== '.gitignore') rmSync(join(dist, entry), { recursive: true });
      }
    },
    writeBundle() {
      const manifest = JSON.parse(readFileSync(join(dist, '.vite/manifest.json'), 'utf8'));
      list(dist, manifest);
      for (const file of walk(dist)) {
        const bytes = readFileSync(file);
        if (/\.(js|css|svg|txt|json)$/.test(file) && bytes.length > 512) {
          writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
          rmSync(file);
        }
      }
      rmSync(join(dist, '.vite'), { recursive: true });
      report(dist, manifest, shell);
    },
  };
}

/**
 * Returns the paths of all files in a folder, except .gitignore and .vite.
 * @param {string} folder @returns {string[]}
 */
function walk(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === '.vite' ? [] : walk(path);
    return entry.name === '.gitignore' ? [] : [path];
  });
}

/**
 * Returns the key of the script that index.html loads: vite.config.ts collects the modules of the first screen in it.
 * @param {Record<string, any>} manifest @returns {string}
 */
const scriptOf = (manifest) => Object.keys(manifest).find((key) => manifest[key].name === 'shell') ?? 'shell';

/**
 * Writes the list of the paths that a browser stores for a start without a network, and the list's name into index.html. The name
 * contains a hash of the list, so a changed list has another name. The runtime stores its module and network itself.
 * @param {string} dist @param {Record<string, any>} manifest
 */
function list(dist, manifest) {
  const files = new Set();
  const seen = new Set();
  const addChunk = (/** @type {string} */ key, /** @type {boolean} */ withDynamic) => {
    const chunk = manifest[key];
    if (!chunk) throw new Error(`${key} is no chunk of the build`);
    if (seen.has(`${key} ${withDynamic}`)) return;
    seen.add(`${key} ${withDynamic}`);
    for (const file of [chunk.file, ...(chunk.css ?? []), ...(chunk.assets ?? [])]) files.add(`/${file}`);
    for (const next of chunk.imports ?? []) addChunk(next, withDynamic && next !== scriptOf(manifest));
    if (withDynamic) for (const next of chunk.dynamicImports ?? []) addChunk(next, withDynamic);
  };
  addChunk(scriptOf(manifest), false);
  for (const key of Object.keys(manifest)) if (offlineModules.test(key)) addChunk(key, true);
  for (const key of Object.keys(manifest)) if (key.startsWith('src/words/')) addChunk(key, false);
  const resolvePath = (/** @type {string} */ path) => new URL(path, import.meta.url).pathname;
  const runtime = readdirSync(resolvePath('../runtime/src'))
    .filter((name) => name.endsWith('.ts') && !name.startsWith('node'))
    .map((name) => `/runtime/${name.replace(/\.ts$/, '.js')}`);
  const samples = readdirSync(resolvePath('../samples')).map((name) => `/samples/${name}`);
  const text = JSON.stringify([...extraPaths, ...[...files, ...runtime, ...samples].sort()]);
  const name = `assets/shell-${createHash('sha256').update(text).digest('hex').slice(0, 8)}.json`;
  writeFileSync(join(dist, name), text);
  const page = join(dist, 'index.html');
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace('</head>', `  <meta name="shell" content="/${name}">\n  </head>`),
  );
}

/**
 * Prints the gzipped sizes in kB. Throws if the shell is larger than limit, in bytes.
 * @param {string} dist @param {Record<string, any>} manifest @param {number} limit
 */
function report(dist, manifest, limit) {
  const size = (/** @type {string} */ file) => {
    const path = join(dist, file);
    return existsSync(`${path}.gz`) ? statSync(`${path}.gz`).size : gzipSync(readFileSync(path), { level: 9 }).length;
  };
  // Before a page displays a chunk, it loads the chunk's static imports and its messages in one language.
  const closure = (/** @type {string} */ key, /** @type {string} */ language, /** @type {Set<string>} */ files) => {
    const chunk = manifest[key];
    if (!chunk) throw new Error(`${key} is no chunk of the build`);
    if (files.has(chunk.file)) return files;
    files.add(chunk.file);
    for (const css of chunk.css ?? []) files.add(css);
    const wordChunks = (chunk.dynamicImports ?? []).filter((/** @type {string} */ chunkKey) =>
      isWords(chunkKey, language),
    );
    for (const next of [...(chunk.imports ?? []), ...wordChunks]) closure(next, language, files);
    return files;
  };
  const isWords = (/** @type {string} */ key, language = '') =>
    key.startsWith('src/words/') && key.endsWith(`${language}.js`);
  const shellIn = (/** @type {string} */ language) => {
    const files = new Set(['index.html']);
    for (const key of [scriptOf(manifest), ...firstModules]) closure(key, language, files);
    return files;
  };
  const sum = (/** @type {Iterable<string>} */ files) => [...files].reduce((n, f) => n + size(f), 0);
  const languages = Object.keys(manifest).flatMap((key) => key.match(/^src\/words\/shell(\/.+)\.js$/)?.[1] ?? []);
  const longest = languages.reduce((a, b) => (sum(shellIn(b)) > sum(shellIn(a)) ? b : a));
  const shellSize = sum(shellIn(longest));
  const english = shellIn('/en');
  const kb = (/** @type {number} */ n) => `${(n / 1000).toFixed(1).padStart(7)} kB`;
  console.log(
    `gzipped:\n${kb(shellSize)}  the shell with its longest words (${longest.slice(1)}), of ${limit / 1000} kB`,
  );
  console.log('With English words, and without the shell:');
  for (const key of Object.keys(manifest).sort()) {
    if (!manifest[key].isDynamicEntry || firstModules.includes(key) || isWords(key)) continue;
    console.log(`${kb(sum([...closure(key, '/en', new Set())].filter((f) => !english.has(f))))}  ${key}`);
  }
  if (shellSize > limit) throw new Error(`the shell is ${shellSize} bytes, over ${limit}`);
}
