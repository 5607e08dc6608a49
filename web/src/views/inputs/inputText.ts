// Describes inputs in words: their names, their labels, and the errors of their pictures.

import { fileName } from '../../host/calls';
import { language, number } from '../../i18n/i18n.svelte';
import { m } from '../../i18n/shared';
import { type Input, pending, ready } from './calls';

/** Returns the displayed name of an input: the file name in its metadata, or its id. */
export function nameOf({ id, data }: Pick<Input, 'id' | 'data'>): string {
  return fileName(data.metadata) || id;
}

/** A label of an input. */
export interface LabelView {
  readonly id: string;
  readonly name: string;
  readonly present: boolean;
}

/** Returns the labels of an input. */
export function labelsOf({ data }: Pick<Input, 'data'>): LabelView[] {
  return (data.concepts ?? []).map(({ id, name, value }) => ({ id, name: name || id, present: value !== 0 }));
}

export const isPending = ({ status }: Input): boolean => status.code === pending;
/** Reports whether the picture of an input failed. The code 30200 follows a change and hides the state, so it does not count. */
export const isFailed = ({ status }: Input): boolean => ![ready, pending, 30200].includes(status.code);

/** Returns the text for the status code of a failed picture: the error, and what to do. */
export function pictureError(code: number, details = ''): { title: string; text: string } {
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

/** Returns the heading of a day: "Today" or "Thursday 19 November". For another year, it includes the year. */
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

/** Returns the day of a moment in the reader's time zone, for example "2026-11-21". */
function localDay(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

/** Formats a remaining time in seconds, minutes or hours. */
export function time(seconds: number): string {
  const [value, unit] =
    seconds < 120 ? [seconds, 'second'] : seconds < 7200 ? [seconds / 60, 'minute'] : [seconds / 3600, 'hour'];
  return number(Math.ceil(value), { style: 'unit', unit, unitDisplay: 'narrow' });
}

/** Formats a place in the reader's digits, for example "46.67° N, 11.16° E". */
export function placeName({ latitude, longitude }: { latitude: number; longitude: number }): string {
  const format = (degrees: number, plus: string, minus: string) =>
    `${number(Math.abs(degrees), { maximumFractionDigits: 2 })}° ${degrees < 0 ? minus : plus}`;
  return `${format(latitude, 'N', 'S')}, ${format(longitude, 'E', 'W')}`;
}
