// The state of the page /sync for an application at the edge that serves these pages.
import type { Application } from '../../host/application.svelte';
import type { EdgeStatus } from '../../host/edgeStatus.svelte';
import { nameOfEdge } from '../../host/session.svelte';
import { SyncState } from '../sync/syncState.svelte';
import { m } from './words';

export class EdgeSyncState extends SyncState {
  readonly #edgeStatus: EdgeStatus;

  constructor(application: Application, edgeStatus: EdgeStatus) {
    super(application, edgeStatus);
    this.#edgeStatus = edgeStatus;
  }

  protected get reads(): boolean {
    return this.#edgeStatus.status !== undefined;
  }
  get words() {
    const waits = (n: string) => m.edge_work_waits({ n });
    return { place: m.edge_name({ name: nameOfEdge() }), pending: m.edge_waiting(), safe: m.edge_safe(), waits };
  }
  readonly isPersistent = true;
}
