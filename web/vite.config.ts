import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { finish } from './tools/finish.js';
import { licences } from './tools/licences.js';
import { samples } from './tools/samples.js';

export default defineConfig({
  logLevel: 'warn', // finish lists what is loaded, gzipped
  plugins: [
    // Parts are cloned from elements of the page's own document: pictures that have come from a template's stay in a list of Chromium's
    // for good, and with each the whole page that it was on.
    svelte({ configFile: false, compilerOptions: { fragments: 'tree' } }),
    samples('../models/general-v1.3/names'),
    licences(),
    finish({ shell: 60_000 }),
  ],
  build: {
    target: 'es2022',
    rolldownOptions: { checks: { bundlerTimings: false } },
    manifest: true,
    emptyOutDir: false, // finish empties it, but for .gitignore
    assetsInlineLimit: 0,
    // The shell preloads only its styles, because they must be loaded before the page is drawn. The shell's modules name the modules that
    // they import. Preloads for those would make the shell 3.5 kB longer.
    modulePreload: {
      polyfill: false,
      resolveDependencies: (_, needed) => needed.filter((file) => file.endsWith('.css')),
    },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000, // kB: the API reference; what counts is measured by finish
  },
});
