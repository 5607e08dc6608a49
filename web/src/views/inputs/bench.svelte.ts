import type { Application } from '../../application.svelte';
import { oneForEach } from '../../each';
import { Work } from './work.svelte';

/** What is being done with the inputs of an application: it goes on while other pages are shown. */
export const bench = oneForEach((app: Application) => new Work(app));
