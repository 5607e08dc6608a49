// The numbers of things in an application, for the side bar.
import type { Application } from '../../host/application.svelte';
import { countInputs, ownModels } from '../../host/calls';

const maxInputs = 5000; // maximum number of pictures for the count of the queue, which reads all of them
const seldom = 10_000; // ms between two counts of the queue

export class Counts {
  inputs = $state<number>();
  models = $state<number>();
  next = $state<number>(); // pictures that the first of the models would have labelled
  #lastCount = 0; // when that was last asked, as performance.now() tells
  #appId: string | undefined; // the application
  #later: ReturnType<typeof setTimeout> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Schedules a count. Several changes in a short time cause one count. */
  soon(app: Application): void {
    if (this.#appId !== app.id) {
      this.inputs = this.models = this.next = undefined;
      this.#lastCount = Number.NEGATIVE_INFINITY;
      this.#appId = app.id;
      clearTimeout(this.#timer);
      clearTimeout(this.#later);
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
      const { all } = await countInputs(app.v2);
      const own = await ownModels(app);
      if (this.#appId !== app.id) return;
      this.inputs = all;
      this.models = own.length;
      await this.#queue(app, own.find((model) => model.output_info.type_ext === 'concept')?.id);
    } catch {
      // the page itself shows the error
    }
  }

  /** Counts what waits to be labelled, which all pictures are looked at for: not often, and not where there are many. */
  async #queue(app: Application, model: string | undefined): Promise<void> {
    if (!model || (this.inputs ?? 0) > maxInputs) {
      this.next = undefined;
      return;
    }
    const now = performance.now();
    if (now < this.#lastCount + seldom) {
      clearTimeout(this.#later);
      this.#later = setTimeout(() => void this.#queue(app, model).catch(() => {}), this.#lastCount + seldom - now);
      return;
    }
    this.#lastCount = now;
    const params = { path: { model_id: model }, query: { page: 1, per_page: 1 } };
    const { total } = await app.v2.GET('/models/{model_id}/next', { params });
    if (this.#appId === app.id) this.next = total || undefined;
  }
}
