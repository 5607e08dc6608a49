import { defineConfig } from 'vite';

// The units that are tested draw nothing, so their build needs no plugin.
export default defineConfig({ ssr: { noExternal: true }, build: { target: 'node20' } });
