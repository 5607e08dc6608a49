// The router. Links are plain <a> elements. The router handles a click on a link to one of these pages, and the browser handles all
// other clicks.
import { find, type Place, type Route, withinRoutes } from './routes';

interface Address {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly hash: string; // without '#'
  readonly place: Place | undefined;
}

let address = $state.raw<Address>(read());

/** Returns the current address. */
export function currentAddress(): Address {
  return address;
}

/** Returns a function that returns the current address, or the last one on some routes. See [withinRoutes]. */
export const addressWithin = (...routes: Route[]) => withinRoutes(currentAddress, routes);

/** Navigates to a path, which may have a query and a hash. replace: the new address replaces the current one in the browser's history. */
export function navigate(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search + location.hash) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  const before = address;
  address = read();
  if (before.path !== address.path) scrollTo(0, 0);
}

/** Sets the hash of the current page, which opens a dialog. '' closes the dialog. */
export function setHash(hash: string, { replace = false } = {}): void {
  navigate(location.pathname + location.search + (hash && `#${hash}`), { replace });
}

/** Starts to handle clicks on links, and the browser's Back and Forward buttons. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    address = read();
  });
  addEventListener('click', (event) => {
    const link = event.target instanceof Element && event.target.closest('a');
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (!find(link.pathname)) return;
    if (link.pathname === location.pathname && link.getAttribute('href')?.startsWith('#')) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}

function read(): Address {
  return {
    path: location.pathname,
    query: new URLSearchParams(location.search),
    hash: location.hash.slice(1),
    place: find(location.pathname),
  };
}
