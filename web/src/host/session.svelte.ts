// The session of these pages and its account, from the server's last answer.
import * as api from '../api/console';
import { saveChoice } from '../browser/storage';
import { offlineApps } from './offlineApps';
import { pastedKeys } from './pastedKeys.svelte';

type State = { is: 'loading' } | { is: 'failed'; failure: unknown } | { is: 'known'; session: api.Session };

let state = $state.raw<State>({ is: 'loading' });

/** Returns the state of the session. */
export function sessionState(): State {
  return state;
}

/** Returns the session. It throws if the session is unknown, so call it only on pages that are shown after loading. */
export function session(): api.Session {
  if (state.is !== 'known') throw new Error('no session yet');
  return state.session;
}

/** Returns the account of the session. It throws without one, so call it only on pages of a person who has signed in. */
export function ownAccount(): api.Account {
  const { account } = session();
  if (!account) throw new Error('no account');
  return account;
}

const place = 'edge';

/** Returns the edge that serves these pages; undefined at an origin. If the server does not answer, its last answer in this tab counts. */
export function edge(): api.Edge | undefined {
  if (state.is === 'known') return state.session.edge;
  try {
    return state.is === 'failed' ? (JSON.parse(sessionStorage.getItem(place) ?? 'null') ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the name that the origin's operator gave to the edge. Without a name, it returns the edge's host and port. */
export function nameOfEdge(): string {
  return edge()?.name || location.host;
}

/** Reports whether the reader may open applications: with an account, with a key at an edge, or at the edge of a demonstration. */
export function hasAccess(): boolean {
  if (state.is !== 'known') return false;
  const { account, edge: edgeInfo } = state.session;
  return account !== null || (edgeInfo !== undefined && (edgeInfo.open || pastedKeys().length > 0));
}

let shown: string | undefined; // the account whose data this page may have

/**
 * Stores a session from the server. If its account is another one than before, it loads a new page, since this one may have data of the
 * previous account in memory. A session that ended without a sign-out only closes the applications.
 */
export function setSession(s: api.Session): void {
  const account = s.account?.id;
  if (account) saveChoice('account', account);
  if (account && shown && shown !== account) {
    if (location.pathname === '/sign-in') location.reload();
    else location.replace('/');
    return;
  }
  if (!account && shown) void import('./application.svelte').then((a) => a.closeApplications());
  shown = account ?? shown;
  state = { is: 'known', session: s };
  try {
    if (s.edge) sessionStorage.setItem(place, JSON.stringify(s.edge));
    else sessionStorage.removeItem(place);
  } catch {
    // Without storage, the edge is known only while it answers.
  }
}

const isUnreached = (failure: unknown) => failure instanceof api.Failure && failure.status === 0;

/** Reports whether no server has answered yet. */
export function isUnknown(): boolean {
  return state.is === 'failed' && isUnreached(state.failure);
}

let lastRequest: Promise<void> | undefined;

/** Requests the session from the server. A known session stays valid during the request. */
export function loadSession(): Promise<void> {
  lastRequest = request();
  return lastRequest;
}

const pause = 5000; // ms before the next request to an unreachable server
let retryTimer: ReturnType<typeof setTimeout> | undefined;

async function request(): Promise<void> {
  clearTimeout(retryTimer);
  try {
    setSession(await api.getSession(offlineApps().length ? api.soon() : undefined));
  } catch (failure) {
    if (state.is !== 'known' && !(isUnknown() && isUnreached(failure))) state = { is: 'failed', failure };
  }
  if (isUnknown()) retryLater();
}

/** Requests the session again later, once the browser has a network and the page is visible. */
function retryLater(): void {
  retryTimer = setTimeout(() => {
    if (document.visibilityState === 'hidden' || !navigator.onLine) retryLater();
    else void loadSession();
  }, pause);
}

/** Waits until the first request for the session has succeeded or failed. */
export async function waitForSession(): Promise<void> {
  while (state.is === 'loading' && lastRequest) await lastRequest;
}

// Another tab has signed out, or in as another account.
addEventListener('storage', ({ key, oldValue, newValue }) => {
  if (key === 'account' && oldValue && oldValue !== newValue) location.replace('/sign-in');
});

/** Removes the account after a call was answered with 401: the session ended elsewhere. */
export function endSession(): void {
  if (state.is === 'known') setSession({ ...state.session, account: null });
  void loadSession();
}
