// Pictures behind addresses, fetched as a page may: what the browser refuses, by its rules on other origins and by
// the page's own policy, is not downloaded. Every failure reads the same, as at a server.

import { codes, type Result } from './messages.ts';

const maxBytes = 20 << 20;
const headerTime = 10_000;
const wholeTime = 30_000;

/** A picture, or the result of a job that did not get one. */
export type Download = { data: Uint8Array<ArrayBuffer>; contentType: string } | { failed: Result };

const refused = { failed: { error: codes.fetch, passing: false } };
const passing = { failed: { error: codes.fetch, passing: true } };

/** Downloads at most 20 MB, in at most half a minute, without cookies. */
export async function download(address: string, signal?: AbortSignal): Promise<Download> {
  if (!URL.canParse(address)) return refused;
  const url = new URL(address);
  if (!/^https?:$/.test(url.protocol) || url.username || url.password) return refused;
  const late = new AbortController();
  const stop = () => late.abort();
  signal?.addEventListener('abort', stop);
  let timer = setTimeout(stop, headerTime);
  try {
    const response = await fetch(url, {
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      signal: late.signal,
    });
    clearTimeout(timer);
    timer = setTimeout(stop, wholeTime);
    if (!response.ok) return [408, 425, 429].includes(response.status) || response.status >= 500 ? passing : refused;
    if (Number(response.headers.get('Content-Length') ?? 0) > maxBytes) return refused;
    const data = await body(response, late);
    if (!data?.length) return refused;
    return { data, contentType: response.headers.get('Content-Type') ?? '' };
  } catch {
    return signal?.aborted ? { failed: { error: codes.timeout } } : passing;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** The body, or undefined for one that is too large; of such a one no more than a piece is read too much. */
async function body(response: Response, stop: AbortController): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (let r = await reader?.read(); r && !r.done; r = await reader?.read()) {
    size += r.value.length;
    if (size > maxBytes) {
      stop.abort();
      return undefined;
    }
    pieces.push(r.value);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}
