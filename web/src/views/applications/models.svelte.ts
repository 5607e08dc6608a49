// The public models that an application may prefer. They are asked for once.
import * as api from '../../console';

export interface Model {
  readonly id: string;
  readonly name: string;
}

let known = $state.raw<readonly Model[]>([]);

/** Asks for the models unless they are known. */
export async function loadModels(): Promise<readonly Model[]> {
  if (!known.length) {
    const all = await api.models();
    // The interface distinguishes models of one name by their type; here only the first of a name is listed.
    known = all.filter((model, i) => all.findIndex((other) => other.name === model.name) === i);
  }
  return known;
}

/** The models that were loaded. */
export function models(): readonly Model[] {
  return known;
}

/** Whether a model speaks all languages: the general one alone does. */
export function speaksAll(model: Model): boolean {
  return model.name.startsWith('general-v');
}

/** The language that a request to a model has to name, in an application of a language; empty: none. */
export function askIn(model: Model, language: string): string {
  return language === 'en' || speaksAll(model) ? '' : 'en';
}

/** The model with an id; without one, the default model. */
export function modelOf(id: string): Model {
  return known.find((model) => model.id === id) ?? known.find(speaksAll) ?? known[0] ?? { id, name: id };
}
