// The calls of /v2 by this page. The host is an argument: the runtime on this device, or a server to compare with.

import { fileUrl, listAll, type Schemas, type V2 } from '../../api/client';
import { Failure } from '../../api/console';
import { addPicture, code, existsCodes, fileName, hostedPath, train } from '../../host/calls';
import type { LanguageCode } from '../../i18n/languages';
import { type Heatmap, readHeatmaps } from '../../parts/heatmap';
import type { Picture } from './pictures';

export type Concept = Pick<Schemas['ConceptValue'], 'id' | 'name' | 'value'> & { readonly hex?: string }; // hex: of a colour

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

export const food = 'bd367be194cf45149e75f01d59f77ba7';
const color = 'eeed0b6733a644cea07cf4c60f87ebb7';
const embedder = 'bbb5f41425b8468d9b7a554ff10f8581';

/** The id of the model that is trained here. The ids of its concepts begin with it. */
export const customModel = 'taught';
const at = { params: { path: { model_id: customModel } } };

export class Calls {
  readonly #v2: V2;

  constructor(v2: V2) {
    this.#v2 = v2;
  }

  /** Returns the predictions of a model for a picture, the likeliest first. Names are in the language, if the model has it. */
  async predict(model: string, picture: Blob, language?: LanguageCode): Promise<readonly Concept[]> {
    return (await this.#output(model, picture, language)).concepts ?? [];
  }

  /** Returns the colours of a picture, the most frequent first. Each has the name of the nearest colour with a name. */
  async colors(picture: Blob): Promise<Concept[]> {
    const { colors = [] } = await this.#output(color, picture);
    return colors.map(({ raw_hex, w3c, value }) => ({ id: raw_hex, name: w3c.name, value, hex: raw_hex }));
  }

  /** Returns heatmaps that show where a model sees concepts in a picture, by the ids of the concepts. */
  heatmaps(model: string, picture: Blob, concepts: readonly string[]): Promise<Map<string, Heatmap>> {
    return readHeatmaps(this.#v2, model, picture, concepts);
  }

  /** Returns the embedding of a picture. */
  async embed(picture: Blob): Promise<readonly number[]> {
    return (await this.#output(embedder, picture)).embeddings?.[0]?.vector ?? [];
  }

  async #output(model: string, picture: Blob, language?: LanguageCode): Promise<Schemas['OutputData']> {
    const { outputs } = await this.#v2.POST('/models/{model_id}/outputs', {
      params: { path: { model_id: model } },
      body: {
        inputs: [{ data: { image: { url: fileUrl } } }],
        model: language && { output_info: { output_config: { language } } },
      },
      files: { [fileUrl]: picture },
    });
    return outputs[0]?.data ?? {};
  }

  /** Stores a picture under its id, with a label if `concept` is given. If the picture exists, this only adds the label. */
  async save(p: Pick<Picture, 'id' | 'name' | 'blob'>, concept?: string): Promise<StoredPicture> {
    const added = await addPicture(this.#v2, p, concept);
    if (added) return storedPicture(added);
    return concept ? this.label(p.id, concept) : this.picture(p.id);
  }

  /** Returns a stored picture. */
  async picture(id: string): Promise<StoredPicture> {
    return storedPicture((await this.#v2.GET('/inputs/{input_id}', { params: { path: { input_id: id } } })).input);
  }

  /** Labels a stored picture with a concept and removes any other label. undefined removes all. */
  async label(id: string, concept: string | undefined): Promise<StoredPicture> {
    const concepts = concept ? [{ id: concept, value: 1 as const }] : [];
    const { inputs } = await this.#v2.PATCH('/inputs', {
      body: { inputs: [{ id, data: { concepts } }], action: 'overwrite' },
    });
    return storedPicture(inputs[0]);
  }

  /** Returns all stored pictures, in the order in which they were added. */
  async pictures(): Promise<StoredPicture[]> {
    const inputs = await listAll(async (query) => (await this.#v2.GET('/inputs', { params: { query } })).inputs);
    return inputs.map(storedPicture);
  }

  /** Deletes a stored picture. */
  async remove(id: string): Promise<void> {
    await this.#v2.DELETE('/inputs/{input_id}', { params: { path: { input_id: id } } });
  }

  /** Deletes all stored pictures and the model that was trained with them. */
  async deleteAll(): Promise<void> {
    await this.#v2.DELETE('/models', { body: { delete_all: true } });
    await this.#v2.DELETE('/inputs', { body: { delete_all: true } });
  }

  /** Returns the stored pictures that are most similar to this one, the most similar first. */
  async findSimilar(picture: Blob, limit: number): Promise<Hit[]> {
    const query = { ands: [{ output: { input: { data: { image: { url: fileUrl } } } } }] };
    const { hits } = await this.#v2.POST('/searches', {
      body: { query, pagination: { page: 1, per_page: limit } },
      files: { [fileUrl]: picture },
    });
    return hits.map(({ input, score }) => ({ id: input.id, score }));
  }

  /** Returns the custom concepts of earlier trainings. */
  async customConcepts(): Promise<CustomConcept[]> {
    // An application's own concepts are listed before the models'.
    const { concepts } = await this.#v2.GET('/concepts', { params: { query: { per_page: 200 } } });
    const own = concepts.filter((c) => c.id.startsWith(`${customModel}-`));
    return own.map(({ id, name }) => ({ id, name })).sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Creates a concept, or renames an existing one. */
  async saveConcept(concept: CustomConcept): Promise<void> {
    try {
      await this.#v2.POST('/concepts', { body: { concepts: [concept] } });
    } catch (failure) {
      if (!(failure instanceof Failure && failure.status === 400)) throw failure; // it exists already
      await this.#v2.PATCH('/concepts', { body: { concepts: [concept], action: 'overwrite' } });
    }
  }

  /** Reports whether the custom model has a trained version. */
  async isTrained(): Promise<boolean> {
    try {
      const { model_versions: versions } = await this.#v2.GET('/models/{model_id}/versions', at);
      return versions.some((v) => v.status.code === code.trained);
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
    const output_config = { concepts_mutually_exclusive: true, closed_environment: false } as const;
    try {
      const model = { id: customModel, name: customModel, output_info: { data, output_config } };
      await this.#v2.POST('/models', { body: { model } });
    } catch (failure) {
      if (!(failure instanceof Failure && existsCodes.includes(failure.code))) throw failure;
      const models = [{ id: customModel, output_info: { data } }];
      await this.#v2.PATCH('/models', { body: { models, action: 'overwrite' } });
    }
    await train(this.#v2, customModel, pause);
  }
}

function storedPicture({ id = '', data }: Partial<Pick<Schemas['Input'], 'id' | 'data'>> = {}): StoredPicture {
  return {
    id,
    path: hostedPath(data?.image.url),
    name: fileName(data?.metadata),
    concept: data?.concepts?.find((c) => c.value === 1 && c.id.startsWith(`${customModel}-`))?.id,
  };
}
