// One call of /v2 to any host: the runtime on this device, a copy, or a server to compare with.
import { Failure } from './console';

/** Answers a path under /v2 or /hosted, as fetch does. */
export type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

/** Requests a path below /v2. key: for hosts that need one. An unsuccessful answer throws a Failure. */
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
    if (failure instanceof TypeError) throw new Failure(0); // as fetch says: not reached
    throw failure;
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok && answer.status?.code === 10000) return answer as T;
  // The status of the only picture of a call says more than that the call failed.
  const one = [...(answer.inputs ?? []), ...(answer.outputs ?? [])][0]?.status;
  const said = one?.code ? one : (answer.status ?? {});
  throw new Failure(response.status, said, response);
}

/** All that a list holds: its pages in turn. */
export async function listAll<T>(size: number, list: (page: number) => Promise<T[]>): Promise<T[]> {
  const all: T[] = [];
  for (let n = 1; ; n++) {
    const some = await list(n);
    all.push(...some);
    if (some.length < size) return all;
  }
}
