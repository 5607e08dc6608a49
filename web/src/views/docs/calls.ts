/** A request, as a person made it in the reference. */
interface Call {
  url: string;
  headers: Record<string, string>;
  credentials?: RequestCredentials;
}

/**
 * Holds a request to this server and keeps the pages' own session out of it: what is tried is
 * allowed by the credential that was put in, or not at all. A bare key is taken for one.
 */
export function own<C extends Call>(call: C, origin: string): C {
  if (new URL(call.url, origin).origin !== origin) throw new Error(`${call.url} is not on this server`);
  call.credentials = 'omit';
  const key = call.headers?.Authorization?.trim() ?? '';
  if (/^((key|bearer)\s*)?$/i.test(key)) delete call.headers?.Authorization;
  if (/^[0-9a-f]{32}$/.test(key)) call.headers.Authorization = `Key ${key}`;
  return call;
}
