import type { Application } from '../../application.svelte';
import { memoByKey } from '../../memo';
import { Work } from './bulkEdit.svelte';

/** The running work on an application's inputs, which continues while other pages are shown. */
export const bench = memoByKey((app: Application) => new Work(app));
