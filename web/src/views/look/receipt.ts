// The result of a host for a picture, in two hashes that can be compared with another host's.
import type { Calls } from './calls';
import { general } from './calls';

export interface Receipt {
  readonly embedding: string; // SHA-256 in hex
  readonly answer: string;
  readonly ms: number; // that both calls took
}

/** Requests the embedding and the answer, and hashes both: JSON as text, so every digit counts. */
export async function receipt(calls: Calls, base64: string): Promise<Receipt> {
  const began = performance.now();
  const vector = await calls.embed(base64);
  // In one language at every place, and without what may differ between applications.
  const concepts = await calls.predict(general, base64, 'en');
  const ms = performance.now() - began;
  const rows = concepts.map(({ id, name, value }) => [id, name, value]);
  return { embedding: await hash(vector), answer: await hash(rows), ms };
}

async function hash(value: unknown): Promise<string> {
  return bytesToHex(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(value))));
}

/** Two digits a byte. */
export function bytesToHex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The beginning of a hash, in groups of four, as it is read aloud. */
export function short(hash: string): string {
  return hash.slice(0, 16).replace(/(.{4})(?=.)/g, '$1 ');
}

/** Whether two receipts are of the same bytes. */
export function equal(a: Receipt, b: Receipt): boolean {
  return a.embedding === b.embedding && a.answer === b.answer;
}

/** How many places gave what the first did, of those that answered, and how many did not answer. */
export function count(places: readonly (Receipt | undefined)[]): { equal: number; answered: number; missing: number } {
  const answered = places.filter((p) => p !== undefined);
  const first = answered[0];
  return {
    equal: first ? answered.filter((p) => equal(p, first)).length : 0,
    answered: answered.length,
    missing: places.length - answered.length,
  };
}

/**
 * The server on this machine with an address that a person typed, such as 127.0.0.1:8081: the pages' policy permits no other. Undefined if
 * it is another.
 */
export function originOf(typed: string): string | undefined {
  const host = /^(?:http:\/\/)?((?:localhost|127\.0\.0\.1)(?::\d{1,5})?)(?:\/.*)?$/i.exec(typed.trim())?.[1];
  return host && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).origin : undefined;
}
