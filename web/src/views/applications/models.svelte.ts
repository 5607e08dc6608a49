// The public models that can be the default model of an application. They are loaded once.
import * as api from '../../api/console';

export interface Model {
  readonly id: string;
  readonly name: string;
}

let loadedModels = $state.raw<readonly Model[]>([]);

/** Loads the models, unless they were loaded before. */
export async function loadModels(): Promise<readonly Model[]> {
  if (!loadedModels.length) {
    const all = await api.models();
    // The API has models with the same name and different types. Only the first of each name is listed here.
    loadedModels = all.filter((model, i) => all.findIndex((other) => other.name === model.name) === i);
  }
  return loadedModels;
}

/** Returns the loaded models; empty before [loadModels] has returned. */
export function models(): readonly Model[] {
  return loadedModels;
}

/** Reports whether a model has concept names in all languages. Only the general model has. */
export function speaksAll(model: Model): boolean {
  return model.name.startsWith('general-v');
}

/** Returns the language that a request to a model must set. language: the application's. Empty: the request needs none. */
export function askIn(model: Model, language: string): string {
  return language === 'en' || speaksAll(model) ? '' : 'en';
}

/** Returns the model with an id. If none is loaded with that id, it returns the general model. */
export function modelOf(id: string): Model {
  return (
    loadedModels.find((model) => model.id === id) ?? loadedModels.find(speaksAll) ?? loadedModels[0] ?? { id, name: id }
  );
}
