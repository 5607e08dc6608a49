import { m as parts } from '../../parts/words';
import { namespace } from '../../words.svelte';

export const m = namespace(import.meta.glob<typeof import('../../words/next/en.js')>('../../words/next/*.js'), parts);
