/** A request that a person sends from the reference. */
interface Call {
  url: string;
  headers: Record<string, string>;
  credentials?: RequestCredentials;
}

/**
 * Restricts a request to this server and removes the pages' session from it, so that only the entered credential counts. It throws for a
 * URL on another server. If the credential is a bare key, it adds the scheme.
 */
export function own<C extends Call>(call: C, origin: string): C {
  if (new URL(call.url, origin).origin !== origin) throw new Error(`${call.url} is not on this server`);
  call.credentials = 'omit';
  const key = call.headers?.Authorization?.trim() ?? '';
  if (/^((key|bearer)\s*)?$/i.test(key)) delete call.headers?.Authorization;
  if (/^[0-9a-f]{32}$/.test(key)) call.headers.Authorization = `Key ${key}`;
  return call;
}
