import { m as clauses } from '../../clauses/words';
import { namespace } from '../../i18n/i18n.svelte';

export const m = namespace(
  import.meta.glob<typeof import('../../words/search/en.js')>('../../words/search/*.js'),
  clauses,
);
