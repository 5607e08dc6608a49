// The state of the page: the displayed picture or the camera, the predictions, the stored pictures and the custom concepts.

import { revoke } from '../../api/blobs';
import { bytesAt, type Fetch, v2 } from '../../api/client';
import type { By } from '../../host/application.svelte';
import { general } from '../../host/calls';
import type { LanguageCode } from '../../i18n/languages';
import type { Heatmap } from '../../parts/heatmap';
import { Calls, type Concept, type CustomConcept, customModel, food, type Hit } from './calls';
import { LocalPictures } from './localPictures.svelte';
import { type Picture, readPicture } from './pictures';

/** A host that predicts instead of the recogniser on this device. */
export interface ModelHost {
  readonly calls: Calls;
  readonly answeredBy: () => By; // the host that answered last
}

/** The predictions of a model: concepts in the order of their values, named in one language or more. */
export interface Predictions {
  readonly model: string; // the tab
  readonly concepts: readonly Concept[];
  readonly names: Readonly<Record<string, Readonly<Record<string, string>>>>; // language → id → name
  readonly ms: number;
  readonly by: By;
}

/** A file that was not added, and the reason. */
export interface RejectedFile {
  readonly name: string;
  readonly failure: unknown;
}

const maxHeatmaps = 20; // per call

/** The maximum number of custom concepts: one for each digit key. */
export const maxConcepts = 9;

export class LookState {
  readonly calls: Calls;
  readonly pictures: LocalPictures;

  currentPicture = $state.raw<Picture>();
  /** The selected model: `general`, `food`, `color`, `own` (trained here), or `app/` and the id of an application's model. */
  model = $state('general');
  appHost = $state.raw<ModelHost>(); // for the application's models
  /** The server that predicts until the recogniser on this device is ready; undefined: no picture is sent. */
  interimHost = $state.raw<ModelHost>();
  nameLanguages = $state.raw<readonly [LanguageCode, ...LanguageCode[]]>(['en']); // languages of the displayed names, the main one first
  predictions = $state.raw<Predictions>();
  colors = $state.raw<readonly Concept[]>([]); // colours of the displayed picture
  failure = $state.raw<unknown>();
  isReading = $state(false);

  heatmaps = $state.raw<ReadonlyMap<string, Heatmap>>(new Map()); // by the ids of the concepts
  hoveredId = $state<string>(); // the concept under the pointer
  pinnedId = $state<string>(); // the concept with a heatmap that stays displayed
  readonly markedId = $derived(this.hoveredId ?? this.pinnedId);

  progress = $state.raw<{ done: number; all: number }>();
  rejectedFiles = $state.raw<readonly RejectedFile[]>([]);
  hits = $state.raw<readonly Hit[]>();
  searchFailure = $state.raw<unknown>();

  concepts = $state<CustomConcept[]>([]);
  isTrained = $state(false);
  /** Captures a frame of the camera in full size; undefined while the camera is off. */
  captureFrame = $state.raw<() => Promise<Blob>>();

  #round = 0;
  #searchRound = 0;
  #heatmapRequest: Promise<void> | undefined;
  #heatmapsFailed = false; // for the displayed picture and model
  #queue: Promise<unknown> = Promise.resolve();

  constructor(ask: Fetch) {
    this.calls = new Calls(v2(ask));
    this.pictures = new LocalPictures(this.calls, (path) => bytesAt(ask, path));
  }

  /** Reads the stored pictures and concepts. */
  async load(): Promise<void> {
    await this.pictures.load();
    const [taught, learned] = [await this.calls.customConcepts(), await this.calls.isTrained()];
    const hasPictures = (t: CustomConcept) => this.pictures.all.some((k) => k.concept === t.id);
    this.concepts = taught.filter(hasPictures).map(({ id, name }) => ({ id, name: name === id ? '' : name }));
    this.isTrained = learned && this.concepts.length > 0;
    while (this.concepts.length < 2) this.addConcept();
  }

  /** Displays a picture and requests its predictions. */
  async show(p: Picture): Promise<void> {
    if (this.currentPicture && this.currentPicture !== p) revoke(this.currentPicture.url);
    this.currentPicture = p;
    this.predictions = undefined;
    this.hits = undefined;
    this.colors = [];
    await this.read();
  }

  /** Removes the displayed picture, for example to display the camera. */
  clear(): void {
    this.#round++;
    if (this.currentPicture) revoke(this.currentPicture.url);
    this.currentPicture = this.predictions = this.hits = this.failure = undefined;
    this.colors = [];
    this.#clearHeatmaps();
    this.isReading = false;
  }

