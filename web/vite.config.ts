import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { finish } from './tools/finish.js';
import { licences } from './tools/licences.js';
import { samples } from './tools/samples.js';

export default defineConfig({
  logLevel: 'warn', // the finish plugin prints the gzipped sizes
  plugins: [
    // With 'tree', Svelte clones elements of the page's own document instead of a template's. Chromium never releases a picture that was
    // cloned from a template, nor the page that displayed it.
    svelte({ configFile: false, compilerOptions: { fragments: 'tree' } }),
    samples('../models/general-v1.3/names'),
    licences(),
    finish({ shell: 60_000 }),
  ],
  build: {
    target: 'es2022',
    rolldownOptions: {
      checks: { bundlerTimings: false },
      // The first screen needs all modules that index.html imports. One file of them is smaller than one for each, and needs one request.
      output: { codeSplitting: { groups: [{ name: 'shell', tags: ['$initial'] }] } },
    },
    manifest: true,
    emptyOutDir: false, // the finish plugin empties the folder, except for .gitignore
    assetsInlineLimit: 0,
    // Before it shows a page, the shell preloads only the page's styles, because they must be loaded before the page is drawn. The page's
    // modules import the others themselves. A list of those would make the shell 3.5 kB longer.
    modulePreload: {
      polyfill: false,
      resolveDependencies: (_, needed) => needed.filter((file) => file.endsWith('.css')),
    },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000, // kB; the API reference is large, and the finish plugin checks the size of the shell
  },
});
