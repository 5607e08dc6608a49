import type { Application } from '../../host/application.svelte';
import { BulkEdit } from './bulkEdit.svelte';
import { memoByKey } from './memo';

/** Returns the bulk edits of an application, which continue while the person visits other pages. */
export const bulkEdits = memoByKey((app: Application) => new BulkEdit(app));
