// The custom models of an application that can predict for a picture.
import type { Application } from '../../application.svelte';
import type { components } from '../../v2';

type Schemas = components['schemas'];
const trained = 21100;
const page = 200; // the list starts with the custom models, so one page contains up to 200 of them

/** Returns an application's trained custom models, with names. */
export async function customModels(app: Application): Promise<readonly { id: string; name: string }[]> {
  const { models = [] } = await app.call<Schemas['ModelsAnswer']>('GET', `/models?per_page=${page}`);
  return models
    .filter((model) => model.app_id === app.id && model.model_version?.status?.code === trained)
    .map(({ id = '', name = '' }) => ({ id, name }));
}
