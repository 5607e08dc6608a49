// Searches that a person keeps: a name and the query as it stands in the address. They stay in this browser.
import { keep, kept } from '../../kept';

export interface Saved {
  readonly app: string;
  readonly name: string;
  readonly q: string;
}

function read(): Saved[] {
  try {
    const all: unknown = JSON.parse(kept('searches') ?? '[]');
    return Array.isArray(all)
      ? all.filter((s) => [s?.app, s?.name, s?.q].every((text) => typeof text === 'string'))
      : [];
  } catch {
    return [];
  }
}

let all = $state.raw(read());

/** The searches that were kept of an application, the newest first. */
export function saved(app: string): readonly Saved[] {
  return all.filter((s) => s.app === app);
}

/** Keeps a search; one of the same name is no more. */
export function save(one: Saved): void {
  write([one, ...all.filter((s) => s.app !== one.app || s.name !== one.name)]);
}

export function forget(one: Saved): void {
  write(all.filter((s) => s !== one));
}

function write(now: Saved[]): void {
  all = now;
  keep('searches', now.length ? JSON.stringify(now) : undefined);
}
