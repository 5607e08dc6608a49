import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The units that are tested draw nothing: of Svelte they need its runes alone.
export default defineConfig({
  plugins: [svelte({ configFile: false })],
  ssr: { noExternal: true },
  build: { target: 'node20' },
});
