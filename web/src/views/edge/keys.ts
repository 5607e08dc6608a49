// The age of the keys that an edge stores. Without its origin, an edge accepts writes for one limited time and reads for another.
import type { KeysAge } from '../../api/console';

/** Reports whether the keys are too old for writes. now: milliseconds since 1970. */
export function tooOld(keys: KeysAge, now: number): boolean {
  return keys.known === undefined || now - Date.parse(keys.known) > keys.writes_seconds * 1000;
}

/** Returns a time in the largest unit that divides it. Less than two days are in hours: [24, 'hour'], [7, 'day']. */
export function span(seconds: number): [number, 'day' | 'hour' | 'minute'] {
  const day = 86_400;
  if (seconds >= 2 * day && seconds % day === 0) return [seconds / day, 'day'];
  if (seconds >= 3600 && seconds % 3600 === 0) return [seconds / 3600, 'hour'];
  return [Math.round(seconds / 60), 'minute'];
}

/**
 * Returns the Authorization header for a pasted text. A text of 32 hexadecimal digits is a key, and any other text is a token. If the text
 * has neither, for example only the name of a scheme, the header is empty.
 */
export function authorizationOf(text: string): string {
  const secret = text.trim().replace(/^(authorization:\s*)?((key|bearer)(\s+|$))?/i, '');
  if (!secret) return '';
  return /^[0-9a-f]{32}$/i.test(secret) ? `Key ${secret.toLowerCase()}` : `Bearer ${secret}`;
}
