// Tests films in a page: the first film loads the decoding module, and no later film loads it again.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Browser, check, same, serve, way } from './browser.js';

const { FILMS } = process.env;
const path = '/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs';
const base64 = readFileSync(join(FILMS, 'late.webm')).toString('base64');
const body = (sample_ms) =>
  JSON.stringify({
    inputs: [{ data: { video: { base64 } } }],
    model: { output_info: { output_config: { sample_ms } } },
  });

way(async (step) => {
  const server = await serve();
  const browser = await Browser.start(server.origin);
  const page = await browser.page();
  const modules = () =>
    [...server.requestCounts].filter(([name]) => name.includes('ffmpreg')).map(([, times]) => times);
  const predict = (sample_ms) =>
    page.evaluate(
      async ([path, body]) => {
        const progress = [];
        const response = await s.fetch(path, { method: 'POST', body, onFrames: (p) => progress.push(p.done) });
        const { outputs } = await response.json();
        return { ...outputs[0], progress };
      },
      [path, body(sample_ms)],
    );

  await step('A page without a film loads no decoding module', async () => {
    await page.evaluate(() => open({ store: 'memory', workers: 1 }));
    const { outputs } = await page.evaluate(
      async (path) =>
        call('POST', path, { inputs: [{ data: { image: { base64: await picture('35-slice-of-pizza.jpg') } } }] }),
      path,
    );
    same(outputs[0].status.code, 10000, 'status of a picture');
    same(modules(), [], 'requests for the module');
  });

  await step('The page predicts for the frames of a film', async () => {
    const { status, data, progress } = await predict(500);
    same(status.code, 10000, `status, ${status.details}`);
    const times = data.frames.map(({ frame_info }) => frame_info.time);
    check(times.length > 1, `${times.length} frames`);
    same(
      times,
      Array.from(times, (_, i) => 500 * i),
      'times',
    );
    same(
      progress,
      Array.from(times, (_, i) => i + 1),
      'progress',
    );
    return `${times.length} frames`;
  });

  await step('The page decodes another film with the same module', async () => {
    same((await predict(1000)).status.code, 10000, 'status');
    same(modules(), [1], 'requests for the module');
  });

  await step('An aborted call stops the decoding of its film', async () => {
    const name = await page.evaluate(
      async ([path, body]) => {
        const stop = new AbortController();
        const answer = s.fetch(path, { method: 'POST', body, signal: stop.signal, onFrames: () => stop.abort() });
        return answer.then(
          () => 'answered',
          (failure) => failure.name,
        );
      },
      [path, body(100)],
    );
    same(name, 'AbortError', 'error');
    same((await predict(1000)).status.code, 10000, 'status of the next one');
  });

  same(browser.faults, [], 'faults');
  await browser.close();
  browser.forget();
  server.close();
});
