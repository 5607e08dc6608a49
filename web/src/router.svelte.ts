// Where the reader is. Links are plain links: a click on one that means a page of ours is taken here,
// everything else is the browser's.
import { find, type Place, type Route, withinRoutes } from './routes';

interface Address {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly hash: string; // without '#'
  readonly place: Place | undefined;
}

let address = $state.raw<Address>(read());

/** The address that is shown. */
export function currentAddress(): Address {
  return address;
}

/** The address that is shown, as a page on some routes sees it, to its end. */
export const addressWithin = (...routes: Route[]) => withinRoutes(currentAddress, routes);

/** Goes to a path, with query and hash if it has them; `replace` leaves no way back to this one. */
export function navigate(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search + location.hash) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  const before = address;
  address = read();
  if (before.path !== address.path) scrollTo(0, 0);
}

/** Opens the dialog of a hash on this page, or closes it with ''. */
export function setHash(hash: string, { replace = false } = {}): void {
  navigate(location.pathname + location.search + (hash && `#${hash}`), { replace });
}

/** Follows clicks and the browser's own buttons. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    address = read();
  });
  addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a');
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
