import { m as parts } from '../../parts/words';
import { namespace } from '../../words.svelte';

export const m = namespace(
  import.meta.glob<typeof import('../../words/account/en.js')>('../../words/account/*.js'),
  parts,
);
