// Inputs in words: their labels, and the faults of their pictures.

import { language, number } from '../../i18n.svelte';
import { m } from '../../parts/words';
import { type Input, pending, ready } from './calls';

/** The name of an input for people: the name of its file, or its id. */
export function nameOf({ id, data }: Pick<Input, 'id' | 'data'>): string {
  const meta = data?.metadata as { name?: unknown; file?: unknown } | undefined;
  const name = meta?.name ?? meta?.file;
  return typeof name === 'string' && name ? name : id;
}

/** A label of an input. */
export interface LabelView {
  readonly id: string;
  readonly name: string;
  readonly present: boolean;
}

/** Returns the labels of an input. */
export function labelsOf({ data }: Pick<Input, 'data'>): LabelView[] {
  return (data?.concepts ?? []).map(({ id = '', name, value }) => ({ id, name: name || id, present: value !== 0 }));
}

export const isPending = ({ status }: Input): boolean => status.code === pending;
/** After a change the code is 30200, whatever the state of the picture: that is not a failure. */
export const isFailed = ({ status }: Input): boolean => ![ready, pending, 30200].includes(status.code);

/** The fault of a picture, and what to do. */
export function trouble(code: number, details = ''): { title: string; text: string } {
  switch (code) {
    case 30002: {
      const status = details.match(/\b([45]\d\d)\b/)?.[1];
      if (status === '404') return { title: m.inputs_error_404(), text: m.inputs_error_url_do() };
      return { title: m.inputs_error_download(), text: details || m.inputs_error_url_do() };
    }
    case 30106:
      return { title: m.inputs_error_url(), text: m.inputs_error_url_do() };
    case 30101:
      return { title: m.inputs_error_format(), text: m.inputs_error_format_do() };
    case 30105:
      return { title: m.inputs_error_large(), text: m.inputs_error_large_do() };
    case 30300:
      return { title: m.inputs_error_decode(), text: m.inputs_error_decode_do() };
    default:
      return { title: m.inputs_error_other(), text: details };
  }
}

/** A day as a heading has it: "Today", "Thursday 19 November", with the year where it is another. */
export function dayName(iso: string, today = localDay(new Date())): string {
  if (iso === today) return m.inputs_today();
  const at = new Date(`${iso}T12:00:00Z`);
  return new Intl.DateTimeFormat(language(), {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    timeZone: 'UTC',
    ...(iso.slice(0, 4) !== today.slice(0, 4) && { year: 'numeric' }),
  }).format(at);
}

/** The day of a moment where the reader is, as "2026-11-21". */
function localDay(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

/** A time that is left, in the unit that fits. */
export function time(seconds: number): string {
  const [value, unit] =
    seconds < 120 ? [seconds, 'second'] : seconds < 7200 ? [seconds / 60, 'minute'] : [seconds / 3600, 'hour'];
  return number(Math.ceil(value), { style: 'unit', unit, unitDisplay: 'narrow' });
}

/** A place, as "46.67° N, 11.16° E" in the reader's digits. */
export function placeName({ latitude, longitude }: { latitude: number; longitude: number }): string {
  const of = (degrees: number, plus: string, minus: string) =>
    `${number(Math.abs(degrees), { maximumFractionDigits: 2 })}° ${degrees < 0 ? minus : plus}`;
  return `${of(latitude, 'N', 'S')}, ${of(longitude, 'E', 'W')}`;
}
