// Reads the typed text of a clause's fields.

import type { Point } from './clause';
import { isPoint } from './query';

const zeros = [0x0660, 0x06f0, 0x0966, 0x09e6, 0x0a66]; // Arabic, Persian, Devanagari, Bengali, Gurmukhi

/** A text with its digits as 0 to 9, whatever the reader's script writes them as. */
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

/** A number of at least zero; undefined for anything else. It may have a comma instead of the point. */
export function typedNumber(text: string): number | undefined {
  const plain = latin(text).trim().replace(',', '.');
  const n = Number(plain);
  return plain !== '' && Number.isFinite(n) && n >= 0 ? n : undefined;
}

/** A place: "46.67, 11.16", "46.67 11.16", "46.67° N, 11.16° E"; undefined for anything else. */
export function typedPoint(text: string): Point | undefined {
  const parts = [...latin(text).matchAll(/([+-]?\d+(?:\.\d+)?)\s*°?\s*([NSEWO])?/giu)];
  if (parts.length !== 2) return undefined;
  const [latitude, longitude] = parts.map(([, digits, side]) => Number(digits) * (side && /[sw]/i.test(side) ? -1 : 1));
  return isPoint(latitude, longitude) ? ({ latitude, longitude } as Point) : undefined;
}

/** A value of metadata: JSON where it is some, a text where it is not. */
export function typedValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}

/** A value of metadata as it is typed. */
export function valueText(value: unknown): string {
  return typeof value === 'string' && typedValue(value) === value ? value : JSON.stringify(value);
}
