// The package as users install it: runs its examples as its README describes, and checks its types.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, same, way } from '../pages/browser.js';

const { RUNTIME, SAMPLES } = process.env;
const sample = (number) => readdirSync(SAMPLES).find((name) => name.startsWith(`${number}-`));

const consumer = `import { Sightline, type Client, type CopyStatus } from '@sightline/runtime';
const client: Client = await Sightline.open({ store: 'memory' });
const answer: Response = await client.fetch('/v2/models');
const queued: number | undefined = (await client.sync?.status() as CopyStatus | undefined)?.queued;
// @ts-expect-error: there is no such option
await Sightline.open({ shop: 'memory' });
export { answer, queued };
`;

way(async (step) => {
  const folder = mkdtempSync(join(tmpdir(), 'runtime-package-'));
  const run = (...args) =>
    new Promise((resolve, reject) =>
      execFile(process.execPath, args, { cwd: folder }, (failure, stdout, stderr) =>
        failure
          ? reject(new Error(`${args[0]}: ${failure.message}\n${stdout}${stderr}`))
          : resolve(stdout.trim().split('\n')),
      ),
    );
  for (const part of ['package.json', 'examples']) cpSync(join('..', part), join(folder, part), { recursive: true });
  symlinkSync(RUNTIME, join(folder, 'dist'));

  await step('The package has its files', async () => {
    const { files, exports: all, types } = JSON.parse(readFileSync('../package.json', 'utf8'));
    same(files.includes('dist') && files.includes('examples'), true, 'its folders');
    const paths = [types, ...Object.values(all).flatMap((one) => (typeof one === 'string' ? one : Object.values(one)))];
    for (const name of paths) check(readFileSync(join(folder, name)).length > 0, `${name} is empty`);
  });

  await step('The example predict.js prints concepts', async () => {
    const lines = await run('examples/predict.js', join(SAMPLES, sample('21')));
    check(/^0\.9\d\d animal$/.test(lines[0]) && lines.length === 20, `it says ${lines}`);
  });

  await step('The example teach.js trains two concepts', async () => {
    for (const [concept, numbers] of Object.entries({ bird: ['07', '12', '16', '23'], insect: ['10', '21', '22'] })) {
      mkdirSync(join(folder, concept));
      for (const n of numbers) cpSync(join(SAMPLES, sample(n)), join(folder, concept, `${n}.jpg`));
    }
    const lines = await run('examples/teach.js', 'bird', 'insect', join(SAMPLES, sample('37')));
    check(lines.length === 2 && lines[0].endsWith(' insect'), `it says ${lines}`);
  });

  await step('The example search.js finds the same pictures in two runs', async () => {
    const query = join(SAMPLES, sample('10'));
    const first = await run('examples/search.js', 'store', query, 'insect');
    check(first.length === 3 && /^(1\.000|0\.999) 10\.jpg$/.test(first[0]), `it says ${first}`);
    same(await run('examples/search.js', 'store', query), first, 'what a second run finds');
  });

  await step('A program compiles with the types of the package', async () => {
    writeFileSync(join(folder, 'consumer.mts'), consumer);
    const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
    await run(tsc, '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', 'consumer.mts');
  });
  rmSync(folder, { recursive: true });
});
