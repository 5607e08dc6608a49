// The state of the Sync page for a replica on this device, with the actions that only such a replica has.

import { base64Of } from '../../api/blobs';
import { pageToken } from '../../api/console';
import type { Application } from '../../host/application.svelte';
import type { Replica as Open } from '../../host/replica.svelte';
import type { Picture } from '../look/pictures';
import { type Digest, originDigest } from './digest';
import { SyncState } from './syncState.svelte';
import { m } from './words';

export class ReplicaSyncState extends SyncState {
  readonly open: Open;

  constructor(application: Application, open: Open) {
    super(application, open);
    this.open = open;
  }

  protected get reads(): boolean {
    return this.device.client !== undefined;
  }
  get words() {
    const waits = (n: string) => m.sync_work_waits({ n });
    return { place: m.consistency_browser(), pending: m.sync_waiting(), safe: m.sync_safe(), waits };
  }
  get isPersistent(): boolean {
    const { state } = this.device;
    return state.is === 'ready' && state.isPersistent;
  }
  get app() {
    return this.open.app;
  }
  get device() {
    return this.open.device;
  }
  get contact() {
    return this.open.contact;
  }
  get isOfflineByChoice() {
    return this.open.isOfflineByChoice;
  }
  setOfflineByChoice = (isOfflineByChoice: boolean) => this.open.setOfflineByChoice(isOfflineByChoice);

  /** Adds a picture under the id of its bytes: the same file is the same input on every device. */
  add = ({ id, name, blob }: Picture) =>
    this.write(async (v2) => {
      const image = { base64: await base64Of(blob) };
      await v2.POST('/inputs', { body: { inputs: [{ id, data: { image, metadata: { name } } }] } });
    });

  /** Returns the digest of the replica's state and the digest of the origin's. */
  async digests(): Promise<[Digest, Digest]> {
    return [await this.open.digest(), await originDigest(this.app.id, (await pageToken(this.app.id)).token)];
  }
}

/** Returns the hash of the module that folds the log on this device, from the runtime's manifest; empty if the manifest has none. */
export async function core(): Promise<string> {
  const path = '/runtime/manifest.json';
  const manifest = (await caches.match(path)) ?? (await fetch(path));
  const { files }: { files: { url: string; sha256: string }[] } = await manifest.json();
  return files.find(({ url }) => url.startsWith('guest-'))?.sha256 ?? '';
}
