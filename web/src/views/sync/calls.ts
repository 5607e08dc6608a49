// The calls of /v2 by the sync page. The replica on this device answers them, with or without a network, or the edge.
import { call, type Fetch } from '../../apiCall';
import { Failure } from '../../console';
import type { Conflict, Content, Label, Operation } from '../../operations';
import type { components } from '../../v2';
import type { Picture } from '../look/pictures';

type Schemas = components['schemas'];

export type { Conflict, Content, Label, Operation, PendingOperation } from '../../operations';

/** An input of the replica. */
export interface Input {
  readonly id: string;
  readonly name: string;
  readonly path: string; // path of its picture, "/hosted/…"; empty if the picture is not stored here
  readonly concepts: readonly Label[];
}

/** A custom model of the application. */
export interface Model {
  readonly id: string;
  readonly name: string;
}

/** The value in force for the subject of a conflict. */
export type InForce = { is: 'input'; input: Input } | { is: 'named'; name: string } | { is: 'gone' };

const trained = 21100;
const training = [21101, 21103];

export class Calls {
  readonly #ask: Fetch;
  readonly #app: string;

  constructor(ask: Fetch, app: string) {
    this.#ask = ask;
    this.#app = app;
  }

  /** Dismisses a conflict. */
  async dismiss(c: Conflict): Promise<void> {
    await this.#call('DELETE', `/sync/conflicts/${encodeURIComponent(c.id)}`);
  }

  /** Returns the number of inputs and at most `most` of the newest, newest first. */
  async newest(limit: number): Promise<{ all: number; inputs: Input[] }> {
    const { counts } = await this.#call<Schemas['CountsAnswer']>('GET', '/inputs/status');
    const all = (counts?.processed ?? 0) + (counts?.to_process ?? 0) + (counts?.errors ?? 0);
    const last = Math.max(1, Math.ceil(all / limit));
    const inputs: Input[] = [];
    for (let n = Math.max(1, last - 1); n <= last + 1; n++) {
      // one more: some may have come meanwhile
      const answer = await this.#call<Schemas['InputsAnswer']>('GET', `/inputs?page=${n}&per_page=${limit}`);
      inputs.push(...(answer.inputs ?? []).map(inputOf));
      if ((answer.inputs ?? []).length < limit) break;
    }
    return { all, inputs: inputs.slice(-limit).reverse() };
  }

