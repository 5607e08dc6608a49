// The notices of successful calls: what a caller may want to know although the call did what it answers.
import type { Fetch } from './client';

/** A notice. at: the place in the request. */
export interface Notice {
  readonly at: string;
  readonly text: string; // in English
}

/** Returns a function that answers as `ask` does, and gives the notices of each answer to `take`. */
export function withNotices(ask: Fetch, take: (notices: readonly Notice[]) => void): Fetch {
  return async (path, init) => {
    const response = await ask(path, init);
    take(JSON.parse(response.headers.get('X-Sightline-Notice') ?? '[]'));
    return response;
  };
}
