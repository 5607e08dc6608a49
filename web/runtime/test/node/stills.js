// Tests HEIC, AVIF and JPEG XL in Node: their renditions, predictions, an animation as a video, and the errors of damage and of missing modules.
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, same, way } from '../pages/browser.js';
import { animation, damagedCodes, damagedStills, sha256, stills } from '../stills.js';

const { RUNTIME } = process.env;
const { Sightline } = await import(pathToFileURL(join(RUNTIME, 'node.js')).href);
const general = 'aaa03c23b3724a16a56b629203edc62c';

way(async (step) => {
  let s = await Sightline.open({ base: RUNTIME, workers: 2 });
  const predict = async (kind, data) => {
    const body = JSON.stringify({
      inputs: [{ data: { [kind]: { base64: Buffer.from(data).toString('base64') } } }],
      model: { output_info: { output_config: { sample_ms: 100 } } },
    });
    const { outputs } = await (await s.fetch(`/v2/models/${general}/outputs`, { method: 'POST', body })).json();
    return { ...outputs[0].status, ...outputs[0].data };
  };

  await step('The runtime makes the renditions of HEIC, AVIF and JPEG XL', async () => {
    const jpegs = await Promise.all(stills.map(({ data }) => s.rendition(new Blob([data]))));
    for (const [i, { name, rendition }] of stills.entries()) {
      same(jpegs[i].type, 'image/jpeg', `type of ${name}`);
      same(await sha256(jpegs[i]), rendition, `rendition of ${name}`);
    }
    return `${stills.length} pictures`;
  });

  await step('The runtime predicts for HEIC, AVIF and JPEG XL', async () => {
    for (const { name, data } of stills) {
      const { code, details, concepts } = await predict('image', data);
      same(code, 10000, `${name}, ${details}`);
      check(concepts.length > 0, `${name} without concepts`);
    }
  });

  await step('The runtime predicts for a picture that the program passes as a file', async () => {
    const url = 'http://file.invalid/';
    const ask = async (...parts) => {
      const body = JSON.stringify({ inputs: [{ data: { image: { url } } }] });
      const options = { method: 'POST', body, files: { [url]: new Blob(parts) } };
      const { outputs } = await (await s.fetch(`/v2/models/${general}/outputs`, options)).json();
      return outputs[0];
    };
    for (const { name, data } of stills)
      same((await ask(data)).data.concepts, (await predict('image', data)).concepts, `concepts of ${name}`);
    const [empty, large] = [await ask(), await ask(new Uint8Array(64_000_001))];
    same([empty.status.code, empty.status.details], [30300, 'could not read the file'], 'status of an empty file');
    same(large.status.code, 30105, 'status of more than 64 MB');
  });

  await step('The runtime predicts for an animation, and for a picture as a video', async () => {
    const { code, details, frames } = await predict('video', animation);
    same(code, 10000, details);
    same(
      frames.map((f) => f.frame_info.time),
      Array.from({ length: 12 }, (_, i) => 100 * i),
      'times',
    );
    same((await predict('video', stills[0].data)).frames.length, 1, 'frames of a picture');
  });

  await step('A damaged picture ends with a status, and later pictures have their usual bytes', async () => {
    const count = process.env.NIGHTLY ? 1000 : 40;
    const seen = {};
    for (const { name, data } of damagedStills(count)) {
      const { code, details } = await predict('image', data);
      check(damagedCodes.includes(code), `${name}: ${code}, ${details}`);
      seen[code] = (seen[code] ?? 0) + 1;
    }
    for (const { name, data, rendition } of stills)
      same(await sha256(await s.rendition(new Blob([data]))), rendition, `${name} afterwards`);
    return `${count}: ${JSON.stringify(seen)}`;
  });
  await s.close();

  await step('Without its decoding module, a picture ends with the name of the module', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'runtime-'));
    try {
      for (const name of readdirSync(RUNTIME))
        if (name !== 'manifest.json') symlinkSync(join(RUNTIME, name), join(dir, name));
      const manifest = JSON.parse(readFileSync(join(RUNTIME, 'manifest.json'), 'utf8'));
      const later = manifest.later.filter((e) => !/^(ffmpreg|jpegxl)\.wasm$/.test(e.name));
      writeFileSync(join(dir, 'manifest.json'), JSON.stringify({ ...manifest, later }));
      s = await Sightline.open({ base: dir, workers: 1 });
      for (const { name, data } of stills) {
        const module = name.endsWith('.jxl') ? 'jpegxl.wasm' : 'ffmpreg.wasm';
        const { code, details } = await predict('image', data);
        same(code, 30101, name);
        check(details.endsWith(`has no ${module}`), `${name}: ${details}`);
      }
      await s.close();
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
