// What is being done with the inputs of each application: it goes on while other pages are shown.
import type { Application } from '../../application.svelte';
import { Work } from './work.svelte';

const all = new Map<Application, Work>();

/** The work of an application: one for as long as the pages are open. */
export function bench(app: Application): Work {
  let one = all.get(app);
  if (!one) {
    one = new Work(app);
    all.set(app, one);
  }
  return one;
}
