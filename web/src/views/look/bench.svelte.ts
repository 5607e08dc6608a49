// The content of the page: the displayed picture or the camera, the predictions, the stored pictures and the custom concepts.

import type { Ask } from '../../apiCall';
import type { By } from '../../application.svelte';
import { revoke } from '../../blobs';
import { Failure } from '../../console';
import type { Light } from '../../parts/heatmap';
import { Calls, type Concept, type CustomConcept, customModel, food, general, type Hit } from './calls';
import { LocalPictures } from './localPictures.svelte';
import { type Picture, readPicture } from './pictures';

/** Another host than the recogniser on this device. */
export interface Others {
  readonly calls: Calls;
  readonly by: () => By; // who answered last
}

/** The predictions of a model: concepts in the order of their values, named in one language or more. */
export interface Seen {
  readonly model: string; // the tab
  readonly concepts: readonly Concept[];
  readonly names: Readonly<Record<string, Readonly<Record<string, string>>>>; // language → id → name
  readonly ms: number;
  readonly by: By;
}

/** A file that was not taken, and why. */
export interface Refused {
  readonly name: string;
  readonly failure: unknown;
}

const mostLights = 20; // concepts that one call asks for

/** How many concepts can be taught: one to a digit key. */
export const mostConcepts = 9;

export class Bench {
  readonly calls: Calls;
  readonly pictures: LocalPictures;

  shown = $state.raw<Picture>();
  /** Whose eyes: `general`, `food`, `color`, `own` (what was taught here), or `app/` and the id of an application's model. */
  model = $state('general');
  others = $state.raw<Others>(); // the host of an application's models
  /** The server that answers until the recogniser on this device can; undefined: no picture is sent. */
  meanwhile = $state.raw<Others>();
  tongues = $state.raw<readonly string[]>(['en']); // of the names, the first in front
  seen = $state.raw<Seen>();
  colors = $state.raw<readonly Concept[]>([]); // of the picture
  failure = $state.raw<unknown>();
  reading = $state(false);

  lights = $state.raw<ReadonlyMap<string, Light>>(new Map()); // where concepts were seen, by their ids
  pointed = $state<string>(); // the concept that is pointed at
  pinned = $state<string>(); // the one that stays shown
  readonly lit = $derived(this.pointed ?? this.pinned);

  adding = $state.raw<{ done: number; all: number }>();
  refused = $state.raw<readonly Refused[]>([]);
  hits = $state.raw<readonly Hit[]>();
  unfound = $state.raw<unknown>(); // why there are none

  concepts = $state<CustomConcept[]>([]);
  learned = $state(false);
  /** A frame of the camera in full, while it is on. */
  grab = $state.raw<() => Promise<Blob>>();

  #round = 0;
  #sought = 0;
  #lighting: Promise<void> | undefined;
  #dark = false; // the places of concepts are unavailable
  #queue: Promise<unknown> = Promise.resolve();

  constructor(ask: Ask) {
    this.calls = new Calls(ask);
    this.pictures = new LocalPictures(this.calls, async (path) => {
      const answer = await ask(path);
      if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
      return answer.blob();
    });
  }

  /** Reads the stored pictures and concepts. */
  async load(): Promise<void> {
    await this.pictures.load();
    const [taught, learned] = [await this.calls.customConcepts(), await this.calls.isTrained()];
    const used = (t: CustomConcept) => this.pictures.all.some((k) => k.concept === t.id);
    this.concepts = taught.filter(used).map(({ id, name }) => ({ id, name: name === id ? '' : name }));
    this.learned = learned && this.concepts.length > 0;
    while (this.concepts.length < 2) this.more();
  }

  /** Shows a picture and reads it. */
  async show(p: Picture): Promise<void> {
    if (this.shown && this.shown !== p) revoke(this.shown.url);
    this.shown = p;
    this.seen = undefined;
    this.hits = undefined;
    this.colors = [];
    await this.read();
  }

  /** Takes the picture away, as for the camera. */
  clear(): void {
    this.#round++;
    if (this.shown) revoke(this.shown.url);
    this.shown = this.seen = this.hits = this.failure = undefined;
    this.colors = [];
    this.#unlight();
    this.reading = false;
  }

