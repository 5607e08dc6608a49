import type { Application } from '../../application.svelte';
import { memoByKey } from '../../memo';
import { BulkEdit } from './bulkEdit.svelte';

/** The running work on an application's inputs, which continues while other pages are shown. */
export const bulkEdits = memoByKey((app: Application) => new BulkEdit(app));
