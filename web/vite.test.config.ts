import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The tested modules draw nothing. They need only Svelte's runes.
export default defineConfig({
  plugins: [svelte({ configFile: false })],
  ssr: { noExternal: true },
  build: { target: 'node20' },
});
