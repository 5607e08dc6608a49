// What /sync shows of an application at the edge that these pages are of.
import type { Application } from '../../application.svelte';
import { nameOfEdge } from '../../session.svelte';
import type { Standing } from '../../standing.svelte';
import { Ledger } from '../sync/ledger.svelte';
import { m } from './words';

export class AtEdge extends Ledger {
  readonly #standing: Standing;

  constructor(application: Application, standing: Standing) {
    super(application, standing);
    this.#standing = standing;
  }

  protected get reads(): boolean {
    return this.#standing.status !== undefined;
  }
  get words() {
    return { place: m.edge_name({ name: nameOfEdge() }), waiting: m.edge_waiting(), safe: m.edge_safe() };
  }
  readonly keeps = true;
}