  /** Requests predictions for the displayed picture, with names in all of `nameLanguages`. */
  async read(): Promise<void> {
    const p = this.currentPicture;
    if (!p) return;
    const round = ++this.#round;
    this.isReading = true;
    this.failure = undefined;
    this.#clearHeatmaps();
    try {
      const predictions = await this.predict(p.blob);
      if (round !== this.#round) return;
      this.predictions = predictions;
      if (this.interimHost) return; // the rest waits for the recogniser: each call would send the picture again
      for (const language of this.nameLanguages) {
        if (predictions.model !== 'general' || language in (this.predictions?.names ?? {})) continue;
        const names = namesOf(await this.calls.predict(general, p.blob, language));
        if (round !== this.#round) return;
        this.predictions = { ...predictions, names: { ...this.predictions.names, [language]: names } };
      }
      if (!this.colors.length) {
        const colors = predictions.model === 'color' ? predictions.concepts : await this.calls.colors(p.blob);
        if (round !== this.#round) return;
        this.colors = colors;
      }
      await this.findSimilar(p);
    } catch (failure) {
      if (round === this.#round && !isNotReady(failure)) this.failure = failure;
    } finally {
      if (round === this.#round) this.isReading = false;
    }
  }

  /** Returns the predictions of the selected model for a picture, in the main language. */
  async predict(picture: Blob): Promise<Predictions> {
    const model = this.model;
    const [language] = this.nameLanguages;
    const startedAt = performance.now();
    const host = model.startsWith('app/') ? this.appHost : model === 'own' ? undefined : this.interimHost;
    const concepts = await this.#predict(model, picture, language);
    const by = host?.answeredBy() ?? 'device';
    return { model, concepts, names: { [language]: namesOf(concepts) }, ms: performance.now() - startedAt, by };
  }

  #predict(model: string, picture: Blob, language: LanguageCode): Promise<readonly Concept[]> {
    if (model === 'color') return (this.interimHost?.calls ?? this.calls).colors(picture);
    const [calls, id] = this.#hostOf(model);
    return calls.predict(id, picture, model === 'general' ? language : undefined);
  }

  /** Returns the host of a model, and the id of the model there. */
  #hostOf(model: string): [Calls, string] {
    if (model.startsWith('app/') && this.appHost) return [this.appHost.calls, model.slice('app/'.length)];
    const id = { general, food }[model];
    return id ? [this.interimHost?.calls ?? this.calls, id] : [this.calls, customModel];
  }

  /** Displays the heatmap of a predicted concept; undefined hides it. */
  hover(id: string | undefined): void {
    this.hoveredId = id;
    void this.#loadHeatmaps(id);
  }

  /** Pins the heatmap of a concept, or unpins the pinned one. */
  pin(id: string | undefined): void {
    this.pinnedId = id === this.pinnedId ? undefined : id;
    if (!this.pinnedId) this.hoveredId = undefined;
    void this.#loadHeatmaps(this.pinnedId);
  }

  /** Pins the heatmap of the likeliest concept, or unpins the pinned one. */
  highlight(): void {
    this.pin(this.pinnedId ?? this.predictions?.concepts[0]?.id);
  }

  /** Loads the heatmap of a concept, together with those of the likeliest concepts, which a person may point at next. */
  async #loadHeatmaps(id: string | undefined): Promise<void> {
    while (this.#heatmapRequest) await this.#heatmapRequest;
    const [p, predictions] = [this.currentPicture, this.predictions];
    if (
      !id ||
      !p ||
      !predictions ||
      predictions.model === 'color' ||
      this.#heatmapsFailed ||
      this.heatmaps.has(id) ||
      this.markedId !== id
    )
      return;
    if (this.interimHost) return; // only the recogniser computes heatmaps, because a call would send the picture again
    const others = predictions.concepts.map((c) => c.id).filter((other) => other !== id && !this.heatmaps.has(other));
    const [calls, model] = this.#hostOf(predictions.model);
    this.#heatmapRequest = calls
      .heatmaps(model, p.blob, [id, ...others].slice(0, maxHeatmaps))
      .then(
        (found) => {
          if (p === this.currentPicture && predictions.model === this.predictions?.model)
            this.heatmaps = new Map([...this.heatmaps, ...found]);
        },
        () => {
          this.#heatmapsFailed = true; // the predictions stay displayed
        },
      )
      .finally(() => {
        this.#heatmapRequest = undefined;
      });
    await this.#heatmapRequest;
  }

  #clearHeatmaps(): void {
    this.heatmaps = new Map();
    this.hoveredId = this.pinnedId = undefined;
    this.#heatmapsFailed = false;
  }

  /** Finds the stored pictures that are similar to the displayed one. */
  async findSimilar(p = this.currentPicture): Promise<void> {
    const sought = ++this.#searchRound;
    let [hits, failure]: [readonly Hit[] | undefined, unknown] = [undefined, undefined];
    try {
      if (p && this.pictures.all.length) hits = await this.calls.findSimilar(p.blob, 24);
    } catch (error) {
      failure = error;
    }
    if (sought !== this.#searchRound || p !== this.currentPicture) return;
    this.hits = hits;
    this.searchFailure = failure;
  }

  /** Stores pictures, with a label if `concept` is given, and displays the first unless `unseen`. Calls run one after the other. */
  addFiles(
    files: readonly File[],
    { concept, unseen = false }: { concept?: string; unseen?: boolean } = {},
  ): Promise<void> {
    const work = this.#queue.then(() => this.#addFiles(files, concept, unseen || concept !== undefined));
    this.#queue = work.catch(() => {});
    return work;
  }

  async #addFiles(files: readonly File[], concept: string | undefined, unseen: boolean): Promise<void> {
    this.rejectedFiles = [];
    this.progress = { done: 0, all: files.length };
    for (const [done, file] of files.entries()) {
      this.progress = { done, all: files.length };
      let p: Picture | undefined;
      try {
        p = await readPicture(file, file.name);
        await this.pictures.save(p, concept);
        if (done === 0 && !unseen) await this.show(p);
        else revoke(p.url);
      } catch (failure) {
        if (p) revoke(p.url);
        // The failure of a displayed picture is shown instead of its predictions, and only once.
        if (p && p.id === this.currentPicture?.id && !this.predictions) this.failure = failure;
        else this.rejectedFiles = [...this.rejectedFiles, { name: file.name, failure }];
      }
    }
    this.progress = undefined;
    await this.findSimilar();
  }

  /** Adds a custom concept without name and pictures. */
  addConcept(): void {
    for (let n = 1; n <= maxConcepts; n++) {
      const id = `${customModel}-${n}`;
      if (this.concepts.some((c) => c.id === id)) continue;
      this.concepts.push({ id, name: '' });
      this.concepts.sort((a, b) => (a.id < b.id ? -1 : 1));
      return;
    }
  }

  /** Stores the displayed picture with a label of a concept. */
  async labelCurrent(concept: string): Promise<void> {
    if (this.currentPicture) await this.pictures.save(this.currentPicture, concept);
  }

  /** Whether at least two concepts are in use, and each of these has a name and two pictures. */
  readonly canTrain = $derived.by(() => {
    const started = this.concepts.filter((c) => c.name.trim() || this.picturesOf(c.id).length);
    return started.length >= 2 && started.every((c) => c.name.trim() && this.picturesOf(c.id).length >= 2);
  });

  /** Returns the stored pictures of a concept. */
  picturesOf(concept: string) {
    return this.pictures.all.filter((k) => k.concept === concept);
  }

  /** Trains with all pictures that have a concept, and returns the time in milliseconds. */
  async train(): Promise<number> {
    const concepts = this.concepts
      .map(({ id, name }) => ({ id, name: name.trim() }))
      .filter((c) => c.name && this.picturesOf(c.id).length);
    const startedAt = performance.now();
    await this.calls.train(concepts, () => new Promise((resolve) => setTimeout(resolve, 20)));
    const ms = performance.now() - startedAt;
    this.isTrained = true;
    await this.selectModel('own');
    return ms;
  }

  /** Selects a model and requests its predictions. */
  async selectModel(model: string): Promise<void> {
    this.model = model;
    this.predictions = undefined;
    await this.read();
  }

  /** Makes a language the main one of the names; at most three are displayed. */
  async selectLanguage(language: LanguageCode): Promise<void> {
    this.nameLanguages = [language, ...this.nameLanguages.filter((t) => t !== language).slice(0, 2)];
    const names = this.predictions?.names;
    if (!names || !(language in names)) await this.read();
  }

  /** Deletes the stored pictures, the custom concepts and their model. */
  async deleteAll(): Promise<void> {
    await this.pictures.deleteAll();
    this.concepts = [];
    this.addConcept();
    this.addConcept();
    this.isTrained = false;
    this.hits = undefined;
    if (this.model === 'own') await this.selectModel('general');
  }

  close(): void {
    this.clear();
    this.pictures.close();
  }
}

/** Reports whether a call failed because the recogniser is not open yet: the page repeats it later. */
function isNotReady(failure: unknown): boolean {
  return failure instanceof DOMException && failure.name === 'InvalidStateError';
}

function namesOf(concepts: readonly Concept[]): Record<string, string> {
  return Object.fromEntries(concepts.map((c) => [c.id, c.name]));
}
