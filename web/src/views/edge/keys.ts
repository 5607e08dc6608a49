// How old what an edge knows of keys is: without its origin it takes writes for a while, and answers for another.
import type { KeysAge } from '../../console';

/** Whether keys were heard of too long ago for anything to be written. */
export function tooOld(keys: KeysAge, now: number): boolean {
  return keys.known === undefined || now - Date.parse(keys.known) > keys.writes_seconds * 1000;
}

/** A span of time in the largest unit of which it is a whole number, in days if it is at least two: [24, 'hour'], [7, 'day']. */
export function span(seconds: number): [number, 'day' | 'hour' | 'minute'] {
  const day = 86_400;
  if (seconds >= 2 * day && seconds % day === 0) return [seconds / day, 'day'];
  if (seconds >= 3600 && seconds % 3600 === 0) return [seconds / 3600, 'hour'];
  return [Math.round(seconds / 60), 'minute'];
}

/**
 * The Authorization header for a pasted text: a key has 32 hexadecimal digits, anything else is a token. It is empty if the text has
 * neither, such as the name of a scheme alone.
 */
export function authorizationOf(text: string): string {
  const bare = text.trim().replace(/^(authorization:\s*)?((key|bearer)(\s+|$))?/i, '');
  if (!bare) return '';
  return /^[0-9a-f]{32}$/i.test(bare) ? `Key ${bare.toLowerCase()}` : `Bearer ${bare}`;
}
