// The words of the pages, in the reader's language, and how that language writes numbers and dates.
// Everything here is reactive: a page changes its language without a reload.
//
// Each folder of messages is a namespace. This file loads the shell's. Every other one has a words.ts in the folder of sources with its
// name, which exports `m`. The type of `m` rejects a message of another namespace, and importing `m` loads the namespace.
// The modules of the shell import `m` from this file, so that the first screen waits for the shell's messages alone.

import { bestLanguage, directionOf } from './languages';
import { readChoice, saveChoice } from './storage';

type Inputs<F> = F extends (inputs: infer I) => unknown ? I : never;

/** One function for each message: of its inputs, if it has any. */
type Words<Compiled> = {
  readonly [K in keyof Compiled]: keyof Inputs<Compiled[K]> extends never
    ? () => string
    : (inputs: Inputs<Compiled[K]>) => string;
};

/** The compiled messages of a namespace by file, one for each language. */
type Files<Compiled> = Record<string, () => Promise<Compiled>>;

const namespaces: Files<object>[] = []; // those that modules have imported, in that order
let words = $state.raw<Record<string | symbol, unknown>>({}); // the messages of the first `loaded` namespaces, in the language `code`
let loaded = 0;
let code = $state('en');
let wanted = 'en'; // the language that was asked for last
// Each message is one function for all languages, so that a page may hold it over a change of the language.
type Text = (...inputs: unknown[]) => unknown;
const texts = new Map<string | symbol, Text>();
const all: object = new Proxy(
  {},
  {
    get: (_, key) => {
      if (!(key in words)) return undefined;
      if (!texts.has(key)) texts.set(key, (...inputs) => (words[key] as Text | undefined)?.(...inputs));
      return texts.get(key);
    },
  },
);

/**
 * Registers a namespace, and returns its messages together with those of another one that is loaded too. They may be read once
 * [loadWords] has returned. Coming waits for it after each import.
 */
export function namespace<Compiled extends object, Others = unknown>(files: Files<Compiled>, others?: Others) {
  namespaces.push(files);
  return (others ?? all) as Words<Compiled> & Others;
}

/** The messages of the shell. */
export const m = namespace(import.meta.glob<typeof import('./words/shell/en.js')>('./words/shell/*.js'));

/** The code of the reader's language. */
export function language(): string {
  return code;
}

/** The language that was chosen here, or else the first of the browser's that is ours. */
export function preferredLanguage(): string {
  const chosen = readChoice('language');
  return bestLanguage(chosen ? [chosen] : navigator.languages);
}

/** Loads a language's words and shows the page in it. */
export async function setLanguage(language: string): Promise<void> {
  wanted = language;
  await loadWords();
}

/** Loads the messages of all namespaces that are registered by now. If some cannot be loaded, the page keeps its language. */
export async function loadWords(): Promise<void> {
  while (code !== wanted || loaded < namespaces.length) {
    const [language, count] = [wanted, namespaces.length];
    const parts = await Promise.all(namespaces.map((files) => load(files, language))).catch((failure) => {
      if (wanted === language) wanted = code;
      throw failure;
    });
    if (wanted !== language || (code === language && loaded >= count)) continue; // another call was later, or was done sooner
    words = Object.assign({}, ...parts);
    loaded = count;
    code = language;
    document.documentElement.lang = language;
    document.documentElement.dir = directionOf(language);
  }
}

const pauses = [300, 3_000]; // ms before a file that did not come is asked for again

/** Loads a file of messages. A page cannot do without it, so that one request that fails must not be the end. */
async function load(files: Files<object>, language: string): Promise<object> {
  const file = files[Object.keys(files).find((path) => path.endsWith(`/${language}.js`)) ?? ''];
  if (!file) throw new Error(`no words for ${language}`);
  for (const pause of pauses)
    try {
      return await file();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  return file();
}

/** Speaks a language from now on, also at the next visit. */
export async function saveLanguage(wanted: string): Promise<void> {
  await setLanguage(wanted);
  saveChoice('language', wanted);
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

/** A list of things, as "a, b, c". */
export function row(things: string[]): string {
  return new Intl.ListFormat(code, { type: 'unit', style: 'short' }).format(things);
}

/** An amount of data, as "4 kB" or "2.4 MB". */
export function bytes(n: number): string {
  return n < 1e6
    ? number(n / 1e3, { style: 'unit', unit: 'kilobyte', maximumFractionDigits: 0 })
    : number(n / 1e6, { style: 'unit', unit: 'megabyte', maximumFractionDigits: 1 });
}
