// The calls of /v2 by this page. The host is an argument: the runtime on this device, or a server to compare with.
import { call, type Fetch, listAll } from '../../apiCall';
import { Failure } from '../../console';
import type { Heatmap } from '../../parts/heatmap';
import type { components } from '../../v2';

type Schemas = components['schemas'];
export type Concept = Required<Pick<Schemas['Concept'], 'id' | 'name' | 'value'>> & { readonly hex?: string }; // hex: of a colour

/** A picture that is stored on this device. */
export interface StoredPicture {
  readonly id: string;
  readonly path: string; // of its bytes, "/hosted/…"
  readonly name: string;
  readonly concept: string | undefined; // the custom concept of its label
}

/** A stored picture and its similarity to another: 1 is the same. */
export interface Hit {
  readonly id: string;
  readonly score: number;
}

/** A concept that the person trains here and named. */
export interface CustomConcept {
  readonly id: string;
  readonly name: string;
}

export const general = 'aaa03c23b3724a16a56b629203edc62c';
export const food = 'bd367be194cf45149e75f01d59f77ba7';
const color = 'eeed0b6733a644cea07cf4c60f87ebb7';
const embedder = 'bbb5f41425b8468d9b7a554ff10f8581';

/** The id of the model that is trained here. The ids of its concepts begin with it. */
export const customModel = 'taught';

const status = { trained: 21100, training: 21101, queued: 21103 };
const idTaken = [30100, 40010]; // an input's, a model's
const page = 200; // maximum number of items that one call lists

interface Color {
  readonly raw_hex: string;
  readonly w3c?: { readonly name: string };
  readonly value: number;
}

interface Activations {
  readonly outputs: readonly {
    readonly activations?: Partial<Omit<Heatmap, 'values'>> & { concepts?: { id: string; values: number[] }[] };
  }[];
}

export class Calls {
  readonly #ask: Fetch;
  readonly #key: string;

  /** key: for hosts that require one. */
  constructor(ask: Fetch, key = '') {
    this.#ask = ask;
    this.#key = key;
  }

