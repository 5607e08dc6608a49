// Downloads pictures and videos with the rights of a page. If the browser refuses a request, by CORS or by the page's content
// security policy, the download fails. All failures give the same result, as at a server.

import { codes, type Result } from './messages.ts';

const headerTime = 10_000;

/** The limits of a download. */
export interface Most {
  bytes: number;
  time: number; // milliseconds
  /** The result of a job with more bytes. By default the result of every other failure. */
  more?: Result;
}

const picture: Most = { bytes: 20 << 20, time: 30_000 };

/** A file, or the result of a job that did not get one. */
export type Download = { data: Blob; contentType: string } | { failed: Result };

const refused = { failed: { error: codes.fetch, passing: false } };
const passing = { failed: { error: codes.fetch, passing: true } };

const tooLarge = (most: Most): Download => (most.more ? { failed: most.more } : refused);

/** Returns the caller's file, if it is within the limit and not empty. */
export function fromFile(file: Blob, most = picture): Download {
  if (file.size > most.bytes) return tooLarge(most);
  return file.size ? { data: file, contentType: file.type } : refused;
}

/** Downloads a file without cookies. By default the limits are 20 MiB and 30 seconds. It never rejects. */
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

/** Returns the body, or undefined if it has more than `most` bytes. It then aborts the request. */
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
