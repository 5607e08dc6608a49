// Pictures and videos behind addresses, fetched as a page may: what the browser refuses, by its rules on other origins and by
// the page's own policy, is not downloaded. Every failure reads the same, as at a server.

import { codes, type Result } from './messages.ts';

const headerTime = 10_000;

/** How much is downloaded, and for how long. */
export interface Most {
  bytes: number;
  time: number; // milliseconds
  /** The result of a job with more bytes; absent: as every failure. */
  more?: Result;
}

const picture: Most = { bytes: 20 << 20, time: 30_000 };

/** A file, or the result of a job that did not get one. */
export type Download = { data: Blob; contentType: string } | { failed: Result };

const refused = { failed: { error: codes.fetch, passing: false } };
const passing = { failed: { error: codes.fetch, passing: true } };

const tooLarge = (most: Most): Download => (most.more ? { failed: most.more } : refused);

/** Takes a file that the caller has, within the same limit. */
export function fromFile(file: Blob, most = picture): Download {
  if (file.size > most.bytes) return tooLarge(most);
  return file.size ? { data: file, contentType: file.type } : refused;
}

/** Downloads at most 20 MB in at most half a minute, or as `most` has it, without cookies. */
export async function download(address: string, signal?: AbortSignal, most = picture): Promise<Download> {
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
    timer = setTimeout(stop, most.time);
    if (!response.ok) return [408, 425, 429].includes(response.status) || response.status >= 500 ? passing : refused;
    if (Number(response.headers.get('Content-Length') ?? 0) > most.bytes) return tooLarge(most);
    const data = await body(response, most.bytes, late);
    if (!data) return tooLarge(most);
    if (!data.size) return refused;
    return { data, contentType: response.headers.get('Content-Type') ?? '' };
  } catch {
    return signal?.aborted ? { failed: { error: codes.timeout } } : passing;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** The body, or undefined for one that is too large; of such a one no more than a piece is read too much. */
async function body(response: Response, most: number, stop: AbortController): Promise<Blob | undefined> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (let r = await reader?.read(); r && !r.done; r = await reader?.read()) {
    size += r.value.length;
    if (size > most) {
      stop.abort();
      return undefined;
    }
    pieces.push(r.value);
  }
  return new Blob(pieces);
}
