import type { Application } from '../../application.svelte';
import { oneForEach } from '../../each';
import { Work } from './work.svelte';

/** The running work on an application's inputs, which continues while other pages are shown. */
export const bench = oneForEach((app: Application) => new Work(app));
