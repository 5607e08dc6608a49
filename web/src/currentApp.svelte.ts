// Which application the pages are about: the one in the address, else the one that was chosen last.
import * as api from './console';
import { offlineApps } from './offlineApps';
import { pastedKeys } from './pastedKeys.svelte';
import { Resource } from './resource.svelte';
import { here } from './router.svelte';
import { isWorking } from './routes';
import { edge, inside, sessionState } from './session.svelte';
import { readChoice, saveChoice } from './storage';

/** An application as the pages name it. */
export interface Named {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly local_only?: boolean; // it stays at the origin, so nothing keeps a copy of it
}

/** The applications of who is signed in; at an edge those that keys were pasted of, and at a demonstration's all. */
export const mine = new Resource<readonly (Named & { readonly inputs: number })[]>(async () => {
  const here = edge();
  return here && !here.open ? pastedKeys().map((one) => ({ ...one, inputs: 0 })) : api.apps(); // how many, no list of keys says
});

let last = $state(readChoice('app'));

/** The available applications. If no server answers: those with a copy on this device, or with a key in this tab. */
export function applications(): readonly Named[] {
  if (mine.data) return mine.data;
  if (edge()) return pastedKeys();
  return sessionState().is === 'failed' || mine.failure !== undefined ? offlineApps() : [];
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
  saveChoice('app', id);
}

let sought = $state(''); // the absent application after which the list was read again

/** The application of a working page that the list lacks, which may be an old one; undefined: there is none, or it is not known. */
export function absent(): string | undefined {
  const { place } = here();
  const id = place && isWorking(place.route) && inside() && edge()?.open !== false ? place.params.app : undefined;
  return id && mine.data && !mine.data.some((one) => one.id === id) ? id : undefined;
}

/** Reads the list of applications again, once for each one that it lacks. */
export function lookAgain(id: string): void {
  if (id === sought) return;
  sought = id;
  void mine.load();
}

/** Whether the reader lacks the application of the working page. */
export function isMissing(): boolean {
  const id = absent();
  return id !== undefined && id === sought && !mine.loading;
}
