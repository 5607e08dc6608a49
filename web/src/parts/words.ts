import { namespace, m as shell } from '../words.svelte';

export const m = namespace(import.meta.glob<typeof import('../words/parts/en.js')>('../words/parts/*.js'), shell);
