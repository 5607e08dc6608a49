// Tests HEIC, AVIF and JPEG XL in a page: the first picture of a kind loads its decoding module, and no later one loads it again.
import { damagedCodes, damagedStills, stills } from '../stills.js';
import { Browser, check, same, serve, way } from './browser.js';

way(async (step) => {
  const server = await serve();
  const browser = await Browser.start(server.origin);
  const page = await browser.page();
  const requests = (name) =>
    [...server.requestCounts].filter(([path]) => path.includes(name)).map(([, times]) => times);
  /** Returns the SHA-256 of the renditions of pictures, made at the same time. */
  const renditions = (pictures) =>
    page.evaluate(
      (all) =>
        Promise.all(
          all.map(async (base64) => {
            const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
            const jpeg = await s.rendition(new Blob([bytes]));
            const sum = await crypto.subtle.digest('SHA-256', await jpeg.arrayBuffer());
            return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, '0')).join('');
          }),
        ),
      pictures.map(({ data }) => data.toString('base64')),
    );
  const checkRenditions = async (pictures) =>
    same(
      await renditions(pictures),
      pictures.map((p) => p.rendition),
      'renditions',
    );

  await step('A page without a HEIC, AVIF or JPEG XL loads no decoding module', async () => {
    await page.evaluate(() => open({ store: 'memory', workers: 2 }));
    same([requests('ffmpreg'), requests('jpegxl')], [[], []], 'requests for the modules');
  });

  await step('The page decodes HEIC and AVIF with one module', async () => {
    await checkRenditions(stills.filter(({ name }) => !name.endsWith('.jxl')));
    same([requests('ffmpreg'), requests('jpegxl')], [[1], []], 'requests for the modules');
  });

  await step('The page decodes JPEG XL with another module', async () => {
    await checkRenditions(stills);
    same([requests('ffmpreg'), requests('jpegxl')], [[1], [1]], 'requests for the modules');
  });

  await step('A damaged picture ends with a status, and later pictures have their usual bytes', async () => {
    const seen = {};
    for (const { name, data } of damagedStills(1000)) {
      const body = JSON.stringify({ inputs: [{ data: { image: { base64: data.toString('base64') } } }] });
      const { code, details } = await page.evaluate(async (body) => {
        const answer = await s.fetch('/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs', { method: 'POST', body });
        return (await answer.json()).outputs[0].status;
      }, body);
      check(damagedCodes.includes(code), `${name}: ${code}, ${details}`);
      seen[code] = (seen[code] ?? 0) + 1;
    }
    await checkRenditions(stills);
    return JSON.stringify(seen);
  });

  same(browser.faults, [], 'faults');
  await browser.close();
  browser.forget();
  server.close();
});
