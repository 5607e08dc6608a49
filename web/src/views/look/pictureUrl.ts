// Loads a picture from a URL of another host. A page may not fetch from other hosts, so the application's host downloads the picture and
// stores it as an input. The page reads it from there.
import type { Application } from '../../application.svelte';
import { Failure } from '../../console';
import { decode } from '../../routes';
import { bytesToHex } from './receipt';

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
  const path = `/inputs/${id}`;
  const metadata = { name: nameOfUrl(url) };
  await app.write('POST', '/inputs', { inputs: [{ id, data: { image: { url }, metadata } }] });
  type Answer = { input: { status: { code: number; description: string; details?: string } } };
  for (const startedAt = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, pause))) {
    stop.throwIfAborted();
    const { status } = (await app.call<Answer>('GET', path)).input;
    if (ready.includes(status.code)) break;
    if (status.code !== waiting || performance.now() - startedAt > patience) {
      await app.write('DELETE', path); // the download failed or takes too long
      throw new Failure(400, status);
    }
  }
  const answer = await app.ask(await source(app, path));
  if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
  return answer.blob();
}

/** Returns the path of an input's picture at its host. */
async function source(app: Application, path: string): Promise<string> {
  const { source } = await app.call<{ source: { picture?: string } }>('GET', `${path}/source`);
  return new URL(source.picture ?? '', 'http://here').pathname;
}
