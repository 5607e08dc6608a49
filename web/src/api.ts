// The only caller of /v2. Its types are generated from openapi.json.
import createClient from 'openapi-fetch';
import { Failure } from './console';
import type { components, paths } from './v2';

export type Concept = Required<Pick<components['schemas']['Concept'], 'id' | 'name' | 'value'>>;

const v2 = createClient<paths>({ baseUrl: '/v2' });

const sample = '/samples/42-lighthouse-in-the-sea.jpg';

/** Predicts a sample picture with a key; counts as one call. */
export async function predictSample(model: string, language: string, key: string): Promise<Concept[]> {
  const picture = new Uint8Array(await (await reach(fetch(sample))).arrayBuffer());
  let binary = '';
  for (const byte of picture) binary += String.fromCharCode(byte);
  const { data, error, response } = await reach(
    v2.POST('/models/{model_id}/outputs', {
      params: { path: { model_id: model } },
      headers: { Authorization: `Key ${key}` },
      body: {
        inputs: [{ data: { image: { base64: btoa(binary) } } }],
        // The server's own list of languages is the wider type.
        model: { output_info: { output_config: { language: language as 'en' } } },
      },
    }),
  );
  const status = data?.status ?? error?.status;
  if (!data) throw new Failure(response.status, status, response);
  return (data.outputs?.[0]?.data?.concepts ?? []) as Concept[];
}

async function reach<T>(request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch {
    throw new Failure(0);
  }
}
