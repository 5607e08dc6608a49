// The current application of the pages: the one in the URL, otherwise the last selected one.
import * as api from '../api/console';
import { readChoice, saveChoice } from '../browser/storage';
import { currentAddress } from '../routing/router.svelte';
import { needsApp } from '../routing/routes';
import { claimOfflineApps, ownOfflineApps } from './offlineApps';
import { pastedKeys } from './pastedKeys.svelte';
import { Resource } from './resource.svelte';
import { edge, hasAccess, sessionState } from './session.svelte';

/** The name and language of an application. */
export interface AppInfo {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly local_only?: boolean; // it stays at the origin, so it has no replicas
}

/** The applications of the signed-in user. At an edge, they are those of the pasted keys; at a demonstration's edge, all of them. */
export const myApps = new Resource<readonly (AppInfo & { readonly inputs: number })[]>(async () => {
  const edgeInfo = edge();
  if (edgeInfo && !edgeInfo.open) return pastedKeys().map((one) => ({ ...one, inputs: 0 })); // the list of keys has no counts
  const apps = await api.apps();
  const session = sessionState();
  const account = session.is === 'known' ? session.session.account : null;
  if (account) claimOfflineApps(account.id, apps);
  return apps;
});

let lastApp = $state(readChoice('app'));

/** Returns the available applications. If no server answers, these are those with a replica on this device or a key in this tab. */
export function applications(): readonly AppInfo[] {
  if (myApps.data) return myApps.data;
  if (edge()) return pastedKeys();
  return sessionState().is === 'failed' || myApps.failure !== undefined ? ownOfflineApps() : [];
}

/** Returns the current application of the pages; undefined if there is none, or if it is not known yet. */
export function currentApp(): AppInfo | undefined {
  const all = applications();
  const { place } = currentAddress();
  const appId = place && (needsApp(place.route) || place.route === '/apps/:app') ? place.params.app : undefined;
  return all.find(({ id }) => id === appId) ?? all.find(({ id }) => id === lastApp) ?? all[0];
}

/** Makes an application the last selected one, and stores its id. */
export function selectApp(id: string): void {
  if (id === lastApp) return;
  lastApp = id;
  saveChoice('app', id);
}

let reloadedFor = $state(''); // the missing application that caused the last reload of the list

/**
 * Returns the id of the application in the URL if the loaded list, which may be old, lacks it. undefined: the list contains it, or no list
 * is loaded.
 */
export function missingApp(): string | undefined {
  const { place } = currentAddress();
  const id = place && needsApp(place.route) && hasAccess() && edge()?.open !== false ? place.params.app : undefined;
  return id && myApps.data && !myApps.data.some((one) => one.id === id) ? id : undefined;
}

/** Reloads the list of applications, once for each missing one. */
export function reloadApps(id: string): void {
  if (id === reloadedFor) return;
  reloadedFor = id;
  void myApps.load();
}

/** Reports whether the application in the URL is still missing after the list was reloaded. */
export function isAppMissing(): boolean {
  const id = missingApp();
  return id !== undefined && id === reloadedFor && !myApps.loading;
}
