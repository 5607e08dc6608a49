// The only caller of /console, the interface behind the account and application pages.
import { retryAfter } from './retry';

export interface Account {
  id: string;
  name: string;
  email: string;
  verified: boolean;
  plan: string;
  calls_left: number | null; // null: any number
  calls_limit: number | null;
  inputs?: number | null; // stored; null: neither inputs nor bytes are limited
  inputs_limit?: number | null; // null: any number
  bytes?: number | null; // likewise
  bytes_limit?: number | null;
}

/** The edge that pages are of, where they are not an origin's. */
export interface Edge {
  name: string; // as its origin's operator called it; empty: it stands alone
  origin: string; // address, likewise
  open: boolean; // a demonstration's: it needs no key
}

export interface Session {
  account: Account | null; // nobody has one at an edge
  edge?: Edge; // missing: this is an origin
  csrf: string;
  demo: boolean;
  sign_up: 'open' | 'closed' | 'first';
  mail: 'smtp' | 'log' | 'page';
  version: string;
  public_url: string;
  languages: string[];
}

export interface App {
  id: string;
  name: string;
  language: string;
  default_model: string;
  created_at: string;
  local_only?: boolean; // sync sends it to no edge and no browser
}

/** An application in the list of all. */
export interface ListedApp extends App {
  inputs: number;
}

export interface Counts {
  inputs: number;
  concepts: number;
  models: number;
  versions: number;
  keys: number;
}

export interface AppDetail extends App {
  client_id: string; // empty where it has none yet
  counts: Counts;
}

export interface Client {
  client_id: string;
  client_secret: string;
}

export interface Key {
  id: string;
  description: string;
  scopes: string[];
  created_at: string;
  last_used_at?: string;
  calls: number;
}

/** A key in the one answer that holds it. */
export interface NewKey extends Key {
  key: string;
}

/** How old what an edge knows of keys is, and how old it may be. */
export interface KeysAge {
  known?: string; // when the origin last said that there is nothing else to be known; missing: never
  writes_seconds: number; // for so long after it the edge takes writes
  reads_seconds: number; // and for so long it answers
}

/** An edge that holds an application. */
export interface Holder {
  id: string;
  name: string;
}

export interface Usage {
  total: number;
  days: { date: string; calls: number }[];
  keys: { id: string; description: string; calls: number }[];
  endpoints: { endpoint: string; calls: number }[];
}

export interface Scope {
  id: string; // "Inputs_Get"
  name: string; // "Inputs:Get"
  needs: string[]; // ids
}

export interface Mail {
  to: string;
  subject: string;
  text: string;
  at: string;
}

export interface OpenSession {
  id: string;
  created_at: string;
  last_used_at: string;
  remote: string;
  this: boolean; // the one that asks
}

export interface Event {
  seq: number;
  at: string;
  action: string;
  target: string;
  remote: string;
  hash: string;
}

/** The error of an unsuccessful call. Status 0: the server was not reached. */
export class Failure extends Error {
  readonly code: number;
  readonly description: string;
  readonly details: string;
  readonly reason: string; // why, in one word of the console's; may be empty
  readonly request: string; // id; may be empty
  readonly retryAfter: number; // seconds; 0: unknown

  /** status: of HTTP, 0 where nobody was reached; answer: what it came with. */
  constructor(
    readonly status: number,
    said: { code?: number; description?: string; details?: string; reason?: string } = {},
    answer?: Response,
  ) {
    super(said.description);
    this.code = said.code ?? 0;
    this.description = said.description ?? '';
    this.details = said.details ?? '';
    this.reason = said.reason ?? '';
    this.request = answer?.headers.get('X-Request-Id') ?? '';
    this.retryAfter = answer ? retryAfter(answer) : 0;
  }
}

let csrf = '';
const late = 8000; // ms

/** After it a server that has not answered counts as not reached: for pages that can continue with stored data. */
export const soon = (): AbortSignal => AbortSignal.timeout(late);

/**
 * Asks; where another page of this browser has begun a new session, once more in that one. A page that began without
 * a network knows of none yet.
 */
async function call<T>(method: string, path: string, body?: object, limit?: AbortSignal): Promise<T> {
  if (method !== 'GET' && !csrf) await once('GET', '/session', undefined, limit);
  try {
    return await once<T>(method, path, body, limit);
  } catch (failure) {
    if (!(failure instanceof Failure && failure.reason === 'csrf')) throw failure;
    await once('GET', '/session');
    return once<T>(method, path, body);
  }
}

async function once<T>(
  method: string,
  path: string,
  body?: object,
  limit?: AbortSignal,
  authorization = '',
): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (authorization) headers.Authorization = authorization;
  if (method !== 'GET') {
    headers['Content-Type'] = 'application/json';
    headers['X-Sightline-CSRF'] = csrf;
  }
  let answer: Response;
  try {
    answer = await fetch(`/console${path}`, {
      method,
      headers,
      credentials: 'same-origin',
      cache: 'no-store',
      body: method === 'GET' ? undefined : JSON.stringify(body ?? {}),
      ...(limit && { signal: limit }),
    });
  } catch {
    throw new Failure(0);
  }
  const data = await answer.json().catch(() => undefined);
  if (!answer.ok || !data) {
    const said = data?.status ?? { description: answer.statusText };
    // The answer for another account's application is that for a missing one; the parts below an application are not the application.
    if (said.reason === 'missing' && /^\/apps\/[^/]+(\/[a-z-]+)?$/.test(path)) said.reason = 'application';
    throw new Failure(answer.ok ? 502 : answer.status, said, answer);
  }
  if (data.session?.csrf) csrf = data.session.csrf;
  return data as T;
}

