// Exports a version as a file: its training pictures with their labels, and its quality.

import { listAll } from '../../api/client';
import type { Application } from '../../host/application.svelte';
import { type Metrics, type ModelInfo, modelPath } from './calls';
import type { NumberedVersion } from './versions';

/** Starts a download of a version as JSON in the browser. */
export async function save(
  app: Application,
  info: ModelInfo,
  version: NumberedVersion,
  metrics: Metrics | null,
): Promise<void> {
  const path = { model_id: info.model.id, version_id: version.id };
  const inputs = await listAll(
    async (query) =>
      (await app.v2.GET('/models/{model_id}/versions/{version_id}/inputs', { params: { path, query } })).inputs,
  );
  const content = {
    application: app.id,
    model: {
      id: info.model.id,
      name: info.model.name,
      page: new URL(modelPath(app, info.model.id), location.origin).href,
    },
    version: { id: version.id, name: `v${version.number}`, created_at: version.created_at, digest: version.digest },
    settings: { concepts_mutually_exclusive: info.exclusive, closed_environment: info.closed },
    concepts: info.concepts.map(({ id, name }) => ({ id, name })),
    inputs: inputs.map(({ id, data }) => ({ id, url: data.image.url, concepts: data.concepts ?? [] })),
    metrics: metrics && { ...metrics, pictures: undefined, since: undefined },
  };
  const blob = new Blob([JSON.stringify(content, null, 2)], { type: 'application/json' });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = `${info.model.name.replace(/[^\p{L}\p{N}-]+/gu, '-')}-v${version.number}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
