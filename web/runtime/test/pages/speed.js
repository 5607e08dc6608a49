// Measures how long a page waits, and compares the times with goals. Other work on the machine changes the times. With STRICT=1 the limits
// are the goals, and with TIMED=1 eight times the goals. Otherwise the script only prints the times.
import { Browser, check, serve, way } from './browser.js';

const general = 'aaa03c23b3724a16a56b629203edc62c';
const slack = process.env.STRICT ? 1 : process.env.TIMED ? 8 : Number.POSITIVE_INFINITY;
const hold = (ms, goal, unit = 'ms') => {
  check(ms <= goal * slack, `${Math.round(ms)} ${unit}, the goal is ${goal}`);
  return `${Math.round(ms)} ${unit}, the goal is ${goal}`;
};

way(async (step) => {
  const server = await serve();
  const browser = await Browser.start(server.origin, { console: process.env.LOUD ? console.log : undefined });
  let page = await browser.page();
  await page.evaluate(() => open({ store: 'memory' }));

  await step('The page is ready to predict from its cache in time', async () => {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 3; round++) {
      await page.close();
      page = await browser.page();
      least = Math.min(least, (await page.evaluate(() => open({ store: 'memory' }))).took);
    }
    return hold(least, 1500);
  });

  /** Runs in the page: returns the shortest and the median time of a prediction for a picture that is sent as base64, as by any client. */
  const predict = ([model, size, rounds]) =>
    (async () => {
      const image = await createImageBitmap(await (await fetch('/samples/09-sea-turtle.jpg')).blob());
      const canvas = new OffscreenCanvas(...(size ?? [image.width, image.height]));
      const tiles = Math.ceil(canvas.width / image.width); // so that the large picture has as much detail as a real one
      for (let i = 0; i < tiles * tiles; i++) {
        const [w, h] = [canvas.width / tiles, canvas.height / tiles];
        canvas.getContext('2d').drawImage(image, (i % tiles) * w, Math.floor(i / tiles) * h, w, h);
      }
      const blob = await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.9 });
      const times = [];
      for (let n = 0; n < rounds; n++) {
        const since = performance.now();
        const url = await new Promise((resolve) => {
          const reader = new FileReader();
          reader.onload = () => resolve(reader.result);
          reader.readAsDataURL(blob);
        });
        const inputs = [{ data: { image: { base64: url.slice(url.indexOf(',') + 1) } } }];
        const r = await call('POST', `/v2/models/${model}/outputs`, { inputs });
        if (r.status.code !== 10000) throw new Error(JSON.stringify(r.status));
        times.push(performance.now() - since);
      }
      times.sort((a, b) => a - b);
      return { least: times[0], median: times[rounds >> 1], size: blob.size };
    })();

  await step('The page predicts for a picture of 12 MP in time', async () => {
    const { least, size } = await page.evaluate(predict, [general, [4032, 3024], 5]);
    return `${hold(least, 600)}, ${(size / 1e6).toFixed(1)} MB`;
  });

  await step('The page predicts for a sample', async () => {
    const { least, median } = await page.evaluate(predict, [general, undefined, 30]);
    return `${least.toFixed(1)} ms at least, ${median.toFixed(1)} in the middle`;
  });

  await step('The page predicts five times a second for pictures of a webcam', async () => {
    const { median } = await page.evaluate(predict, [general, [640, 480], 20]);
    check((1000 / median) * slack >= 5, `${(1000 / median).toFixed(1)} results a second, the goal is 5`);
    return `${(1000 / median).toFixed(1)} results a second, the goal is 5`;
  });

  await step('The page trains two concepts with ten pictures each in time', async () => {
    const took = await page.evaluate(async () => {
      const list = await (await fetch('/samples/credits.tsv')).text();
      const names = [...list.matchAll(/^(\d\d-\S+\.jpg)/gm)].map((m) => m[1]).slice(0, 20);
      if (names.length !== 20) throw new Error(`${names.length} samples`);
      const inputs = await Promise.all(
        names.map(async (id, i) => ({
          id,
          data: {
            image: { base64: await picture(id) },
            concepts: [
              { id: 'one', value: Number(i < 10) },
              { id: 'other', value: Number(i >= 10) },
            ],
          },
        })),
      );
      await call('POST', '/v2/inputs', { inputs });
      for (;;) {
        const all = (await call('GET', '/v2/inputs?per_page=1000')).inputs;
        if (all.length === 20 && all.every((i) => i.status.code === 30000)) break;
        await new Promise((r) => setTimeout(r, 10));
      }
      const since = performance.now();
      const output_info = { data: { concepts: [{ id: 'one' }, { id: 'other' }] } };
      await call('POST', '/v2/models', { model: { id: 'two', output_info } });
      await call('POST', '/v2/models/two/versions');
      for (;;) {
        const { model } = await call('GET', '/v2/models/two/output_info');
        if (model.model_version.status.code === 21100) break;
        await new Promise((r) => setTimeout(r, 5));
      }
      return performance.now() - since;
    });
    return hold(took, 2000);
  });

  await browser.close();
  browser.forget();
  server.close();
});