  /** Adds a picture under the id of its bytes: the same file is the same input on every device. */
  async add(p: Picture): Promise<void> {
    await this.#call('POST', '/inputs', {
      inputs: [{ id: p.id, data: { image: { base64: p.base64 }, metadata: { name: p.name } } }],
    });
  }

  /** Adds a picture that the copy has, under another id. */
  async addAgain(path: string, content: Content, id: string): Promise<void> {
    const { concepts, metadata, geo } = content;
    const answer = await this.#ask(path);
    if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
    const base64 = await import('../look/pictures').then(async ({ base64Of }) => base64Of(await answer.blob()));
    const labels = concepts?.map(({ id: concept, value }) => ({ id: concept, value: value ?? 0 }));
    await this.#call('POST', '/inputs', {
      inputs: [
        {
          id,
          data: {
            image: { base64 },
            ...(labels && { concepts: labels }),
            ...(metadata !== undefined && { metadata }),
            ...(geo !== undefined && { geo }),
          },
        },
      ],
    });
  }

  /** Labels a picture with concepts as present (1) or absent (0), or removes the label (null). */
  async label(input: string, labels: readonly Label[]): Promise<void> {
    const added = labels.filter((l) => l.value !== null).map(({ id, value }) => ({ id, value }));
    const removed = labels.filter((l) => l.value === null).map(({ id }) => ({ id }));
    for (const [concepts, action] of [
      [added, 'merge'],
      [removed, 'remove'],
    ] as const) {
      if (concepts.length)
        await this.#call('PATCH', '/inputs', { inputs: [{ id: input, data: { concepts } }], action });
    }
  }

  /** Writes the metadata or the place of a picture. */
  async describe(input: string, data: { metadata?: unknown; geo?: unknown }): Promise<void> {
    await this.#call('PATCH', '/inputs', { inputs: [{ id: input, data }], action: 'overwrite' });
  }

  /** Deletes a picture permanently. */
  async remove(input: string): Promise<void> {
    await this.#call('DELETE', `/inputs/${encodeURIComponent(input)}`);
  }

  /** Renames a concept. */
  async name(id: string, name: string): Promise<void> {
    await this.#call('PATCH', '/concepts', { concepts: [{ id, name }], action: 'overwrite' });
  }

  /** Returns the custom concepts of the application. */
  async concepts(): Promise<{ id: string; name: string }[]> {
    // They are listed before those of the models.
    const answer = await this.#call<Schemas['ConceptsAnswer']>('GET', `/concepts?per_page=200`);
    const own = (answer.concepts ?? []).filter((c) => c.app_id === this.#app);
    return own.map(({ id = '', name = '' }) => ({ id, name }));
  }

  /** Returns the custom models of the application. */
  async models(): Promise<Model[]> {
    const answer = await this.#call<Schemas['ModelsAnswer']>('GET', '/models?per_page=200');
    const own = (answer.models ?? []).filter((model) => model.app_id === this.#app);
    return own.map(({ id = '', name = '' }) => ({ id, name }));
  }

  /** Creates a model with concepts. */
  async make(id: string, name: string, concepts: readonly string[]): Promise<void> {
    const data = { concepts: concepts.map((concept) => ({ id: concept })) };
    await this.#call('POST', '/models', { model: { id, name, output_info: { data } } });
  }

  /** Trains a model on the data of the replica, and returns when the training has succeeded or failed. */
  async train(model: string, pause: () => Promise<void>): Promise<void> {
    const path = `/models/${encodeURIComponent(model)}/versions`;
    const newVersion = await this.#call<Schemas['ModelAnswer']>('POST', path);
    for (;;) {
      const one = `${path}/${newVersion.model?.model_version?.id}`;
      const { model_version: version } = await this.#call<Schemas['ModelVersionAnswer']>('GET', one);
      const { code = 0 } = version?.status ?? {};
      if (code === trained) return;
      if (!training.includes(code)) throw new Failure(200, version?.status);
      await pause();
    }
  }

  /** The value in force for the subject of an operation. */
  async inForce(o: Operation): Promise<InForce> {
    try {
      if (o.input_id) {
        const id = encodeURIComponent(o.input_id);
        return {
          is: 'input',
          input: inputOf((await this.#call<Schemas['InputAnswer']>('GET', `/inputs/${id}`)).input),
        };
      }
      if (o.model_id) {
        const id = encodeURIComponent(o.model_id);
        return {
          is: 'named',
          name: (await this.#call<Schemas['ModelAnswer']>('GET', `/models/${id}`)).model?.name ?? '',
        };
      }
      if (o.concept_id) {
        const id = encodeURIComponent(o.concept_id);
        return {
          is: 'named',
          name: (await this.#call<Schemas['ConceptAnswer']>('GET', `/concepts/${id}`)).concept?.name ?? '',
        };
      }
    } catch (failure) {
      if (!(failure instanceof Failure && failure.status === 404)) throw failure;
    }
    return { is: 'gone' };
  }

  /** Returns the bytes of a picture. */
  async picture(path: string): Promise<Blob> {
    const answer = await this.#ask(path);
    if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
    return answer.blob();
  }

  #call<T>(method: string, path: string, body?: object): Promise<T> {
    return call(this.#ask, method, path, body);
  }
}

function inputOf(input: Schemas['Input'] | undefined): Input {
  const { id = '', data } = input ?? {};
  const metadata = data?.metadata as { name?: unknown; file?: unknown } | undefined;
  const name = metadata?.name ?? metadata?.file;
  const url = data?.image?.url ?? '';
  return {
    id,
    name: typeof name === 'string' ? name : '',
    path: /\/hosted\//.test(url) ? new URL(url, 'http://here').pathname : '',
    concepts: (data?.concepts ?? []).map(({ id: concept = '', name: conceptName, value }) => ({
      id: concept,
      ...(conceptName && { name: conceptName }),
      value: value ?? 1,
    })),
  };
}
