// Sends requests to an origin. `join` is the first request of a replica.

import type { Credential } from './credential.ts';
import { Reader } from './envelope.ts';

const contentType = 'application/vnd.sightline.sync';
const protocol: [name: string, value: string] = ['Sync-Protocol', '2'];
const answerTime = 30_000; // ms until an answer must begin: longer than an origin delays an answer until it has new entries
const largeBody = 64 << 10; // bytes of a body that has no time limit, because the time to send it is unknown

export interface Request {
  method: string;
  path: string;
  query?: string;
  header: [name: string, value: string][];
  body?: Uint8Array<ArrayBuffer>;
}

/** An invalid token. The origin reports whether an application was deleted only to callers with a credential, valid or not. */
const invalidToken = 'Bearer none';

/**
 * Sends a request with the credential. If the origin refuses it and the page has another credential, `send` repeats the request once. If
 * the page has none, `send` still sends the request, since the origin then reports whether the application was deleted. Aborting `stop`
 * cancels the request; `send` aborts it itself if the answer does not begin in time.
 */
export async function send(base: string, credential: Credential, r: Request, stop: AbortController): Promise<Response> {
  const authorization = await credential.get().catch(() => '');
  const response = await sendOnce(base, authorization || invalidToken, r, stop);
  if (response.status !== 401 || !authorization) return response;
  credential.refuse(authorization);
  const newAuthorization = await credential.get().catch(() => authorization);
  if (newAuthorization === authorization) return response;
  await response.body?.cancel();
  return sendOnce(base, newAuthorization, r, stop);
}

async function sendOnce(base: string, authorization: string, r: Request, stop: AbortController): Promise<Response> {
  const headers = new Headers(r.header);
  headers.set('Authorization', authorization);
  const onTimeout = () => stop.abort(new DOMException('request timed out', 'TimeoutError'));
  const timer = (r.body?.length ?? 0) < largeBody ? setTimeout(onTimeout, answerTime) : undefined;
  try {
    return await fetch(`${base}${r.path}${r.query ? `?${r.query}` : ''}`, {
      method: r.method,
      headers,
      ...(r.body?.length && { body: r.body }),
      signal: stop.signal,
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    });
  } finally {
    clearTimeout(timer);
  }
}

/** The reason why `join` failed. Its `name` distinguishes the cases for a page. */
export class JoinError extends Error {
  constructor(
    name: 'NetworkError' | 'NotAllowedError' | 'NotFoundError' | 'GoneError' | 'OriginError',
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
    this.name = name;
  }
}

/** An origin's app record of an application, and its entry in the control log. */
export interface Register {
  seq: number;
  data: Uint8Array;
}

/** Requests the app record, which a store needs before an engine opens the application as a replica. It rejects with a [JoinError]. */
export async function join(base: string, app: string, credential: Credential): Promise<Register> {
  const query = `app=${app}&since=0&register=0&live=0`;
  const stop = new AbortController();
  try {
    const ask: Request = {
      method: 'GET',
      path: '/v2/sync/changes',
      query,
      header: [['Accept', contentType], protocol],
    };
    const response = await send(base, credential, ask, stop);
    if (response.status !== 200) throw await readRefusal(response);
    const register = await firstRegister(response);
    if (!register) throw new JoinError('OriginError', `${base} returned no record of application ${app}`);
    return register;
  } catch (failure) {
    if (failure instanceof JoinError) throw failure;
    const reason = (failure as Error).message;
    const message = `the first start of a copy needs its origin, and ${base} cannot be reached: ${reason}`;
    throw new JoinError('NetworkError', message, failure);
  } finally {
    stop.abort();
  }
}

async function readRefusal(response: Response): Promise<JoinError> {
  const { status } = response;
  let detail = `status ${status}`;
  if (response.headers.get('Content-Type')?.startsWith(contentType))
    for (const r = Reader.envelope(new Uint8Array(await response.arrayBuffer())); r.next(); )
      if (r.number === 2) detail = r.text();
  if (status === 410) return new JoinError('GoneError', `the application was deleted at the origin: ${detail}`);
  if (status === 404) return new JoinError('NotFoundError', `the origin has no application with this id: ${detail}`);
  if (status === 401 || status === 403)
    return new JoinError('NotAllowedError', `the origin refused the credential: ${detail}`);
  return new JoinError('OriginError', `the origin answered: ${detail}`);
}

// Frames of a stream: sync/README.md, "Changes".
const headBytes = 5;
const maxRegister = 16 << 20;
const frames = { part: 1, register: 4 } as const;

/** Returns the first app record in a stream of frames, or undefined if the stream ends before. */
async function firstRegister(response: Response): Promise<Register | undefined> {
  const reader = response.body?.getReader();
  if (!reader) return undefined;
  let buf = new Uint8Array();
  let parts = new Uint8Array(); // beginning of the next frame's body, from frames of type `part`
  for (let r = await reader.read(); !r.done; r = await reader.read()) {
    buf = both(buf, r.value);
    while (buf.length >= headBytes) {
      const size = new DataView(buf.buffer, buf.byteOffset).getUint32(0, true);
      const type = buf[4];
      if (size + parts.length > maxRegister)
        throw new JoinError('OriginError', 'the origin sent a record that is too large');
      if (buf.length < headBytes + size) break;
      parts = both(parts, buf.subarray(headBytes, headBytes + size));
      buf = buf.slice(headBytes + size);
      if (type === frames.register) return decodeRegister(parts);
      if (type !== frames.part) parts = new Uint8Array();
    }
  }
  return undefined;
}

function both(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

function decodeRegister(body: Uint8Array): Register {
  const register: Register = { seq: 0, data: new Uint8Array() };
  for (const r = Reader.envelope(body); r.next(); ) {
    if (r.number === 2) register.seq = r.uint();
    if (r.number === 3) register.data = r.raw().slice();
  }
  return register;
}
