// What follows a build: the old files go before it; after it every text gets a gzip twin, the sizes are
// printed, and a shell that has grown over its limit fails the build.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** What the first screen of a signed-in person loads, beside index.html, its static imports and one language. */
const first = ['src/views/studio/Studio.svelte'];

/** @param {{shell: number}} limits in bytes, gzipped */
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
      for (const file of walk(dist)) {
        const bytes = readFileSync(file);
        if (/\.(html|js|css|svg|txt|json)$/.test(file) && bytes.length > 512) {
          writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
        }
      }
      const manifest = JSON.parse(readFileSync(join(dist, '.vite/manifest.json'), 'utf8'));
      rmSync(join(dist, '.vite'), { recursive: true });
      report(dist, manifest, shell);
    },
  };
}

/** @param {string} folder @returns {string[]} */
function walk(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === '.vite' ? [] : walk(path);
    return entry.name === '.gitignore' ? [] : [path];
  });
}

/** @param {string} dist @param {Record<string, any>} manifest @param {number} limit */
function report(dist, manifest, limit) {
  const size = (/** @type {string} */ file) =>
    statSync(existsSync(join(dist, `${file}.gz`)) ? join(dist, `${file}.gz`) : join(dist, file)).size;
  const closure = (/** @type {string} */ key, /** @type {Set<string>} */ files) => {
    const chunk = manifest[key];
    if (!chunk) throw new Error(`${key} is no chunk of the build`);
    if (files.has(chunk.file)) return files;
    files.add(chunk.file);
    for (const css of chunk.css ?? []) files.add(css);
    for (const next of chunk.imports ?? []) closure(next, files);
    return files;
  };
  const shell = new Set(['index.html']);
  for (const key of ['index.html', ...first]) closure(key, shell);
  const sum = (/** @type {Iterable<string>} */ files) => [...files].reduce((n, f) => n + size(f), 0);
  const more = (/** @type {string} */ key) => sum([...closure(key, new Set())].filter((f) => !shell.has(f)));
  const spoken = Object.keys(manifest).filter((key) => key.startsWith('src/words/messages/'));
  const longest = spoken.reduce((a, b) => (more(b) > more(a) ? b : a));
  const own = sum(shell);
  const whole = own + more(longest);
  const kb = (/** @type {number} */ n) => `${(n / 1000).toFixed(1).padStart(7)} kB`;
  console.log(`gzipped:\n${kb(whole)}  the shell with its longest words (${longest}), of ${limit / 1000} kB`);
  for (const key of Object.keys(manifest).sort()) {
    if (!manifest[key].isDynamicEntry || first.includes(key)) continue;
    if (spoken.includes(key) && !key.endsWith('/en.js')) continue; // one stands for all
    console.log(`${kb(more(key))}  ${key}`);
  }
  if (whole > limit) throw new Error(`the shell is ${whole} bytes, over ${limit}`);
}
