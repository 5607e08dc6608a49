// Calls /v2 at any host: the runtime on this device, a replica, or a server to compare with.
import { Failure } from './console';

/** Answers a path under /v2 or /hosted, as fetch does. */
export type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

/** Calls a path below /v2 and returns the JSON of the answer. `key` is for hosts that need one. It throws a Failure if the call fails. */
export async function call<T>(ask: Fetch, method: string, path: string, body?: object, key = ''): Promise<T> {
  let response: Response;
  try {
    response = await ask(`/v2${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
      headers: {
        ...(body && { 'Content-Type': 'application/json' }),
        ...(key && { Authorization: `Key ${key}` }),
      },
    });
  } catch (failure) {
    if (failure instanceof TypeError) throw new Failure(0); // fetch rejects with a TypeError if the host is unreachable
    throw failure;
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok && answer.status?.code === 10000) return answer as T;
  // If a call has only one picture, the picture's status has more details than the status of the call.
  const one = [...(answer.inputs ?? []), ...(answer.outputs ?? [])][0]?.status;
  const status = one?.code ? one : (answer.status ?? {});
  throw new Failure(response.status, status, response);
}

/** Returns all items of a list. It requests one page after another, each of `size` items. */
export async function listAll<T>(size: number, list: (page: number) => Promise<T[]>): Promise<T[]> {
  const all: T[] = [];
  for (let n = 1; ; n++) {
    const items = await list(n);
    all.push(...items);
    if (items.length < size) return all;
  }
}
