// Writes the module next to the scripts, compressed by brotli, if it has changed. Quality 9 takes 2 s and gives 2.5 MB.
// Quality 11 takes half a minute and gives 2.1 MB: RELEASE asks for it, and compresses again.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

const built = new URL('../../../wasm/dist/', import.meta.url).pathname;
const dist = new URL('../served/dist/', import.meta.url).pathname;
const wanted = new Map(
  ['guest', 'kernels', 'kernels-relaxed']
    .map((stem) => [stem, join(built, `${stem}.wasm`)])
    .filter(([, path]) => existsSync(path))
    .map(([stem, path]) => {
      const data = readFileSync(path);
      const hash = createHash('sha256').update(data).digest('hex').slice(0, 16);
      return [`${stem}-${hash}.wasm.br`, data];
    }),
);
for (const name of readdirSync(dist)) if (name.endsWith('.br') && !wanted.has(name)) rmSync(join(dist, name));
for (const [name, data] of wanted) {
  if (!process.env.RELEASE && existsSync(join(dist, name))) continue;
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: process.env.RELEASE ? 11 : 9,
    [constants.BROTLI_PARAM_LGWIN]: process.env.RELEASE ? 24 : 22,
    [constants.BROTLI_PARAM_SIZE_HINT]: data.length,
  };
  const squeezed = brotliCompressSync(data, { params });
  writeFileSync(join(dist, name), squeezed);
  console.log(`${name}: ${data.length} bytes, ${squeezed.length} compressed`);
}
