// Compresses the modules and the network with brotli, and writes them next to the scripts, if they have changed. Quality 9 takes 2 s and
// gives 6.5 MB. Quality 11 takes a minute and gives 5.8 MB: the environment variable RELEASE selects it, and compresses everything again.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const resolvePath = (path) => new URL(`../${path}`, import.meta.url).pathname;
const sources = [
  '../../wasm/dist/guest.wasm',
  '../../wasm/dist/kernels.wasm',
  '../../wasm/dist/kernels-relaxed.wasm',
  '../../models/general-v1.3/network.plan',
];
const dist = resolvePath('served/dist/');
const files = new Map(
  sources
    .map(resolvePath)
    .filter(existsSync)
    .map((path) => {
      const data = readFileSync(path);
      const hash = createHash('sha256').update(data).digest('hex').slice(0, 16);
      const ending = extname(path);
      return [`${basename(path, ending)}-${hash}${ending}.br`, data];
    }),
);
for (const name of readdirSync(dist)) if (name.endsWith('.br') && !files.has(name)) rmSync(`${dist}${name}`);
for (const [name, data] of files) {
  if (!process.env.RELEASE && existsSync(`${dist}${name}`)) continue;
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: process.env.RELEASE ? 11 : 9,
    [constants.BROTLI_PARAM_LGWIN]: process.env.RELEASE ? 24 : 22,
    [constants.BROTLI_PARAM_SIZE_HINT]: data.length,
  };
  const compressed = brotliCompressSync(data, { params });
  writeFileSync(`${dist}${name}`, compressed);
  console.log(`${name}: ${data.length} bytes, ${compressed.length} compressed`);
}
