// This browser's list of the applications that are stored offline on this device. The pages show it while no server answers.
import type { Salvaged } from '../../runtime/src/index';
import { readChoice, saveChoice } from '../browser/storage';

export interface OfflineApp {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly account?: string; // whose session created it; copies of earlier programs get it later, see claimOfflineApps
  readonly offline?: boolean; // the person switched contact off
  readonly eager?: boolean; // downloads all pictures at once, not on demand
  readonly whole?: boolean; // the replica was once as complete as the origin
  readonly contact?: string; // time of the origin's last answer, up to a minute old
  readonly local_only?: boolean; // see AppInfo
  readonly salvaged?: Salvaged; // set if the replica was damaged, until it is replaced
}

/** Returns the applications that are stored offline on this device. */
export function offlineApps(): readonly OfflineApp[] {
  return readList('copies').filter(
    (one): one is OfflineApp => typeof one?.id === 'string' && typeof one.name === 'string',
  );
}

/** Returns the stored entry of an application; undefined if there is none. */
export function offlineApp(id: string): OfflineApp | undefined {
  return offlineApps().find((one) => one.id === id);
}

/**
 * Returns the copies that open without a network: those of the account of the last session here. After a sign-out there are none. An
 * expired session is not a sign-out.
 */
export function ownOfflineApps(): readonly OfflineApp[] {
  const account = readChoice('account');
  return offlineApps().filter((one) => account !== undefined && one.account === account);
}

/** Reports whether another account owns the copy of an application on this device. */
export function isForeign(id: string): boolean {
  const owner = offlineApp(id)?.account;
  return owner !== undefined && owner !== readChoice('account');
}

/** Gives the copies without an account that are among an account's applications to the account. */
export function claimOfflineApps(account: string, apps: readonly { id: string }[]): void {
  for (const one of offlineApps())
    if (!one.account && apps.some(({ id }) => id === one.id)) saveOfflineApp({ ...one, account });
}

/** Stores an entry, and replaces the previous one of the application. */
export function saveOfflineApp(app: OfflineApp): void {
  saveChoice('copies', JSON.stringify([...offlineApps().filter((one) => one.id !== app.id), app]));
  setDeclined(app.id, false);
}

/** Removes the entry of an application. */
export function removeOfflineApp(id: string): void {
  const left = offlineApps().filter((one) => one.id !== id);
  saveChoice('copies', left.length ? JSON.stringify(left) : undefined);
}

/** Reports whether the person removed an offline copy that these pages had created. They do not create it again. */
export function isDeclined(id: string): boolean {
  return readList('declined').includes(id);
}

/** Stores whether the person declines an offline copy of an application. */
export function setDeclined(id: string, declined = true): void {
  const others = readList('declined').filter((one) => one !== id);
  const all = declined ? [...others, id] : others;
  saveChoice('declined', all.length ? JSON.stringify(all) : undefined);
}

// biome-ignore lint/suspicious/noExplicitAny: stored values may have any form
function readList(name: 'copies' | 'declined'): any[] {
  try {
    const all = JSON.parse(readChoice(name) ?? '[]');
    return Array.isArray(all) ? all : [];
  } catch {
    return [];
  }
}
