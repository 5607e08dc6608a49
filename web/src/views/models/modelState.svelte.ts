// The state of a model's page: the model, its versions with their quality, and the running training.
import { SvelteMap } from 'svelte/reactivity';
import type { Application, By } from '../../host/application.svelte';
import { code, countInputs } from '../../host/calls';
import { lately, type ProgressMark, secondsLeft } from '../../host/progress';
import { Resource } from '../../host/resource.svelte';
import * as calls from './calls';
import { type NumberedVersion, numberVersions } from './versions';

/** A running training, with the progress that is known here. */
export interface Training {
  readonly id: string; // id of the version
  readonly by: By; // the host that trains
  readonly code: number;
  readonly read: number; // number of analysed pictures of the application
  readonly pictures: number; // number of all pictures of the application
  readonly share?: number; // progress of the training, 0 to 1; missing if the host does not report it or has not started
  readonly seconds?: number; // remaining seconds, first of the analysis and then of the training; missing if unknown
}

/** Returns the progress, 0 to 1, first of the analysis and then of the training; undefined if it is unknown. */
export function trainingShare(t: Training): number | undefined {
  return t.share ?? (t.read < t.pictures ? t.read / t.pictures : undefined);
}

/** The models that are trained as soon as their page opens. */
export const trainOnOpen = new Set<string>();

export class ModelState {
  readonly app: Application;
  readonly id: string;
  readonly info: Resource<calls.ModelInfo>;
  readonly versions: Resource<readonly NumberedVersion[]>; // newest first
  readonly set: Resource<calls.TrainingSet>;
  /** The quality of each trained version; null if it is unknown. */
  readonly metrics = new SvelteMap<string, calls.Metrics | null>();
  training = $state.raw<Training>();
  /** The id of the version from a training that this page followed. */
  trainedHere = $state('');
  #watching = 0;
  #follows = false; // the page follows a training

  constructor(app: Application, id: string) {
    this.app = app;
    this.id = id;
    this.info = new Resource(() => calls.readModel(app, id));
    this.set = new Resource(
      async () => (await app.v2.GET('/models/{model_id}/training_set', calls.at(id))).training_set,
    );
    this.versions = new Resource(async () => numberVersions(await calls.versions(app, id)));
  }

  /** The version that predicts if a call names none. */
  readonly inUse = $derived.by(() => this.versions.data?.find(calls.isTrained));

  /** Reads everything, or reads it again. */
  load = async (): Promise<void> => {
    await Promise.all([this.info.load(), this.versions.load(), this.set.load()]);
    const newest = this.versions.data?.[0];
    if (newest && calls.isUnderway(newest) && !this.#follows && this.#leftVersion !== newest.id)
      void this.#resume(newest);
    await Promise.all(
      (this.versions.data ?? [])
        .filter(calls.isTrained)
        .slice(0, maxEvaluated)
        .map((v) => this.judge(v.id)),
    );
  };

  /** Reads the quality of a version, once: it never changes. The version to compare with may, since the previous version may be removed. */
  async judge(id: string): Promise<void> {
    const since = this.metrics.get(id)?.since;
    const v = this.versions.data?.find((one) => one.id === id);
    if (this.metrics.has(id) && !(since && v && since.version_id !== this.before(v)?.id)) return;
    try {
      this.metrics.set(id, (await calls.metrics(this.app, this.id, id)) ?? null);
    } catch {
      // The page shows the versions without it, and repeats the request when it reads the versions again.
    }
  }

  /** Returns the previous version that is trained. */
  before(v: NumberedVersion): NumberedVersion | undefined {
    return this.versions.data?.find((one) => calls.isTrained(one) && one.number < v.number);
  }

  /** Trains another version and follows it. It returns the finished version, or undefined if the wait was ended. */
  async train(): Promise<NumberedVersion | undefined> {
    this.#follows = true; // the list of versions has it before the answer comes
    try {
      const { model } = await this.app.write.POST('/models/{model_id}/versions', calls.at(this.id));
      return await this.watch(model.model_version);
    } catch (failure) {
      this.training = undefined;
      throw failure;
    } finally {
      this.#follows = false;
    }
  }

  #leftVersion = ''; // id of a version that the page stopped following

  /** Ends the wait. The training continues at its host. */
  leave(): void {
    this.#leftVersion = this.training?.id ?? '';
    this.#watching++;
    this.training = undefined;
  }

  /** Follows a training that another page or host started. */
  async #resume(v: calls.Version): Promise<void> {
    this.#follows = true;
    try {
      await this.watch(v);
    } catch {
      this.training = undefined; // the host is offline: it is followed again when the page reads again
    } finally {
      this.#follows = false;
    }
  }

  /** Follows a version until it is trained or has failed. */
  async watch(v: calls.Version): Promise<NumberedVersion | undefined> {
    const round = ++this.#watching;
    const startedAt = performance.now();
    let { by } = this.app;
    let now = v;
    let marks: readonly ProgressMark[] = []; // progress of the analysis, then of the training
    let learns = false;
    for (;;) {
      const { processed: done, to_process } = await countInputs(this.app.v2);
      const all = done + to_process;
      if (round !== this.#watching) return undefined;
      if (!calls.isUnderway(now)) break;
      const share = now.progress;
      const last: ProgressMark = { at: performance.now(), done: share ?? done };
      if (learns !== (share !== undefined)) [learns, marks] = [!learns, []];
      marks = lately(marks, last);
      this.training = {
        id: v.id,
        by,
        code: now.status.code,
        read: done,
        pictures: all,
        share,
        seconds: secondsLeft(marks[0] ?? last, last, learns ? 1 : all),
      };
      await new Promise((resolve) => setTimeout(resolve, performance.now() - startedAt < 3000 ? 80 : 500));
      if (round !== this.#watching) return undefined;
      ({ version: now, by } = await calls.readVersion(this.app, this.id, v.id));
    }
    const trained = now.status.code === code.trained;
    // The figures of many concepts take a while to read.
    if (trained && this.training)
      this.training = { ...this.training, code: now.status.code, share: 1, seconds: undefined };
    await this.judge(v.id);
    if (trained) this.trainedHere = v.id; // before it is shown, so that its numbers count
    await Promise.all([this.versions.load(), this.set.load(), this.info.load()]);
    if (round !== this.#watching) return undefined;
    this.training = undefined;
    return this.versions.data?.find((one) => one.id === v.id);
  }

  /** Ends the background work. */
  close(): void {
    this.#watching++;
  }
}

const maxEvaluated = 12; // number of versions whose quality is read at once
