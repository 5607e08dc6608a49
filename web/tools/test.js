// Bundles src/**/*.test.ts with the modules that they test, and runs the bundles with Node's test runner.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';

const root = new URL('..', import.meta.url).pathname;
const out = join(root, 'node_modules/.sightline-test');
const tests = readdirSync(join(root, 'src'), { recursive: true })
  .map(String)
  .filter((f) => f.endsWith('.test.ts'));
await build({
  root,
  configFile: join(root, 'vite.test.config.ts'),
  logLevel: 'warn',
  build: {
    ssr: true,
    outDir: out,
    emptyOutDir: true,
    rollupOptions: { input: tests.map((f) => join(root, 'src', f)) },
  },
});
const files = readdirSync(out)
  .filter((f) => f.endsWith('.test.js'))
  .map((f) => join(out, f));
process.exit(spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' }).status ?? 1);
