import { m as parts } from '../../parts/words';
import { namespace } from '../../words.svelte';

export const m = namespace(import.meta.glob<typeof import('../../words/look/en.js')>('../../words/look/*.js'), parts);
