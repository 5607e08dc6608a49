/** The routes of all pages. The server returns the pages' HTML for these paths only. */
export const routes = [
  '/',
  '/look',
  '/sync',
  '/apps',
  '/apps/:app',
  '/account',
  '/docs',
  '/sign-in',
  '/sign-up',
  '/verify',
  '/forgot',
  '/reset',
  '/:app/inputs',
  '/:app/inputs/:input',
  '/:app/search',
  '/:app/next',
  '/:app/models',
  '/:app/models/:model',
  '/:app/models/:model/:version',
  '/:app/concepts',
] as const;

export type Route = (typeof routes)[number];

/** A parsed path: its route, and the values of the route's parameters by name. */
export interface Place {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Parses a path; undefined if no page has it. */
export function find(path: string): Place | undefined {
  const parts = split(path);
  for (const route of routes) {
    const names = split(route);
    if (names.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const fits = parts.every((part, i) => {
      const name = names[i] ?? '';
      if (!name.startsWith(':')) return name === part;
      const value = decode(part);
      if (!value || (i === 0 && !isAppID(value))) return false;
      params[name.slice(1)] = value;
      return true;
    });
    if (fits) return { route, params };
  }
  return undefined;
}

/**
 * Returns a function that returns the current address if it is on one of the routes, and otherwise the last address that was. With it, a
 * page keeps its subject while the next page is being loaded.
 */
export function withinRoutes<A extends { readonly place: Place | undefined }>(
  now: () => A,
  routes: readonly Route[],
): () => A {
  let last = now();
  return () => {
    const address = now();
    if (address.place && routes.includes(address.place.route)) last = address;
    return last;
  };
}

/** Returns the path of an application's page with its keys and usage. */
export function appPath(id: string): string {
  return `/apps/${encodeURIComponent(id)}`;
}

/** Returns the path of a page on an application's data, for example `pathIn(app, 'inputs', id)`. */
export function pathIn(app: string, ...parts: string[]): string {
  return `/${[app, ...parts].map(encodeURIComponent).join('/')}`;
}

/** Reports whether a page shows the data of an application: its pictures, concepts, models or searches. */
export function needsApp(route: Route): boolean {
  return route.startsWith('/:app/');
}

/** Reports whether a segment has the form of an application's id. Without this check, /v2/models would be a page. */
function isAppID(id: string): boolean {
  return /^[0-9a-f]{32}$/.test(id);
}

/** Reports whether a page is for everyone, with or without an account. */
export function isPublic(route: Route): boolean {
  return route === '/docs' || route === '/look';
}

/** Reports whether a page is shown even if the server does not answer. */
export function isLocal(route: Route): boolean {
  return route === '/' || route === '/look' || route === '/sync' || needsApp(route);
}

/** Reports whether a page belongs to signing in: sign-in, sign-up, verification, and password reset. */
export function isDoor(route: Route): boolean {
  return ['/sign-in', '/sign-up', '/verify', '/forgot', '/reset'].includes(route);
}

/**
 * Returns the path to open after signing in: `next` if it is the path of one of these pages, and otherwise '/'. This check prevents a link
 * that sends a person to another site.
 */
export function afterSignIn(next: string | null): string {
  if (!next?.startsWith('/') || /^\/[/\\]/.test(next)) return '/';
  const place = find(next.replace(/[?#].*/s, ''));
  return place && !isDoor(place.route) ? next : '/';
}

function split(path: string): string[] {
  return path.split('/').filter((part, i, all) => part !== '' || (i !== 0 && i !== all.length - 1));
}

/** Decodes a part of a path. It returns undefined if the part has an invalid escape. */
export function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