  /** Returns the predictions of a model for a picture, the likeliest first. Names are in the language, if the model has it. */
  async predict(model: string, base64: string, language?: string): Promise<Concept[]> {
    return ((await this.#output(model, base64, language)).concepts ?? []) as Concept[];
  }

  /** Returns the colours of a picture, the most frequent first. Each has the name of the nearest colour with a name. */
  async colors(base64: string): Promise<Concept[]> {
    const { colors = [] } = (await this.#output(color, base64)) as { colors?: Color[] };
    return colors.map((c) => ({ id: c.raw_hex, name: c.w3c?.name ?? c.raw_hex, value: c.value, hex: c.raw_hex }));
  }

  /** Returns heatmaps that show where a model sees concepts in a picture, by the ids of the concepts. */
  async heatmaps(model: string, base64: string, concepts: readonly string[]): Promise<Map<string, Heatmap>> {
    const path = `/models/${encodeURIComponent(model)}/activations`;
    const answer = await this.#call<Activations>('POST', path, { inputs: [{ data: { image: { base64 } } }], concepts });
    const { box, width, height, concepts: seen = [] } = answer.outputs[0]?.activations ?? {};
    if (!box || !width || !height) return new Map();
    return new Map(seen.map(({ id, values }) => [id, { box, width, height, values }]));
  }

  /** Returns the embedding of a picture. */
  async embed(base64: string): Promise<readonly number[]> {
    return (await this.#output(embedder, base64)).embeddings?.[0]?.vector ?? [];
  }

  async #output(model: string, base64: string, language?: string): Promise<Schemas['OutputData']> {
    const path = `/models/${encodeURIComponent(model)}/outputs`;
    const answer = await this.#call<Schemas['OutputsAnswer']>('POST', path, {
      inputs: [{ data: { image: { base64 } } }],
      ...(language && { model: { output_info: { output_config: { language } } } }),
    });
    return answer.outputs?.[0]?.data ?? {};
  }

  /** Stores a picture under its id, with a label if `concept` is given. If the picture exists, this only adds the label. */
  async save(id: string, name: string, base64: string, concept?: string): Promise<StoredPicture> {
    const labels = concept ? { concepts: [{ id: concept, value: 1 }] } : {};
    try {
      const answer = await this.#call<Schemas['InputsAnswer']>('POST', '/inputs', {
        inputs: [{ id, data: { image: { base64 }, metadata: { name }, ...labels } }],
      });
      return storedPicture(answer.inputs?.[0]);
    } catch (failure) {
      if (!(failure instanceof Failure && idTaken.includes(failure.code))) throw failure;
      return concept ? this.label(id, concept) : this.picture(id);
    }
  }

  /** Returns a stored picture. */
  async picture(id: string): Promise<StoredPicture> {
    return storedPicture((await this.#call<Schemas['InputAnswer']>('GET', `/inputs/${encodeURIComponent(id)}`)).input);
  }

  /** Labels a stored picture with a concept and removes any other label. undefined removes all. */
  async label(id: string, concept: string | undefined): Promise<StoredPicture> {
    const answer = await this.#call<Schemas['InputsAnswer']>('PATCH', '/inputs', {
      inputs: [{ id, data: { concepts: concept ? [{ id: concept, value: 1 }] : [] } }],
      action: 'overwrite',
    });
    return storedPicture(answer.inputs?.[0]);
  }

  /** Returns all stored pictures, in the order in which they were added. */
  async pictures(): Promise<StoredPicture[]> {
    return listAll(page, async (n) => {
      const answer = await this.#call<Schemas['InputsAnswer']>('GET', `/inputs?page=${n}&per_page=${page}`);
      return (answer.inputs ?? []).map(storedPicture);
    });
  }

  /** Deletes a stored picture. */
  async remove(id: string): Promise<void> {
    await this.#call('DELETE', `/inputs/${encodeURIComponent(id)}`);
  }

  /** Deletes all stored pictures and the model that was trained with them. */
  async deleteAll(): Promise<void> {
    await this.#call('DELETE', '/models', { delete_all: true });
    await this.#call('DELETE', '/inputs', { delete_all: true });
  }

  /** Returns the stored pictures that are most similar to this one, the most similar first. */
  async findSimilar(base64: string, limit: number): Promise<Hit[]> {
    const answer = await this.#call<Schemas['HitsAnswer']>('POST', '/searches', {
      query: { ands: [{ output: { input: { data: { image: { base64 } } } } }] },
      pagination: { page: 1, per_page: limit },
    });
    return (answer.hits ?? []).map((hit) => ({ id: hit.input?.id ?? '', score: hit.score ?? 0 }));
  }

  /** Returns the custom concepts of earlier trainings. */
  async customConcepts(): Promise<CustomConcept[]> {
    // An application's own concepts are listed before the models'.
    const answer = await this.#call<Schemas['ConceptsAnswer']>('GET', `/concepts?per_page=${page}`);
    const all = (answer.concepts ?? []).map(({ id = '', name = '' }) => ({ id, name }));
    return all.filter((c) => c.id.startsWith(`${customModel}-`)).sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Creates a concept, or renames an existing one. */
  async saveConcept(concept: CustomConcept): Promise<void> {
    try {
      await this.#call('POST', '/concepts', { concepts: [concept] });
    } catch (failure) {
      if (!(failure instanceof Failure && failure.status === 400)) throw failure; // it exists already
      await this.#call('PATCH', '/concepts', { concepts: [concept], action: 'overwrite' });
    }
  }

  /** Reports whether the custom model has a trained version. */
  async isTrained(): Promise<boolean> {
    try {
      const answer = await this.#call<Schemas['ModelVersionsAnswer']>('GET', `/models/${customModel}/versions`);
      return (answer.model_versions ?? []).some((v) => v.status?.code === status.trained);
    } catch (failure) {
      if (failure instanceof Failure && failure.status === 404) return false;
      throw failure;
    }
  }

  /** Trains the custom model with all pictures that have a label of these concepts, and returns when it is trained. */
  async train(concepts: readonly CustomConcept[], pause: () => Promise<void>): Promise<void> {
    for (const concept of concepts) await this.saveConcept(concept);
    const data = { concepts: concepts.map(({ id }) => ({ id })) };
    // A picture shows one of the concepts at most, and may show none.
    const output_config = { concepts_mutually_exclusive: true, closed_environment: false };
    try {
      await this.#call('POST', '/models', {
        model: { id: customModel, name: customModel, output_info: { data, output_config } },
      });
    } catch (failure) {
      if (!(failure instanceof Failure && idTaken.includes(failure.code))) throw failure;
      await this.#call('PATCH', '/models', {
        models: [{ id: customModel, output_info: { data } }],
        action: 'overwrite',
      });
    }
    const newVersion = await this.#call<Schemas['ModelAnswer']>('POST', `/models/${customModel}/versions`);
    const path = `/models/${customModel}/versions/${newVersion.model?.model_version?.id}`;
    for (;;) {
      const { model_version: version } = await this.#call<Schemas['ModelVersionAnswer']>('GET', path);
      const code = version?.status?.code ?? 0;
      if (code === status.trained) return;
      if (code !== status.training && code !== status.queued) {
        throw new Failure(200, version?.status);
      }
      await pause();
    }
  }

  #call<T>(method: string, path: string, body?: object): Promise<T> {
    return call(this.#ask, method, path, body, this.#key);
  }
}

function storedPicture(input: Schemas['Input'] | undefined): StoredPicture {
  const { id = '', data } = input ?? {};
  const name = (data?.metadata as { name?: unknown } | undefined)?.name;
  return {
    id,
    path: new URL(data?.image?.url ?? '', 'http://here').pathname,
    name: typeof name === 'string' ? name : '',
    concept: data?.concepts?.find((c) => c.value === 1 && c.id?.startsWith(`${customModel}-`))?.id,
  };
}
