import type { Application } from '../../application.svelte';
import { memoByKey } from '../../memo';
import { BulkEdit } from './bulkEdit.svelte';

/** Returns the bulk edits of an application, which continue while the person visits other pages. */
export const bulkEdits = memoByKey((app: Application) => new BulkEdit(app));
