// The devices of an application and its newest changes. The origin knows most of both. Without contact, the local host answers with its own
// knowledge.
import type { Schemas, V2 } from '../../api/client';
import { Failure } from '../../api/console';
import type { Application } from '../../host/application.svelte';
import { m } from './words';

export type Device = Schemas['Device'];
export type Change = Schemas['PastOperation'];

const maxDevices = 1000; // number of devices that one call lists
const maxChanges = 50; // number of changes that a host lists

/** Reads at the origin, or at the local host if the origin is unreachable or if the host is an edge. */
async function readAtOrigin<T>(app: Application, read: (host: V2) => Promise<T>): Promise<T> {
  if (app.offline || app.edgeStatus) return read(app.v2);
  try {
    return await read(app.remote);
  } catch (failure) {
    if (failure instanceof Failure && failure.status === 0) return read(app.v2);
    throw failure;
  }
}

/** Returns the devices of an application, the origin first, and the time for which the list holds. */
export const readDevices = (app: Application) =>
  readAtOrigin(app, (host) => host.GET('/sync/devices', { params: { query: { per_page: maxDevices } } }));

/** Returns the newest changes of an application, newest first, and whether older ones are not stored there. */
export const readChanges = (app: Application) =>
  readAtOrigin(app, (host) => host.GET('/sync/history', { params: { query: { per_page: maxChanges } } }));

/** Returns the name of a device. */
export function deviceName({ kind, name = '' }: Device): string {
  switch (kind) {
    case 'origin':
      return m.input_site_origin();
    case 'edge':
      return m.edge_name({ name });
    case 'page':
      return name || m.sync_browser();
    case 'folder':
      return name || m.sync_folder();
  }
}

/** Reports whether a device is this browser. The replica of a page that lists itself has no ID. */
export const isThisBrowser = ({ kind, id }: Device, browser: string): boolean =>
  kind === 'page' && (id === undefined || id === browser);

/**
 * Returns the name of the person or the key that made a change. keys: the names of the application's keys by ID. person: the owner of the
 * application, who alone can sign in; empty if the name is unknown.
 */
export function makerName(
  { by, state }: Pick<Change, 'by' | 'state'>,
  keys: ReadonlyMap<string, string>,
  person: string,
): string {
  if (!by) return state === 'confirmed' ? m.input_site_origin() : person || m.account(); // the origin signs the changes of a page
  if (by === 'token') return m.sync_by_token();
  if (by === 'session') return person || m.account();
  return keys.get(by) || m.sync_by_key({ id: by.slice(0, 8) });
}
