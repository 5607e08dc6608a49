// Parses the text that a person types into the fields of a clause.

import type { Point } from './clause';
import { pointOf } from './query';

const zeros = [0x0660, 0x06f0, 0x0966, 0x09e6, 0x0a66]; // digit 0 in Arabic, Persian, Devanagari, Bengali, Gurmukhi

/** Returns a text with the digits of the reader's script replaced by 0 to 9. */
function latin(text: string): string {
  return [...text.normalize('NFKC')]
    .map((c) => {
      const point = c.codePointAt(0) ?? 0;
      const zero = zeros.find((z) => point >= z && point < z + 10);
      return zero === undefined ? c : String(point - zero);
    })
    .join('')
    .replace(/[\u2212\u2013]/g, '-')
    .replace(/\u066b/g, '.')
    .replace(/[\u060c\u3001]/g, ', ');
}

/** Parses a number of at least zero, with a decimal point or comma; undefined for other text. */
export function typedNumber(text: string): number | undefined {
  const plain = latin(text).trim().replace(',', '.');
  const n = Number(plain);
  return plain !== '' && Number.isFinite(n) && n >= 0 ? n : undefined;
}

/** Parses a place: "46.67, 11.16", "46.67 11.16" or "46.67° N, 11.16° E"; undefined for other text. */
export function typedPoint(text: string): Point | undefined {
  const parts = [...latin(text).matchAll(/([+-]?\d+(?:\.\d+)?)\s*°?\s*([NSEWO])?/giu)];
  if (parts.length !== 2) return undefined;
  const [latitude, longitude] = parts.map(([, digits, side]) => Number(digits) * (side && /[sw]/i.test(side) ? -1 : 1));
  return pointOf({ latitude, longitude });
}

/** Parses a value of metadata as JSON. Text that is not JSON becomes a string. */
export function typedValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}

/** Returns the text that [typedValue] parses to the value. */
export function valueText(value: unknown): string {
  return typeof value === 'string' && typedValue(value) === value ? value : JSON.stringify(value);
}
