// The client of /v2. The generated types check the path, the parameters, the body and the answer of each call. The host that answers is an
// argument: the one that an application chooses, the runtime on this device, or a server to compare with.
import createClient, { type ParamsOption } from 'openapi-fetch';
import type { FetchOptions } from '../../runtime/src/index';
import type { components, paths } from '../v2';
import { base64Of } from './blobs';
import { Failure } from './console';

export type Schemas = components['schemas'];

/** Answers a path under /v2 or /hosted, as fetch does. */
export type Fetch = (path: string, init?: FetchOptions) => Promise<Response>;

type Method = 'get' | 'post' | 'patch' | 'delete';
type Path<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];
type Json<T> = T extends { content: { 'application/json': infer J } } ? J : never;
type Answer<O> = O extends { responses: { 200: infer R } } ? Json<R> : never;
type Body<O> = O extends { requestBody: infer B }
  ? { body: Json<B> }
  : { body?: O extends { requestBody?: infer B } ? Json<B> : never };
type Init<O> = ParamsOption<O> &
  Body<O> &
  Pick<FetchOptions, 'signal' | 'files' | 'onFrames' | 'pictures'> & {
    /** Returns the text of the body, if JavaScript would change a number in it. */
    bodySerializer?: () => string;
    /** Accepts an answer with a status for each input, even if all of them failed. */
    each?: boolean;
  };
type Send<M extends Method> = <P extends Path<M>>(
  path: P,
  ...init: object extends Init<paths[P][M]> ? [Init<paths[P][M]>?] : [Init<paths[P][M]>]
) => Promise<Answer<paths[P][M]>>;

/** The calls of /v2 at a host. They return the JSON of the answer, and throw a Failure if the call fails. */
export type V2 = { readonly [M in Method as Uppercase<M>]: Send<M> };

/** A request of the client. The browser's class has no relative URLs, copies the body, and drops the options that only the runtime knows. */
class Call {
  constructor(
    readonly path: string,
    readonly init: FetchOptions,
  ) {}
}

/** The URL by which a body names the picture or the video whose bytes are in `files`. The runtime reads the bytes and downloads nothing. */
export const fileUrl = 'http://file.invalid/';

/** Returns a host over HTTP, which gets the files of a call as base64 in the body. */
export const overHTTP =
  (ask: Fetch): Fetch =>
  async (path, { files = {}, ...init } = {}) => {
    for (const [url, file] of Object.entries(files)) {
      const inline = `"base64":"${await base64Of(file)}"`;
      init.body = String(init.body).replaceAll(`"url":${JSON.stringify(url)}`, inline);
    }
    return ask(path, init);
  };

/** Returns the client of a host. `key` is for hosts that need one. */
export function clientOf(ask: Fetch, key?: string) {
  const fetch = async ({ path, init }: Call) => {
    try {
      return await ask(path, init);
    } catch (failure) {
      throw failure instanceof TypeError ? new Failure(0) : failure; // fetch rejects with a TypeError if the host is unreachable
    }
  };
  return createClient<paths>({
    baseUrl: '/v2',
    headers: { Authorization: key && `Key ${key}` },
    querySerializer: { array: { style: 'form', explode: false } },
    ...({ Request: Call, fetch } as object), // the library passes a Call on as it does the browser's Request, which its types demand
  });
}

/** Returns the calls of /v2 at a host. */
export function v2(ask: Fetch, key?: string): V2 {
  // Send has checked the arguments, and the type of `request` depends on the method.
  const request = clientOf(ask, key).request as (
    ...call: unknown[]
  ) => Promise<{ error?: unknown; response: Response }>;
  const send =
    (method: Method) =>
    async (path: string, ...[init]: ({ each?: boolean } | undefined)[]) => {
      // As a stream, an answer that is not JSON does not throw a SyntaxError.
      const { error, response } = await request(method, path, { parseAs: 'stream', ...init });
      const answer = response.ok ? await response.json().catch(() => undefined) : error;
      if (response.ok && answer?.status?.code === 10000) return answer;
      if (init?.each && answer?.inputs && (response.ok || answer.inputs.length)) return answer;
      // If a call has only one picture, the picture's status has more details than the status of the call.
      const one = [...(answer?.inputs ?? []), ...(answer?.outputs ?? [])][0]?.status;
      throw new Failure(response.status, one?.code ? one : answer?.status, response);
    };
  return { GET: send('get'), POST: send('post'), PATCH: send('patch'), DELETE: send('delete') };
}

/** Returns all items of a list. It requests one page after another, each of `size` items. */
export async function listAll<T>(
  list: (query: { page: number; per_page: number }) => Promise<readonly T[]>,
  size = 200,
): Promise<T[]> {
  const all: T[] = [];
  for (let page = 1; ; page++) {
    const items = await list({ page, per_page: size });
    all.push(...items);
    if (items.length < size) return all;
  }
}

/** Returns the path of a JPEG of an input, for `Application.address` and `Fetch`. */
export const inputPath = (id: string, jpeg: 'thumbnail' | 'rendition'): string =>
  `/v2/inputs/${encodeURIComponent(id)}/${jpeg}`;

/** Returns the bytes at a path under /v2 or /hosted. It throws a Failure if the host does not have them. */
export async function bytesAt(ask: Fetch, path: string): Promise<Blob> {
  const answer = await ask(path);
  if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
  return answer.blob();
}
