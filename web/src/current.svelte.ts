// Which application the pages are about: the one in the address, else the one that was chosen last.
import * as api from './console';
import { copies } from './copies';
import { keep, kept } from './kept';
import { Resource } from './resource.svelte';
import { here } from './router.svelte';
import { isWorking } from './routes';
import { sessionState } from './session.svelte';

/** An application as the pages name it. */
export interface Named {
  readonly id: string;
  readonly name: string;
  readonly language: string;
}

/** The applications of who is signed in. */
export const mine = new Resource(api.apps);

let last = $state(kept('app'));

/** The applications that there are to choose from: where nobody can be asked, those with a copy on this device. */
export function applications(): readonly Named[] {
  if (mine.data) return mine.data;
  return sessionState().is === 'failed' || mine.failure !== undefined ? copies() : [];
}

/** The application that the pages are about; undefined: there is none, or it is not known yet. */
export function current(): Named | undefined {
  const all = applications();
  const { place } = here();
  const asked = place && (isWorking(place.route) || place.route === '/apps/:app') ? place.params.app : undefined;
  return all.find(({ id }) => id === asked) ?? all.find(({ id }) => id === last) ?? all[0];
}

/** Remembers the application that was chosen. */
export function choose(id: string): void {
  if (id === last) return;
  last = id;
  keep('app', id);
}