type WithSession = { session: Session };

const app = (id: string) => `/apps/${encodeURIComponent(id)}`;

// The session and its account.
export const getSession = (limit?: AbortSignal) =>
  call<WithSession>('GET', '/session', undefined, limit).then((r) => r.session);
export const signIn = (email: string, password: string) =>
  call<WithSession>('POST', '/session', { email, password }).then((r) => r.session);
export const signOut = () => call<object>('DELETE', '/session');
export const signUp = (a: { name: string; email: string; password: string; setup?: string }) =>
  call<WithSession>('POST', '/accounts', a).then((r) => r.session);
export const changeAccount = (
  change: { name: string } | { email: string; confirm: string } | { password: { old: string; new: string } },
) => call<WithSession>('PATCH', '/account', change).then((r) => r.session);
export const leave = (password: string) => call<WithSession>('DELETE', '/account', { password }).then((r) => r.session);
export const verify = (code: string) => call<WithSession>('POST', '/verification', { code }).then((r) => r.session);
export const sendCode = () => call<object>('POST', '/verification/mail');
export const sendReset = (email: string) => call<object>('POST', '/password/mail', { email });
export const resetPassword = (token: string, password: string) =>
  call<WithSession>('POST', '/password', { token, password }).then((r) => r.session);
export const mails = () => call<{ mails: Mail[] }>('GET', '/mail').then((r) => r.mails);
/** A page of the audit log, newest first, from below the record number before. */
export const events = (before = 0) => call<{ events: Event[] }>('GET', `/audit?before=${before}`).then((r) => r.events);

export const sessions = () => call<{ sessions: OpenSession[] }>('GET', '/sessions').then((r) => r.sessions);
export const endSession = (id: string) => call<object>('DELETE', `/sessions/${encodeURIComponent(id)}`);

// Applications.
export const apps = () => call<{ apps: ListedApp[] }>('GET', '/apps').then((r) => r.apps);
/** The application that a key, or a token, opens at an edge. */
export const appOf = (authorization: string) =>
  once<{ apps: ListedApp[] }>('GET', '/apps', undefined, undefined, authorization).then((r) => r.apps[0]);
/** The age of an edge's knowledge of an application's keys, if the application has an origin. */
export const keysAge = (id: string, authorization = '') =>
  once<{ keys: KeysAge }>('GET', `${app(id)}/keys-age`, undefined, undefined, authorization).then((r) => r.keys);
/** The edges that hold an application, by name. */
export const edges = (id: string) => call<{ edges: Holder[] }>('GET', `${app(id)}/edges`).then((r) => r.edges);
export const getApp = (id: string) => call<{ app: AppDetail }>('GET', app(id)).then((r) => r.app);
export const createApp = (a: { name: string; language: string; default_model: string }) =>
  call<{ app: App; client: Client }>('POST', '/apps', a);
export const changeApp = (id: string, change: { name?: string; default_model?: string; local_only?: boolean }) =>
  call<{ app: App }>('PATCH', app(id), change).then((r) => r.app);
export const deleteApp = (id: string, name: string) => call<object>('DELETE', app(id), { name });
/** The address of a zip file with everything that an application holds. */
export const exportPath = (id: string) => `/console${app(id)}/export`;
export const models = () => call<{ models: { id: string; name: string }[] }>('GET', '/models').then((r) => r.models);

// Keys, tokens, usage.
export const keys = (id: string) => call<{ keys: Key[] }>('GET', `${app(id)}/keys`).then((r) => r.keys);
export const createKey = (id: string, key: { description: string; scopes: string[] }) =>
  call<{ key: NewKey }>('POST', `${app(id)}/keys`, key).then((r) => r.key);
export const deleteKey = (id: string, key: string) =>
  call<object>('DELETE', `${app(id)}/keys/${encodeURIComponent(key)}`);
export const replaceKey = (id: string, key: string) =>
  call<{ key: NewKey }>('POST', `${app(id)}/keys/${encodeURIComponent(key)}/replacement`).then((r) => r.key);
export const replaceSecret = (id: string) =>
  call<{ client: Client }>('POST', `${app(id)}/client`).then((r) => r.client);
export const revokeTokens = (id: string) => call<object>('DELETE', `${app(id)}/tokens`);
/** An access token of an application: what its copy in this browser shows to the origin. */
export const pageToken = (id: string, limit?: AbortSignal) =>
  call<{ token: string; expires_in: number }>('POST', `${app(id)}/page-token`, undefined, limit);
export const usage = (id: string) => call<{ usage: Usage }>('GET', `${app(id)}/usage`).then((r) => r.usage);
export const scopes = () => call<{ scopes: Scope[] }>('GET', '/scopes').then((r) => r.scopes);
