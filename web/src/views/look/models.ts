// The models that an application made itself and that can look at a picture.
import type { Application } from '../../application.svelte';
import type { components } from '../../v2';

type Schemas = components['schemas'];
const trained = 21100;
const page = 200; // own models are listed before all others

/** An application's trained models, by name. */
export async function ownModels(app: Application): Promise<readonly { id: string; name: string }[]> {
  const { models = [] } = await app.call<Schemas['ModelsAnswer']>('GET', `/models?per_page=${page}`);
  return models
    .filter((model) => model.app_id === app.id && model.model_version?.status?.code === trained)
    .map(({ id = '', name = '' }) => ({ id, name }));
}
