// Tests films in Node: decoding and analysis with progress, cancellation, and the error without a decoding module.
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check, same, way } from '../pages/browser.js';

const { RUNTIME, FILMS } = process.env;
const { Sightline } = await import(pathToFileURL(join(RUNTIME, 'node.js')).href);
const general = 'aaa03c23b3724a16a56b629203edc62c';
const base64 = (name) => readFileSync(join(FILMS, name)).toString('base64');
const gif = 'R0lGODdhAQABAIAAAP8AAAAAACwAAAAAAQABAAACAkQBADs=';

way(async (step) => {
  let s = await Sightline.open({ base: RUNTIME, workers: 1 });
  const predict = async (films, options = {}, sample_ms = 500) => {
    const body = JSON.stringify({
      inputs: films.map((base64) => ({ data: { video: { base64 } } })),
      model: { output_info: { output_config: { sample_ms } } },
    });
    const { outputs } = await (
      await s.fetch(`/v2/models/${general}/outputs`, { method: 'POST', body, ...options })
    ).json();
    return outputs.map(({ status, data }) => ({ ...status, frames: data?.frames ?? [] }));
  };

  await step('The runtime predicts for the frames of two films and a GIF', async () => {
    const progress = [];
    const films = [base64('late.webm'), gif, base64('late.webm')];
    const [film, still, again] = await predict(films, { onFrames: (p) => progress.push(p) });
    same([film.code, still.code, again.code], [10000, 10000, 10000], `status, ${film.details}`);
    const times = film.frames.map(({ frame_info: { index, time } }) => [index, time]);
    check(times.length > 1, `${times.length} frames`);
    same(
      times,
      Array.from(times, (_, i) => [i, 500 * i]),
      'indices and times',
    );
    check(
      film.frames.every(({ data }) => data.concepts.length > 0),
      'a frame without concepts',
    );
    same(again.frames, film.frames, 'the same film');
    same(still.frames.length, 1, 'frames of a still picture');
    const each = (film) => Array.from(times, (_, i) => ({ film, done: i + 1, of: times.length }));
    same(progress, [...each(0), { film: 1, done: 1, of: 1 }, ...each(2)], 'progress');
    return `${times.length} frames`;
  });

  await step('The runtime predicts for a film that the program passes as a file', async () => {
    const url = 'http://films.invalid/late';
    const file = new Blob([readFileSync(join(FILMS, 'late.webm'))]);
    const ask = async (files) => {
      const body = JSON.stringify({ inputs: [{ data: { video: { url } } }] });
      const { outputs } = await (
        await s.fetch(`/v2/models/${general}/outputs`, { method: 'POST', body, files })
      ).json();
      return outputs[0];
    };
    const [expected] = await predict([base64('late.webm')], {}, 1000);
    const { status, data, input } = await ask({ [url]: file });
    same([status.code, input.data.video.url], [10000, url], 'status and address');
    same(data.frames, expected.frames, 'frames');
    const large = new Blob([file, new Uint8Array(80 << 20)]);
    same((await ask({ [url]: large })).status.code, 31105, 'status of more than 80 MB');
  });

  await step('Each frame comes with its picture and its answer', async () => {
    const url = 'http://films.invalid/late';
    const body = JSON.stringify({ inputs: [{ data: { video: { url } } }] });
    for (const [file, pictures] of [
      [new Blob([readFileSync(join(FILMS, 'late.webm'))]), 'thumbnail'],
      [new Blob([readFileSync(join(FILMS, 'late.webm'))]), 'full'],
      [new Blob([Buffer.from(gif, 'base64')]), 'full'],
    ]) {
      const seen = [];
      const onFrames = ({ frame }) => seen.push(frame);
      const options = { method: 'POST', body, files: { [url]: file }, pictures, onFrames };
      const { outputs } = await (await s.fetch(`/v2/models/${general}/outputs`, options)).json();
      const { frames } = outputs[0].data;
      same(seen.length, frames.length, 'frames');
      for (const [i, { picture, answer }] of seen.entries()) {
        const one = (await answer.json()).outputs[0].data.frames;
        same(one, [{ ...frames[i], frame_info: { index: 0, time: frames[i].frame_info.time } }], `frame ${i}`);
        same([...new Uint8Array(await picture.arrayBuffer())].slice(0, 3), [0xff, 0xd8, 0xff], `picture ${i}`);
      }
    }
  });

  await step('An aborted call stops the decoding of its film', async () => {
    const stop = new AbortController();
    await predict([base64('late.webm')], { signal: stop.signal, onFrames: () => stop.abort() }, 100).then(
      () => check(false, 'it was decoded'),
      (failure) => same(failure.name, 'AbortError', 'error'),
    );
    same((await predict([base64('late.webm')]))[0].code, 10000, 'status of the next one');
  });

  await step('A damaged film ends with a status', async () => {
    const [{ code, details }] = await predict([base64('late.webm').slice(0, 400)]);
    same([code, details], [31300, 'video damaged: its index is missing or cannot be read'], 'status');
  });

  await s.close();
  await step('Without the decoding module, a film ends with a status', async () => {
    const base = mkdtempSync(join(tmpdir(), 'runtime-films-'));
    try {
      for (const name of readdirSync(RUNTIME))
        if (name !== 'manifest.json') symlinkSync(join(RUNTIME, name), join(base, name));
      const manifest = JSON.parse(readFileSync(join(RUNTIME, 'manifest.json'), 'utf8'));
      const later = manifest.later.filter((e) => e.name !== 'ffmpreg.wasm');
      same(later.length, manifest.later.length - 1, 'other files that are for later');
      writeFileSync(join(base, 'manifest.json'), JSON.stringify({ ...manifest, later }));
      s = await Sightline.open({ base, workers: 1 });
      const [film, still] = await predict([base64('late.webm'), gif]);
      const want = 'videos cannot be decoded here: the server of the runtime has no decoding module';
      same([film.code, film.details], [31101, want], 'status');
      same(still.code, 10000, 'status of a GIF');
      await s.close();
    } finally {
      rmSync(base, { recursive: true });
    }
  });
});
