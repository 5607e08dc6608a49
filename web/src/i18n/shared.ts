import { namespace, m as shell } from './i18n.svelte';

export const m = namespace(import.meta.glob<typeof import('../words/shared/en.js')>('../words/shared/*.js'), shell);
