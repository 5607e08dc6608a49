/** The pages that exist. The server answers these addresses with the application, and no others. */
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

/** A parsed address: its route and the segments at its names. */
export interface Place {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** The place of a path, or undefined if there is no page. */
export function find(path: string): Place | undefined {
  const parts = split(path);
  for (const route of routes) {
    const names = split(route);
    if (names.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const fits = names.every((name, i) => {
      const part = parts[i] as string;
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
 * The address for a page on some routes: the current one, and once another page's is current, the last one of these routes. The subject of
 * a page does not change while the next one is being loaded.
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

/** The path of an application's own page: its keys, its usage. */
export function appPath(id: string): string {
  return `/apps/${encodeURIComponent(id)}`;
}

/** The path of a page of an application's pictures: `pathIn(app, 'inputs', id)`. */
export function pathIn(app: string, ...parts: string[]): string {
  return `/${[app, ...parts].map(encodeURIComponent).join('/')}`;
}

/** Whether a page shows an application's pictures, and what was made of them. */
export function needsApp(route: Route): boolean {
  return route.startsWith('/:app/');
}

/** Whether something is an application's id: without, /v2/models would be a page. */
function isAppID(id: string): boolean {
  return /^[0-9a-f]{32}$/.test(id);
}

/** Whether a page is for anybody, with an account or without. */
export function isPublic(route: Route): boolean {
  return route === '/docs' || route === '/look';
}

/** Whether a page needs nothing of the server: it is shown whether the server answers or not. */
export function isLocal(route: Route): boolean {
  return route === '/' || route === '/look' || route === '/sync' || needsApp(route);
}

/** Whether a page is for those who are not signed in, or who may be. */
export function isDoor(route: Route): boolean {
  return ['/sign-in', '/sign-up', '/verify', '/forgot', '/reset'].includes(route);
}

/**
 * The page after signing in: the requested page of ours, or the first one. Anything that is not a path of ours is refused, so that no link
 * can send a person elsewhere.
 */
export function afterSignIn(next: string | null): string {
  if (!next?.startsWith('/') || /^\/[/\\]/.test(next)) return '/';
  const place = find(next.split(/[?#]/)[0] as string);
  return place && !isDoor(place.route) ? next : '/';
}

function split(path: string): string[] {
  return path.split('/').filter((part, i, all) => part !== '' || (i !== 0 && i !== all.length - 1));
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
