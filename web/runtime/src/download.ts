// Downloads pictures and videos with the rights of a page. If the browser refuses a request, by CORS or by the page's content
// security policy, the download fails. All of these failures give the same result, as at a server. If a server has answered, with the
// permission to be read by the page, the result has the reason. The texts are those of a server.

import { codes, type Result } from './messages.ts';

const headerTime = 10_000;

/** The limits of a download. */
export interface Limits {
  bytes: number;
  time: number; // milliseconds
  /** The result of a job with more bytes. By default the result of every other failure. */
  tooLarge?: Result;
}

/** A camera raw has at most 64 MB. The guest refuses other pictures of more than 20 MB. */
const pictureLimits: Limits = { bytes: 64_000_000, time: 30_000 };

/** A file, or the result of a job that did not get one. */
export type Download = { data: Blob; contentType: string } | { failed: Result };

const permanentFailure = { failed: { error: codes.fetch, passing: false } };
const temporaryFailure = { failed: { error: codes.fetch, passing: true } };

const answered = (reason: string, passing = false): Download => ({
  failed: { error: codes.answered, text: `could not download the file: ${reason}`, passing },
});

const tooLarge = (limits: Limits): Download =>
  limits.tooLarge ? { failed: limits.tooLarge } : answered(`it has more than ${limits.bytes} bytes`);

const unreadable = { failed: { error: codes.corrupt, text: 'could not read the file' } };

/** Returns the caller's file, if it is within the limit and not empty. Its failures do not advise to check a URL, as those of downloads do. */
export function fromFile(file: Blob, limits = pictureLimits): Download {
  if (file.size > limits.bytes) return { failed: limits.tooLarge ?? { error: codes.tooLarge } };
  return file.size ? { data: file, contentType: file.type } : unreadable;
}

/** Returns the bytes of a file. The browser refuses to read a file that has changed since the user chose it. */
export const bytesOf = (file: Blob): Promise<Uint8Array | { failed: Result }> =>
  file.arrayBuffer().then(
    (bytes) => new Uint8Array(bytes),
    () => unreadable,
  );

/** Downloads a file without cookies. By default the limits are those of pictures. It never rejects. */
export async function download(address: string, signal?: AbortSignal, limits = pictureLimits): Promise<Download> {
  if (!URL.canParse(address)) return permanentFailure;
  const url = new URL(address);
  if (!/^https?:$/.test(url.protocol) || url.username || url.password) return permanentFailure;
  const timeout = new AbortController();
  const stop = () => timeout.abort();
  signal?.addEventListener('abort', stop);
  let timer = setTimeout(stop, headerTime);
  let begun = false; // the server has answered
  try {
    const response = await fetch(url, {
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      signal: timeout.signal,
    });
    clearTimeout(timer);
    begun = true;
    timer = setTimeout(stop, limits.time);
    const { ok, status } = response;
    if (!ok) {
      const passing = [408, 425, 429].includes(status) || status >= 500;
      return answered(`its server answered with HTTP status ${status}`, passing);
    }
    if (Number(response.headers.get('Content-Length') ?? 0) > limits.bytes) return tooLarge(limits);
    const data = await body(response, limits.bytes, timeout);
    if (!data) return tooLarge(limits);
    if (!data.size) return answered('it is empty');
    return { data, contentType: response.headers.get('Content-Type') ?? '' };
  } catch {
    if (signal?.aborted) return { failed: { error: codes.timeout } };
    if (!begun) return temporaryFailure;
    const slow = `its server sent it for longer than ${limits.time / 1000} seconds`;
    return answered(timeout.signal.aborted ? slow : 'its server ended the transfer early', true);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** Returns the body, or undefined if it has more than `maxBytes` bytes. It then aborts the request. */
async function body(response: Response, maxBytes: number, stop: AbortController): Promise<Blob | undefined> {
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
  return new Blob(pieces);
}
