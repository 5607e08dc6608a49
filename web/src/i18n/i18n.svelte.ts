// The messages of the pages in the reader's language, and the formats of numbers and dates.
// All functions here are reactive, so a page changes its language without a reload.
//
// Each folder of messages is a namespace. This file loads the shell's, and shared.ts the messages that several pages show. For every other
// namespace, the source folder with its name has a words.ts that exports `m`. The type of `m` rejects a message of another namespace, and
// importing `m` loads the namespace.
// The modules of the shell import `m` from this file, so that the first screen waits for the shell's messages only.

import { readChoice, saveChoice } from '../browser/storage';
import { bestLanguage, directionOf, type LanguageCode } from './languages';

type Inputs<F> = F extends (inputs: infer I) => unknown ? I : never;

/** One function for each message. It takes the inputs of the message, if there are any. */
type Words<Compiled> = {
  readonly [K in keyof Compiled]: keyof Inputs<Compiled[K]> extends never
    ? () => string
    : (inputs: Inputs<Compiled[K]>) => string;
};

/** The compiled messages of a namespace by file, one for each language. */
type Files<Compiled> = Record<string, () => Promise<Compiled>>;

const namespaces: Files<object>[] = []; // imported namespaces, in the order of their imports
type Text = (...inputs: unknown[]) => unknown;
let words = $state.raw<Record<string | symbol, Text | undefined>>({}); // the messages of the first `loaded` namespaces, in the language `code`
let loaded = 0;
let code = $state<LanguageCode>('en');
let requested: LanguageCode = 'en'; // the last requested language
// Each message has one function for all languages, so that a page can use it after a change of the language.
const texts = new Map<string | symbol, Text>();
const all: object = new Proxy(
  {},
  {
    get: (_, key) => {
      if (!(key in words)) return undefined;
      if (!texts.has(key)) texts.set(key, (...inputs) => words[key]?.(...inputs));
      return texts.get(key);
    },
  },
);

/**
 * Registers a namespace and returns its messages. `others`, the messages of another namespace, adds their types. Call a message only
 * after [loadWords] has returned. Await.svelte calls it after each import.
 */
export function namespace<Compiled extends object, Others = unknown>(files: Files<Compiled>, others?: Others) {
  namespaces.push(files);
  return (others ?? all) as Words<Compiled> & Others; // the proxy has the messages once they are loaded, which its type cannot express
}

/** The messages of the shell. */
export const m = namespace(import.meta.glob<typeof import('../words/shell/en.js')>('../words/shell/*.js'));

/** Returns the code of the reader's language. */
export function language(): LanguageCode {
  return code;
}

/** Returns the language that the reader chose here. Without a choice, it is the first supported language of the browser. */
export function preferredLanguage(): LanguageCode {
  const chosen = readChoice('language');
  return bestLanguage(chosen ? [chosen] : navigator.languages);
}

/** Loads the messages of a language and shows the page in it. */
export async function setLanguage(language: LanguageCode): Promise<void> {
  requested = language;
  await loadWords();
}

/** Loads the messages of all registered namespaces. If a file fails to load, it throws, and the page stays in its language. */
export async function loadWords(): Promise<void> {
  while (code !== requested || loaded < namespaces.length) {
    const [language, count] = [requested, namespaces.length];
    const parts = await Promise.all(namespaces.map((files) => load(files, language))).catch((failure) => {
      if (requested === language) requested = code;
      throw failure;
    });
    if (requested !== language || (code === language && loaded >= count)) continue; // superseded, or done by another call
    words = Object.assign({}, ...parts);
    loaded = count;
    code = language;
    document.documentElement.lang = language;
    document.documentElement.dir = directionOf(language);
  }
}

const pauses = [300, 3_000]; // ms before the next attempts to load a file

/** Loads a file of messages. It repeats failed requests, because no page works without its messages. */
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

/** Changes the language of the pages, and stores it for the next visit. */
export async function saveLanguage(requested: LanguageCode): Promise<void> {
  await setLanguage(requested);
  saveChoice('language', requested);
}

/** Formats a number in the reader's language. */
export function number(n: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(code, options).format(n);
}

/** Formats a day in UTC, for example "23 Oct". */
export function day(at: Date): string {
  return new Intl.DateTimeFormat(code, { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(at);
}

/** Formats a moment in local time, for example "23 Oct 2026, 09:41". */
export function moment(at: string | Date): string {
  return new Intl.DateTimeFormat(code, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at));
}

/** Formats the time since a moment in the largest unit that fits, for example "2 hours ago". */
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

/** Joins names, for example "a, b and c". */
export function list(names: string[]): string {
  return new Intl.ListFormat(code, { type: 'conjunction' }).format(names);
}

/** Joins texts without a conjunction, for example "a, b, c". */
export function row(things: string[]): string {
  return new Intl.ListFormat(code, { type: 'unit', style: 'short' }).format(things);
}

/** Formats an amount of data, for example "4 kB" or "2.4 MB". */
export function bytes(n: number): string {
  return n < 1e6
    ? number(n / 1e3, { style: 'unit', unit: 'kilobyte', maximumFractionDigits: 0 })
    : number(n / 1e6, { style: 'unit', unit: 'megabyte', maximumFractionDigits: 1 });
}
