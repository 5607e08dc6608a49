// A browser for tests in other packages. It opens the page at ADDRESS, which starts a worker, and stays open until the end of standard
// input.
import { Browser } from '../browser.js';

const browser = await Browser.start(process.env.ADDRESS, { console: (text) => console.error(text) });
const page = await browser.context.newPage();
await page.goto('/');
await page.evaluate((script) => {
  const worker = new Worker(script, { type: 'module' });
  worker.onerror = (e) => console.error(e.message);
}, process.argv[2]);
process.stdin.resume();
process.stdin.on('end', async () => {
  await browser.context.close().catch(() => {});
  browser.forget();
  process.exit();
});
