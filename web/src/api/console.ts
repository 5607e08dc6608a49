// Calls /console, the API of the account and application pages. No other module calls it.
import type { LanguageCode } from '../i18n/languages';
import { retryAfter } from './retry';

export interface Account {
  id: string;
  name: string;
  email: string;
  verified: boolean;
  plan: string;
  calls_left: number | null; // null: unlimited
  calls_limit: number | null;
  inputs?: number | null; // stored inputs; null: neither inputs nor bytes are limited
  inputs_limit?: number | null; // null: unlimited
  bytes?: number | null; // stored bytes; null: see inputs
  bytes_limit?: number | null;
}

/** The edge that serves these pages. */
export interface Edge {
  name: string; // given by the operator of its origin; empty: the edge has no origin
  origin: string; // URL of the origin; empty: the edge has none
  open: boolean; // the edge is a demonstration and needs no key
}

export interface Session {
  account: Account | null; // null at an edge and before signing in
  edge?: Edge; // missing at an origin
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
  language: LanguageCode;
  default_model: string;
  created_at: string;
  local_only?: boolean; // sync sends it to no edge and no browser
}

/** An application in the list of the account's applications. */
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
  client_id: string; // empty if no client was created yet
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

/** A new key with its value. No later answer contains the value. */
export interface NewKey extends Key {
  key: string;
}

/** The age of the keys that an edge stores, and its limits. */
export interface KeysAge {
  known?: string; // time when the origin last confirmed that the keys are current; missing: never
  writes_seconds: number; // the edge accepts writes for this time after known
  reads_seconds: number; // the edge accepts reads for this time after known
}

/** An edge with a replica of an application. */
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
  this: boolean; // whether it is the caller's session
}

export interface Event {
  seq: number;
  at: string;
  action: string;
  target: string;
  remote: string;
  hash: string;
}

/** The error of an unsuccessful call. Its status is 0 if the server did not answer. */
export class Failure extends Error {
  readonly code: number;
  readonly description: string;
  readonly details: string;
  readonly reason: string; // the cause as one of the console's codes; may be empty
  readonly request: string; // id; may be empty
  readonly retryAfter: number; // seconds; 0: unknown

  /** status: the HTTP status, or 0 if the server did not answer. answer: the response, for its headers. */
  constructor(
    readonly status: number,
    apiStatus: { code?: number; description?: string; details?: string; reason?: string } = {},
    answer?: Response,
  ) {
    super(apiStatus.description);
    this.code = apiStatus.code ?? 0;
    this.description = apiStatus.description ?? '';
    this.details = apiStatus.details ?? '';
    this.reason = apiStatus.reason ?? '';
    this.request = answer?.headers.get('X-Request-Id') ?? '';
    this.retryAfter = answer ? retryAfter(answer) : 0;
  }
}

let csrf = '';
const timeout = 8000; // ms

/** Returns a signal that aborts a call after 8 seconds, for pages that can continue with stored data. */
export const soon = (): AbortSignal => AbortSignal.timeout(timeout);

/**
 * Calls the console. If another page of this browser began a new session, it repeats the call in that session. A page that started
 * without a network has no session yet, so it reads the session before its first write.
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
    const apiStatus = data?.status ?? { description: answer.statusText };
    // For another account's application, the server answers as if it were missing. Paths with further ids name a part of an application.
    if (apiStatus.reason === 'missing' && /^\/apps\/[^/]+(\/[a-z-]+)?$/.test(path)) apiStatus.reason = 'application';
    throw new Failure(answer.ok ? 502 : answer.status, apiStatus, answer);
  }
  if (data.session?.csrf) csrf = data.session.csrf;
  return data;
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
/** Lists a page of the audit log, newest first: the records with a number below `before`. 0: the newest page. */
export const events = (before = 0) => call<{ events: Event[] }>('GET', `/audit?before=${before}`).then((r) => r.events);

export const sessions = () => call<{ sessions: OpenSession[] }>('GET', '/sessions').then((r) => r.sessions);
export const endSession = (id: string) => call<object>('DELETE', `/sessions/${encodeURIComponent(id)}`);

// Applications.
export const apps = () => call<{ apps: ListedApp[] }>('GET', '/apps').then((r) => r.apps);
/** Returns the application that a key or a token opens at an edge. */
export const appOf = (authorization: string) =>
  once<{ apps: ListedApp[] }>('GET', '/apps', undefined, undefined, authorization).then((r) => r.apps[0]);
/** Returns the age of the application's keys at an edge, if the application has an origin. */
export const keysAge = (id: string, authorization = '') =>
  once<{ keys: KeysAge }>('GET', `${app(id)}/keys-age`, undefined, undefined, authorization).then((r) => r.keys);
/** Lists the edges that have a replica of an application, sorted by name. */
export const edges = (id: string) => call<{ edges: Holder[] }>('GET', `${app(id)}/edges`).then((r) => r.edges);
export const getApp = (id: string) => call<{ app: AppDetail }>('GET', app(id)).then((r) => r.app);
export const createApp = (a: { name: string; language: string; default_model: string }) =>
  call<{ app: App; client: Client }>('POST', '/apps', a);
export const changeApp = (id: string, change: { name?: string; default_model?: string; local_only?: boolean }) =>
  call<{ app: App }>('PATCH', app(id), change).then((r) => r.app);
export const deleteApp = (id: string, name: string) => call<object>('DELETE', app(id), { name });
/**
 * Starts the browser's download of a zip file with the complete content of an application. It throws a Failure if an export of the account is
 * still running, or too many of others are: a page cannot read the answer to a download, so it asks before.
 */
export async function exportApp(id: string): Promise<void> {
  await call<object>('GET', `${app(id)}/export-status`);
  const link = document.createElement('a');
  link.href = `/console${app(id)}/export`;
  link.download = '';
  link.click();
}
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
/** Creates an access token, with which the application's replica in this browser authenticates at the origin. */
export const pageToken = (id: string, limit?: AbortSignal) =>
  call<{ token: string; expires_in: number }>('POST', `${app(id)}/page-token`, undefined, limit);
export const usage = (id: string) => call<{ usage: Usage }>('GET', `${app(id)}/usage`).then((r) => r.usage);
export const scopes = () => call<{ scopes: Scope[] }>('GET', '/scopes').then((r) => r.scopes);