  /** Reads the picture that is shown, in all languages that are wanted. */
  async read(): Promise<void> {
    const p = this.shown;
    if (!p) return;
    const round = ++this.#round;
    this.reading = true;
    this.failure = undefined;
    this.#unlight();
    try {
      const seen = await this.see(p.base64);
      if (round !== this.#round) return;
      this.seen = seen;
      if (this.meanwhile) return; // the rest waits for the recogniser: each call would send the picture again
      for (const tongue of this.tongues) {
        if (seen.model !== 'general' || tongue in (this.seen?.names ?? {})) continue;
        const names = namesOf(await this.calls.predict(general, p.base64, tongue));
        if (round !== this.#round) return;
        this.seen = { ...seen, names: { ...this.seen.names, [tongue]: names } };
      }
      if (!this.colors.length) {
        const colors = seen.model === 'color' ? seen.concepts : await this.calls.colors(p.base64);
        if (round !== this.#round) return;
        this.colors = colors;
      }
      await this.compare(p);
    } catch (failure) {
      if (round === this.#round && !waits(failure)) this.failure = failure;
    } finally {
      if (round === this.#round) this.reading = false;
    }
  }

  /** The predictions of the chosen model for a picture, in the first language. */
  async see(base64: string): Promise<Seen> {
    const model = this.model;
    const tongue = this.tongues[0] as string;
    const began = performance.now();
    const host = model.startsWith('app/') ? this.others : model === 'own' ? undefined : this.meanwhile;
    const concepts = await this.#see(model, base64, tongue);
    const by = host?.by() ?? 'device';
    return { model, concepts, names: { [tongue]: namesOf(concepts) }, ms: performance.now() - began, by };
  }

  #see(model: string, base64: string, tongue: string): Promise<Concept[]> {
    if (model === 'color') return (this.meanwhile?.calls ?? this.calls).colors(base64);
    const [calls, id] = this.#eyes(model);
    return calls.predict(id, base64, model === 'general' ? tongue : undefined);
  }

  /** The host of a model, and its id there. */
  #eyes(model: string): [Calls, string] {
    if (model.startsWith('app/') && this.others) return [this.others.calls, model.slice('app/'.length)];
    const id = { general, food }[model];
    return id ? [this.meanwhile?.calls ?? this.calls, id] : [this.calls, customModel];
  }

  /** Points at a concept of those that are seen: the picture shows where it was. */
  point(id: string | undefined): void {
    this.pointed = id;
    void this.#light(id);
  }

  /** Keeps the place of a concept displayed in the picture; the same one again removes it. */
  pin(id: string | undefined): void {
    this.pinned = id === this.pinned ? undefined : id;
    if (!this.pinned) this.pointed = undefined;
    void this.#light(this.pinned);
  }

  /** Keeps what is most surely seen shown, or nothing. */
  highlight(): void {
    this.pin(this.pinned ?? this.seen?.concepts[0]?.id);
  }

  /** Finds out where a concept was seen, with those that are likely to be pointed at next. */
  async #light(id: string | undefined): Promise<void> {
    while (this.#lighting) await this.#lighting;
    const [p, seen] = [this.shown, this.seen];
    if (!id || !p || !seen || seen.model === 'color' || this.#dark || this.lights.has(id) || this.lit !== id) return;
    if (this.meanwhile) return; // the recogniser finds it, once it can
    const others = seen.concepts.map((c) => c.id).filter((other) => other !== id && !this.lights.has(other));
    const [calls, model] = this.#eyes(seen.model);
    this.#lighting = calls
      .heatmaps(model, p.base64, [id, ...others].slice(0, mostLights))
      .then(
        (found) => {
          if (p === this.shown && seen.model === this.seen?.model) this.lights = new Map([...this.lights, ...found]);
        },
        () => {
          this.#dark = true; // the words are there all the same
        },
      )
      .finally(() => {
        this.#lighting = undefined;
      });
    await this.#lighting;
  }

  #unlight(): void {
    this.lights = new Map();
    this.pointed = this.pinned = undefined;
    this.#dark = false;
  }

  /** Finds the kept pictures that are like the one shown. */
  async compare(p = this.shown): Promise<void> {
    const sought = ++this.#sought;
    let [hits, failure]: [readonly Hit[] | undefined, unknown] = [undefined, undefined];
    try {
      if (p && this.pictures.all.length) hits = await this.calls.findSimilar(p.base64, 24);
    } catch (why) {
      failure = why;
    }
    if (sought !== this.#sought || p !== this.shown) return;
    this.hits = hits;
    this.unfound = failure;
  }

  /** Stores pictures, with a concept or without. The first of those to be displayed is displayed. One lot after the other. */
  take(
    files: readonly File[],
    { concept, unseen = false }: { concept?: string; unseen?: boolean } = {},
  ): Promise<void> {
    const work = this.#queue.then(() => this.#take(files, concept, unseen || concept !== undefined));
    this.#queue = work.catch(() => {});
    return work;
  }

  async #take(files: readonly File[], concept: string | undefined, unseen: boolean): Promise<void> {
    this.refused = [];
    this.adding = { done: 0, all: files.length };
    for (const [done, file] of files.entries()) {
      this.adding = { done, all: files.length };
      let p: Picture | undefined;
      try {
        p = await readPicture(file, file.name);
        await this.pictures.save(p, concept);
        if (done === 0 && !unseen) await this.show(p);
        else revoke(p.url);
      } catch (failure) {
        if (p) revoke(p.url);
        // The failure of a displayed picture is shown where its words would be, and once.
        if (p && p.id === this.shown?.id && !this.seen) this.failure = failure;
        else this.refused = [...this.refused, { name: file.name, failure }];
      }
    }
    this.adding = undefined;
    await this.compare();
  }

  /** Another concept to teach, as yet without name and pictures. */
  more(): void {
    for (let n = 1; n <= mostConcepts; n++) {
      const id = `${customModel}-${n}`;
      if (this.concepts.some((c) => c.id === id)) continue;
      this.concepts.push({ id, name: '' });
      this.concepts.sort((a, b) => (a.id < b.id ? -1 : 1));
      return;
    }
  }

  /** Gives the picture that is shown a concept. */
  async teachShown(concept: string): Promise<void> {
    if (this.shown) await this.pictures.save(this.shown, concept);
  }

  /** The conditions of a training: a name and two pictures for every concept that has either. */
  readonly ready = $derived.by(() => {
    const begun = this.concepts.filter((c) => c.name.trim() || this.of(c.id).length);
    return begun.length >= 2 && begun.every((c) => c.name.trim() && this.of(c.id).length >= 2);
  });

  /** The kept pictures of a concept. */
  of(concept: string) {
    return this.pictures.all.filter((k) => k.concept === concept);
  }

  /** Trains with all pictures that have a concept, and returns the time in milliseconds. */
  async train(): Promise<number> {
    const concepts = this.concepts
      .map(({ id, name }) => ({ id, name: name.trim() }))
      .filter((c) => c.name && this.of(c.id).length);
    const began = performance.now();
    await this.calls.train(concepts, () => new Promise((resolve) => setTimeout(resolve, 20)));
    const ms = performance.now() - began;
    this.learned = true;
    await this.choose('own');
    return ms;
  }

  /** Looks through another model. */
  async choose(model: string): Promise<void> {
    this.model = model;
    this.seen = undefined;
    await this.read();
  }

  /** Puts a language of names in front; at most three are displayed. */
  async speak(tongue: string): Promise<void> {
    this.tongues = [tongue, ...this.tongues.filter((t) => t !== tongue)].slice(0, 3);
    const names = this.seen?.names;
    if (!names || !(tongue in names)) await this.read();
  }

  /** Forgets everything that is kept and taught here. */
  async forget(): Promise<void> {
    await this.pictures.deleteAll();
    this.concepts = [];
    this.more();
    this.more();
    this.learned = false;
    this.hits = undefined;
    if (this.model === 'own') await this.choose('general');
  }

  close(): void {
    this.clear();
    this.pictures.close();
  }
}

/** Whether nobody was there to ask yet: the picture is read when the recogniser is ready. */
function waits(failure: unknown): boolean {
  return failure instanceof DOMException && failure.name === 'InvalidStateError';
}

function namesOf(concepts: readonly Concept[]): Record<string, string> {
  return Object.fromEntries(concepts.map((c) => [c.id, c.name]));
}
