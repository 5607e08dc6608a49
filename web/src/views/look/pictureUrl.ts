// Loads a picture from a URL of another host. A page may not fetch from other hosts, so the application's host downloads the picture and
// stores it as an input. The page reads it from there.

import { bytesAt } from '../../api/client';
import { Failure } from '../../api/console';
import type { Application } from '../../host/application.svelte';
import { hostedPath } from '../../host/calls';
import { decode } from '../../routing/routes';
import { bytesToHex } from './consistency';

const waiting = 30001;
const ready = [30000, 30200];
const pause = 400; // ms between two reads of the status
const patience = 60_000; // ms until the download counts as failed

/** Returns the last part of a URL's path, or the URL's host if the path is empty; undefined if the text is not an HTTP URL. */
export function nameOfUrl(text: string): string | undefined {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  const part = url.pathname.split('/').filter(Boolean).at(-1) ?? url.host;
  return decode(part) ?? part;
}

/**
 * Stores the picture at a URL as an input, and returns its bytes. If the download fails or takes over a minute, it deletes the input and
 * throws a Failure. stop ends the wait; the download continues.
 */
export async function fetchPicture(app: Application, text: string, stop: AbortSignal): Promise<Blob> {
  const url = text.trim();
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${url} ${Date.now()}`));
  const id = bytesToHex(hash).slice(0, 32);
  const at = { params: { path: { input_id: id } } };
  await app.write.POST('/inputs', {
    body: { inputs: [{ id, data: { image: { url }, metadata: { name: nameOfUrl(url) } } }] },
  });
  for (const startedAt = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, pause))) {
    stop.throwIfAborted();
    const { status } = (await app.v2.GET('/inputs/{input_id}', at)).input;
    if (ready.includes(status.code)) break;
    if (status.code !== waiting || performance.now() - startedAt > patience) {
      await app.write.DELETE('/inputs/{input_id}', at); // the download failed or takes too long
      throw new Failure(400, status);
    }
  }
  const { source } = await app.v2.GET('/inputs/{input_id}/source', at);
  return bytesAt(app.ask, hostedPath(source.picture));
}
