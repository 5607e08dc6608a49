import { m as parts } from '../../parts/words';
import { namespace } from '../../words.svelte';

export const m = namespace(
  import.meta.glob<typeof import('../../words/applications/en.js')>('../../words/applications/*.js'),
  parts,
);
