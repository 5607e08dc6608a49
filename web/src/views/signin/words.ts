import { namespace } from '../../i18n/i18n.svelte';
import { m as shared } from '../../i18n/shared';

export const m = namespace(
  import.meta.glob<typeof import('../../words/signin/en.js')>('../../words/signin/*.js'),
  shared,
);
