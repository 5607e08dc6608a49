import { namespace, m as shell } from '../i18n/i18n.svelte';

export const m = namespace(import.meta.glob<typeof import('../words/parts/en.js')>('../words/parts/*.js'), shell);
