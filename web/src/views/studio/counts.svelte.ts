// How much of what an application holds, for the side bar.
import type { Application } from '../../application.svelte';
import type { components } from '../../v2';

type Schemas = components['schemas'];
const page = 200; // own models are listed before all others

export class Counts {
  inputs = $state<number>();
  models = $state<number>();
  #of: string | undefined; // the application
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Counts again, soon: much that changes at once is counted once. */
  soon(app: Application): void {
    if (this.#of !== app.id) {
      this.inputs = this.models = undefined;
      this.#of = app.id;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        void this.#count(app);
      },
      this.inputs === undefined ? 0 : 400,
    );
  }

  async #count(app: Application): Promise<void> {
    try {
      const { counts } = await app.call<Schemas['CountsAnswer']>('GET', '/inputs/status');
      const { models } = await app.call<Schemas['ModelsAnswer']>('GET', `/models?per_page=${page}`);
      if (this.#of !== app.id) return;
      this.inputs = (counts?.processed ?? 0) + (counts?.to_process ?? 0) + (counts?.errors ?? 0);
      this.models = (models ?? []).filter((model) => model.app_id === app.id).length;
    } catch {
      // the page itself says what is wrong
    }
  }
}
