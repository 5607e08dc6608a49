// The envelopes of the machine that keeps a copy: what it is told, and what it wants. wasm/README.md, "Event and Synced".

import { getDigestReply } from './envelope.gen.ts';
import { EnvelopeError, Reader, Writer } from './envelope.ts';
import { failure, type GuestError, header } from './messages.ts';

/** What has happened, for the machine. */
export type Event =
  | { kind: 'status' | 'begin' | 'wake' | 'local' | 'offline' | 'online' | 'stop' }
  | ({ kind: 'answer'; id: number } & Piece)
  | { kind: 'need'; blob: Uint8Array };

/** A piece of an answer; the first has the status, `more` is false in the last alone. */
export interface Piece {
  status?: number;
  header?: [name: string, value: string][];
  body?: Uint8Array;
  more?: boolean;
  error?: string; // the answer ends here
}

const events = ['status', 'begin', 'wake', 'local', 'answer', 'need', 'offline', 'online', 'stop'];

export function encodeEvent(e: Event): Uint8Array<ArrayBuffer> {
  const w = Writer.envelope().uint(1, events.indexOf(e.kind));
  if (e.kind === 'need') w.raw(7, e.blob);
  if (e.kind === 'answer') {
    w.uint(2, e.id).uint(3, e.status);
    for (const [name, value] of e.header ?? []) w.message(4, new Writer().text(1, name).text(2, value));
    w.bool(5, e.more);
    if (e.error !== undefined) w.element(6, e.error);
    w.raw(15, e.body);
  }
  return w.done();
}

/** A request to the origin. */
export interface Ask {
  id: number;
  method: string;
  path: string;
  query: string;
  header: [name: string, value: string][];
  body: Uint8Array<ArrayBuffer>;
  stream: boolean;
}

/** What the machine wants of its host. Times are in milliseconds since 1970. */
export type Effect =
  | ({ kind: 'ask' } & Ask)
  | { kind: 'cancel'; id: number }
  | { kind: 'wake'; at: number }
  | { kind: 'got'; blob: Uint8Array; error?: GuestError }
  | { kind: 'changed' }
  | { kind: 'purge'; why: string; keepOutbox: boolean };

/** What the machine is doing. */
export type Phase = (typeof phases)[number];
export const phases = [
  'stopped',
  'unreachable',
  'connecting',
  'rebasing',
  'pulling',
  'paused',
  'current',
  'purged',
] as const;

/** Where the machine stands. Times are in milliseconds since 1970, 0: never. */
export interface Standing {
  phase: Phase;
  site: number;
  epoch: Uint8Array;
  cursor: number;
  head: number;
  issued: number;
  accepted: number;
  folded: number;
  blobsSent: number;
  blobsGot: number;
  rebases: number;
  repairs: number;
  refused: number;
  pieces: number;
  piecesDone: number;
  uploads: number;
  downloads: number;
  contact: number;
  asOf: number;
  audited: number;
  retry: number;
  heard: number;
  problem: string;
  denied: string;
}

/** What an event came to. With an error the machine is done for. */
export interface Synced {
  error?: GuestError;
  status: Standing;
  effects: Effect[];
}

export function decodeSynced(data: Uint8Array): Synced {
  const s: Synced = { status: standing(new Reader(new Uint8Array())), effects: [] };
  for (const r = Reader.envelope(data); r.next(); )
    switch (r.number) {
      case 1:
        s.error = failure(r.message());
        break;
      case 2:
        s.status = standing(r.message());
        break;
      case 3:
        s.effects.push(effect(r.message()));
        break;
    }
  return s;
}

const time = (r: Reader) => Number(r.fixed64() / 1_000_000n);

function effect(r: Reader): Effect {
  let kind = 0;
  const ask: Ask = { id: 0, method: '', path: '', query: '', header: [], body: new Uint8Array(), stream: false };
  let at = 0;
  let blob: Uint8Array = new Uint8Array(32);
  let error: GuestError | undefined;
  let why = '';
  let keepOutbox = false;
  while (r.next())
    switch (r.number) {
      case 1:
        kind = r.uint();
        break;
      case 2:
        ask.id = r.uint();
        break;
      case 3:
        ask.method = r.text();
        break;
      case 4:
        ask.path = r.text();
        break;
      case 5:
        ask.query = r.text();
        break;
      case 6:
        ask.header.push(header(r.message()));
        break;
      case 7:
        ask.stream = r.bool();
        break;
      case 8:
        at = time(r);
        break;
      case 9:
        blob = r.raw().slice();
        break;
      case 10:
        error = failure(r.message());
        break;
      case 11:
        why = r.text();
        break;
      case 12:
        keepOutbox = r.bool();
        break;
      case 15:
        ask.body = r.raw().slice();
        break;
    }
  switch (kind) {
    case 1:
      return { kind: 'ask', ...ask };
    case 2:
      return { kind: 'cancel', id: ask.id };
    case 3:
      return { kind: 'wake', at };
    case 4:
      return { kind: 'got', blob, ...(error && { error }) };
    case 5:
      return { kind: 'changed' };
    case 6:
      return { kind: 'purge', why, keepOutbox };
  }
  throw new EnvelopeError(`an effect of kind ${kind}`);
}

const counts = [
  'cursor',
  'head',
  'issued',
  'accepted',
  'folded',
  'blobsSent',
  'blobsGot',
  'rebases',
  'repairs',
  'refused',
] as const; // from field 4
const sizes = ['pieces', 'piecesDone', 'uploads', 'downloads'] as const; // from field 16
const times = ['contact', 'asOf', 'audited', 'retry', 'heard'] as const; // from field 24

function standing(r: Reader): Standing {
  const numbers = Object.fromEntries([...counts, ...sizes, ...times].map((name) => [name, 0]));
  const s = { phase: 'stopped', site: 0, epoch: new Uint8Array(16), ...numbers, problem: '', denied: '' } as Standing;
  while (r.next()) {
    const n = r.number;
    const number = counts[n - 4] ?? sizes[n - 16];
    const moment = times[n - 24];
    if (number) s[number] = r.uint();
    else if (moment) s[moment] = time(r);
    else if (n === 1) s.phase = phases[r.uint()] ?? unknown('a phase');
    else if (n === 2) s.site = r.uint();
    else if (n === 3) s.epoch = r.raw().slice();
    else if (n === 32) s.problem = r.text();
    else if (n === 33) s.denied = r.text();
  }
  return s;
}

function unknown(what: string): never {
  throw new EnvelopeError(`${what} that is not known here`);
}

/** The digest of what a copy has folded of its origin's log. */
export interface Digest {
  /** Of the log: 32 hex digits. */
  epoch: string;
  /** The last entry of it. */
  seq: number;
  /** The root of the tree of digests over the state, sync/README.md: 64 hex digits. */
  root: string;
}

/** The value of the question `digest`. */
export function decodeDigest(value: Uint8Array): Digest {
  const { epoch, seq, root } = getDigestReply(new Reader(value));
  return { epoch: hex(epoch ?? new Uint8Array(16)), seq, root: hex(root ?? new Uint8Array(32)) };
}

export const hex = (p: Uint8Array): string => Array.from(p, (b) => b.toString(16).padStart(2, '0')).join('');
