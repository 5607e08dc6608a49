// The data of an account on this device: offline copies, the pictures of the page Look, pictures that wait to be added, saved searches and
// dropped pictures. The stored program of the pages is nobody's.

import * as api from './api/console';
import { readChoice, saveChoice } from './browser/storage';
import { droppedPictures } from './clauses/pictures';
import { closeApplications } from './host/application.svelte';
import { runtime } from './host/device.svelte';
import { claimOfflineApps, type OfflineApp, offlineApps } from './host/offlineApps';
import { appOf, nameOf, Queue } from './views/inputs/queue';

const ofApp = /^(?:searches|again)\.(.+)$/; // names of values in the local storage that belong to an application
const copyOf = (id: string) => `copy-${id}`;

/** Reports whether this device has data of an account that a person would miss. Copies of other accounts do not count. */
export async function hasDeviceData(account: string): Promise<boolean> {
  const isOthers = (id: string) => offlineApps().some((one) => one.id === id && isOfOther(one, account));
  const ids = [
    ...offlineApps().map(({ id }) => id),
    ...names().flatMap((name) => ofApp.exec(name)?.[1] ?? []),
    ...(await Queue.unfinished()),
  ];
  return ids.some((id) => !isOthers(id)) || readChoice('looked') !== undefined || hasDropped();
}

/** Signs out. Without `keep` it removes the account's data from this device. */
export const signOut = ({ keep = false } = {}): Promise<void> => leave(api.signOut, '/sign-in', keep);

/** Deletes the account, and removes its data from this device. */
export const deleteAccount = (password: string): Promise<void> =>
  leave(() => api.leave(password), '/sign-in#left', false);

/**
 * Ends the session, forgets the account on this device, and loads a new page: nothing of the account stays in memory, nor in other tabs.
 * If the session cannot be ended, it rejects. Otherwise the promise stays pending until the new page is loaded.
 */
async function leave(end: () => Promise<unknown>, to: string, keep: boolean): Promise<void> {
  const account = readChoice('account');
  const stores = await allStores();
  if (account) claimOfflineApps(account, await api.apps()); // an earlier copy of the account goes with its data
  await end();
  saveChoice('account', undefined); // the other tabs follow
  if (!keep) forget(account, stores);
  await closeApplications();
  if (!keep) await finishRemoval();
  location.replace(to);
  await new Promise(() => {});
}

/**
 * Forgets the data of an account on this device, and lists the stores that `finishRemoval` deletes. Copies that are not the account's stay,
 * with their saved searches.
 */
function forget(account: string | undefined, stores: readonly string[]): void {
  const kept = offlineApps().filter((one) => isOfOther(one, account));
  const isKept = (name: string) => kept.some(({ id }) => copyOf(id) === name || nameOf(id) === name);
  saveChoice('leaving', JSON.stringify(stores.filter((name) => !isKept(name))));
  saveChoice('copies', kept.length ? JSON.stringify(kept) : undefined);
  for (const name of names()) {
    const app = ofApp.exec(name)?.[1];
    if (app && !kept.some(({ id }) => id === app)) localStorage.removeItem(name);
  }
  for (const name of ['app', 'declined', 'looked'] as const) saveChoice(name, undefined);
}

const isOfOther = (one: OfflineApp, account: string | undefined) => one.account !== account;

async function hasDropped(): Promise<boolean> {
  try {
    return await caches.has(droppedPictures);
  } catch {
    return false; // the browser permits no storage
  }
}

/** Deletes the stores that a sign-out left. The next start of the pages tries again if a tab still has one open. */
export async function finishRemoval(): Promise<void> {
  if (await hasDropped()) await caches.delete(droppedPictures);
  const left: string[] = JSON.parse(readChoice('leaving') ?? '[]');
  const removed = await Promise.all(left.map(removeStore));
  const open = left.filter((_, i) => !removed[i]);
  saveChoice('leaving', open.length ? JSON.stringify(open) : undefined);
}

/** Removes what the browser stores of an application that was deleted, except its offline copy, which the origin purges. */
export function forgetApp(id: string): void {
  for (const name of names()) if (ofApp.exec(name)?.[1] === id) localStorage.removeItem(name);
  if (readChoice('app') === id) saveChoice('app', undefined);
  void Queue.remove(id);
}

const patience = 10_000; // ms to wait until other tabs have closed a store
const pause = 100; // ms

/** Deletes a store, and reports whether it did. A store of a copy that was created again stays. */
async function removeStore(name: string): Promise<boolean> {
  const app = appOf(name);
  if (app !== undefined) return Queue.remove(app).then(() => true);
  if (offlineApps().some(({ id }) => copyOf(id) === name)) return true;
  const { Sightline } = await runtime();
  for (const startedAt = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, pause)))
    try {
      await Sightline.remove(name);
      return true;
    } catch {
      if (performance.now() - startedAt > patience) return false;
    }
}

/** Returns the names of all private stores and of the stored queues; none if the browser stores nothing. */
const allStores = async (): Promise<readonly string[]> => {
  const queues = (await Queue.apps()).map(nameOf);
  try {
    return [...queues, ...(await (await runtime()).Sightline.stores())];
  } catch {
    return queues;
  }
};

/** Returns the names of the values in the local storage; none if the browser permits no storage. */
function names(): string[] {
  try {
    return Object.keys(localStorage);
  } catch {
    return [];
  }
}
