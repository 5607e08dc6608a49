// Two hashes of a host's result for a picture, to compare with those of another host.
import { general } from '../../host/calls';
import type { Calls } from './calls';

export interface Receipt {
  readonly embedding: string; // SHA-256 in hex
  readonly answer: string;
  readonly ms: number; // duration of both calls
}

/** Requests the embedding and the answer, and hashes both: JSON as text, so every digit counts. */
export async function createReceipt(calls: Calls, picture: Blob): Promise<Receipt> {
  const startedAt = performance.now();
  const vector = await calls.embed(picture);
  // All hosts answer in one language, and the hash omits the fields that differ between applications.
  const concepts = await calls.predict(general, picture, 'en');
  const ms = performance.now() - startedAt;
  const rows = concepts.map(({ id, name, value }) => [id, name, value]);
  return { embedding: await hash(vector), answer: await hash(rows), ms };
}

async function hash(value: unknown): Promise<string> {
  return bytesToHex(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(value))));
}

/** Returns bytes as hexadecimal digits. */
export function bytesToHex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Returns the first 16 digits of a hash in groups of four. */
export function shortHash(hash: string): string {
  return hash.slice(0, 16).replace(/(.{4})(?=.)/g, '$1 ');
}

/** Reports whether two receipts have the same hashes. */
export function receiptsMatch(a: Receipt, b: Receipt): boolean {
  return a.embedding === b.embedding && a.answer === b.answer;
}

/** Counts the hosts that agree with the first that answered, all that answered, and those that did not. undefined: no answer. */
export function countMatches(places: readonly (Receipt | undefined)[]): {
  equal: number;
  answered: number;
  missing: number;
} {
  const answered = places.filter((p) => p !== undefined);
  const first = answered[0];
  return {
    equal: first ? answered.filter((p) => receiptsMatch(p, first)).length : 0,
    answered: answered.length,
    missing: places.length - answered.length,
  };
}

/**
 * Returns the origin of a server on this machine for a typed address such as 127.0.0.1:8081; undefined for another machine. The content
 * security policy of the pages permits no other.
 */
export function localOrigin(typed: string): string | undefined {
  const host = /^(?:http:\/\/)?((?:localhost|127\.0\.0\.1)(?::\d{1,5})?)(?:\/.*)?$/i.exec(typed.trim())?.[1];
  return host && URL.canParse(`http://${host}`) ? new URL(`http://${host}`).origin : undefined;
}
