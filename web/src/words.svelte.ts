// The words of the pages, in the reader's language, and how that language writes numbers and dates.
// Everything here is reactive: a page changes its language without a reload.

import { keep, kept } from './kept';
import { choose, directionOf } from './languages';

type Compiled = typeof import('./words/messages/en.js') & typeof import('./words/pages/en.js');
type Inputs<F> = F extends (inputs: infer I) => unknown ? I : never;

/** One function a message: of its inputs, where it has any. */
type Words = {
  readonly [K in keyof Compiled]: keyof Inputs<Compiled[K]> extends never
    ? () => string
    : (inputs: Inputs<Compiled[K]>) => string;
};

// What the shell says is loaded at once, what the pages say with the first of them.
const modules = import.meta.glob<Words>(['./words/messages/*.js', './words/pages/*.js', '!./words/messages/_index.js']);

let words = $state.raw<Partial<Words>>();
let loading: Promise<void> | undefined; // of the words of the pages
let whole = false; // whether the words of the pages are wanted
let code = $state('en');

/** The messages. Set by [speak], which has to have ended once before any is read, and those of pages by [pageWords]. */
export const m: Words = new Proxy({} as Words, {
  get: (_, key) => words?.[key as keyof Words],
});

/** The code of the reader's language. */
export function language(): string {
  return code;
}

/** The language that was chosen here, or else the first of the browser's that is ours. */
export function preferred(): string {
  const chosen = kept('language');
  return choose(chosen ? [chosen] : navigator.languages);
}

/** Loads a language's words and shows the page in it. */
export async function speak(wanted: string): Promise<void> {
  const [shell, pages] = ['messages', 'pages'].map((part) => modules[`./words/${part}/${wanted}.js`]);
  if (!shell || !pages) throw new Error(`no words for ${wanted}`);
  const of = whole;
  const [some, more] = await Promise.all([shell(), of ? pages() : undefined]);
  if (whole && !of) return speak(wanted); // a page has come meanwhile
  words = more ? { ...some, ...more } : some;
  code = wanted;
  document.documentElement.lang = wanted;
  document.documentElement.dir = directionOf(wanted);
}

/** Loads what the pages say, too. */
export async function pageWords(): Promise<void> {
  if (whole) return loading;
  whole = true;
  loading = speak(code).catch((failure) => {
    whole = false;
    throw failure;
  });
  return loading;
}

/** Speaks a language from now on, also at the next visit. */
export async function chooseLanguage(wanted: string): Promise<void> {
  await speak(wanted);
  keep('language', wanted);
}

/** A number as the reader writes it. */
export function number(n: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(code, options).format(n);
}

/** A day, as "23 Oct". */
export function day(at: Date): string {
  return new Intl.DateTimeFormat(code, { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(at);
}

/** A moment in full, as "23 Oct 2026, 09:41". */
export function moment(at: string | Date): string {
  return new Intl.DateTimeFormat(code, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at));
}

/** How long ago a moment was, in the largest unit that fits. */
export function ago(at: string | Date, now = Date.now()): string {
  const seconds = Math.round((new Date(at).getTime() - now) / 1000);
  const format = new Intl.RelativeTimeFormat(code, { numeric: 'auto' });
  const steps: [Intl.RelativeTimeFormatUnit, number][] = [
    ['year', 31_557_600],
    ['month', 2_629_800],
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ];
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit);
  }
  return format.format(0, 'minute');
}

/** Names in a row, as "a, b and c". */
export function list(names: string[]): string {
  return new Intl.ListFormat(code, { type: 'conjunction' }).format(names);
}

/** Things beside each other, as "a, b, c". */
export function row(things: string[]): string {
  return new Intl.ListFormat(code, { type: 'unit', style: 'short' }).format(things);
}

/** An amount of data, as "4 kB" or "2.4 MB". */
export function bytes(n: number): string {
  return n < 1e6
    ? number(n / 1e3, { style: 'unit', unit: 'kilobyte', maximumFractionDigits: 0 })
    : number(n / 1e6, { style: 'unit', unit: 'megabyte', maximumFractionDigits: 1 });
}
