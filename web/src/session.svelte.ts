// The signed-in person, by the server's last answer.
import * as api from './console';
import { offlineApps } from './offlineApps';
import { pastedKeys } from './pastedKeys.svelte';

type State = { is: 'loading' } | { is: 'failed'; failure: unknown } | { is: 'known'; session: api.Session };

let state = $state.raw<State>({ is: 'loading' });

/** The known state of the session. */
export function sessionState(): State {
  return state;
}

/** The session, where it is known to be there: on every page that is shown after loading. */
export function session(): api.Session {
  if (state.is !== 'known') throw new Error('no session yet');
  return state.session;
}

const place = 'edge';

/** The edge of these pages; undefined: they are an origin's. The last answer is valid while it is offline. */
export function edge(): api.Edge | undefined {
  if (state.is === 'known') return state.session.edge;
  try {
    return state.is === 'failed' ? (JSON.parse(sessionStorage.getItem(place) ?? 'null') ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

/** The name of the edge: that of its origin's operator, otherwise its address. */
export function nameOfEdge(): string {
  return edge()?.name || location.host;
}

/** Whether somebody is let in to applications: with an account, or at an edge with a key, or at a demonstration's. */
export function inside(): boolean {
  if (state.is !== 'known') return false;
  const { account, edge: here } = state.session;
  return account !== null || (here !== undefined && (here.open || pastedKeys().length > 0));
}

/** Takes a session that the server has answered with. */
export function setSession(s: api.Session): void {
  state = { is: 'known', session: s };
  try {
    if (s.edge) sessionStorage.setItem(place, JSON.stringify(s.edge));
    else sessionStorage.removeItem(place);
  } catch {
    // then it is known while it answers
  }
}

const unreached = (failure: unknown) => failure instanceof api.Failure && failure.status === 0;

/** Whether nobody has answered so far. */
export function isUnknown(): boolean {
  return state.is === 'failed' && unreached(state.failure);
}

let asked: Promise<void> | undefined;

/** Asks the server. A session that is known stays while the question is open. */
export function loadSession(): Promise<void> {
  asked = ask();
  return asked;
}

const pause = 5000; // ms before a server that was not reached is asked again
let again: ReturnType<typeof setTimeout> | undefined;

async function ask(): Promise<void> {
  clearTimeout(again);
  try {
    setSession(await api.getSession(offlineApps().length ? api.soon() : undefined));
  } catch (failure) {
    if (state.is !== 'known' && !(isUnknown() && unreached(failure))) state = { is: 'failed', failure };
  }
  if (isUnknown()) later();
}

/** Asks again, while there is a network and somebody sees the page. */
function later(): void {
  again = setTimeout(() => {
    if (document.visibilityState === 'hidden' || !navigator.onLine) later();
    else void loadSession();
  }, pause);
}

/** Waits until the person and the server of these pages are known, or cannot be found out. */
export async function settled(): Promise<void> {
  while (state.is === 'loading' && asked) await asked;
}

/** Signs out here and starts over without an account. */
export async function leave(): Promise<void> {
  await api.signOut();
  await startOver();
}

/** Deletes the account and starts over without one. */
export async function leaveForGood(password: string): Promise<void> {
  await api.leave(password);
  await startOver();
}

/** Takes every page away that may still show an account, and asks who is here now. */
async function startOver(): Promise<void> {
  state = { is: 'loading' };
  await loadSession();
}

/** The session has ended elsewhere: a call was answered with 401. */
export function lost(): void {
  if (state.is === 'known') state = { is: 'known', session: { ...state.session, account: null } };
  void loadSession();
}
