// Writes the complete runtime to a folder, for any web server and for Node: the scripts, the module with its kernels, the
// bundles, and the manifest that lists them. Go package served provides the same files to the servers of this project.
//
//     node tools/assemble.js TO [--scripts FOLDER] [--guest FILE] [--kernels FILE] [--relaxed FILE]
//         [--bundles FOLDER] [--video-module FILE] [--jxl-module FILE]
//
// The runtime can decode videos, HEIC and AVIF only if --video-module names ffmpreg.wasm.gz, a separate program under the GPL, and JPEG XL only
// if --jxl-module names jpegxl.wasm.gz.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';

const resolvePath = (path) => new URL(path, import.meta.url).pathname;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scripts: { type: 'string', default: resolvePath('../served/dist') },
    guest: { type: 'string', default: resolvePath('../../../wasm/dist/guest.wasm') },
    kernels: { type: 'string', default: resolvePath('../../../wasm/dist/kernels.wasm') },
    relaxed: { type: 'string', default: resolvePath('../../../wasm/dist/kernels-relaxed.wasm') },
    bundles: { type: 'string', default: resolvePath('../../../models') },
    'video-module': { type: 'string' },
    'jxl-module': { type: 'string' },
  },
});
const [to] = positionals;
if (!to) throw new Error('usage: node tools/assemble.js TO');
mkdirSync(to, { recursive: true });
for (const name of readdirSync(values.scripts))
  if (/\.(js|d\.ts)$/.test(name)) cpSync(join(values.scripts, name), join(to, name));

const files = [];
const later = [];

function add(name, stem, ending, data, parts, list = files) {
  const sha256 = createHash('sha256').update(data).digest('hex');
  const url = `${stem}-${sha256.slice(0, 16)}${ending}`;
  writeFileSync(join(to, url), data);
  list.push({ name, url, size: data.length, sha256, ...(parts && { parts }) });
}

add('guest.wasm', 'guest', '.wasm', readFileSync(values.guest));
add('kernels.wasm', 'kernels', '.wasm', readFileSync(values.kernels));
add('kernels-relaxed.wasm', 'kernels-relaxed', '.wasm', readFileSync(values.relaxed));
const order = (a, b) => (a < b ? -1 : 1); // by code units, independent of the language
const names = readdirSync(values.bundles, { withFileTypes: true })
  .filter((e) => e.isDirectory())
  .map((e) => e.name)
  .sort(order)
  .flatMap((bundle) => {
    try {
      const { files } = JSON.parse(readFileSync(join(values.bundles, bundle, 'manifest.json'), 'utf8'));
      return ['manifest.json', ...Object.keys(files).sort(order)].map((name) => `${bundle}/${name}`);
    } catch (failure) {
      if (failure.code === 'ENOENT') return []; // the folder is not a bundle
      throw failure;
    }
  });
const pieces = [];
const parts = [];
let at = 0;
for (const name of names) {
  const data = readFileSync(join(values.bundles, name));
  const ending = extname(name);
  const list = { '.plan': files, '.f16': later }[ending];
  if (list) add(name, basename(name, ending), ending, data, undefined, list);
  else {
    parts.push({ name, at, size: data.length });
    pieces.push(data);
    at += data.length;
  }
}
add('bundles', 'bundles', '.bin', Buffer.concat(pieces), parts);
const decoders = { ffmpreg: values['video-module'], jpegxl: values['jxl-module'] };
for (const [stem, file] of Object.entries(decoders))
  if (file) add(`${stem}.wasm`, stem, '.wasm', gunzipSync(readFileSync(file)), undefined, later);
const manifest = { format: 1, files, ...(later.length && { later }) };
writeFileSync(join(to, 'manifest.json'), JSON.stringify(manifest, null, 1));
