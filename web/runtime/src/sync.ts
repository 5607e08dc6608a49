// The envelopes of a replica's state machine: its events and its effects. wasm/README.md, "Event and SyncResult".

import {
  type Effect as Fields,
  getDigestReply,
  getReplicaStatus,
  getSyncResult,
  putEvent,
  type ReplicaStatus,
} from './envelope.gen.ts';
import { EnvelopeError, Reader, Writer } from './envelope.ts';
import { failure, type GuestError, pair } from './messages.ts';

/** An event for the machine. */
export type Event =
  | { kind: 'status' | 'begin' | 'wake' | 'local' | 'offline' | 'online' | 'stop' }
  | ({ kind: 'answer'; id: number } & Piece)
  | { kind: 'need'; blob: Uint8Array };

/** A piece of an answer. The first piece has the status and the header. `more` is true in all but the last. */
export interface Piece {
  status?: number;
  header?: [name: string, value: string][];
  body?: Uint8Array;
  more?: boolean;
  error?: string; // why the answer failed; the last piece
}

const events = ['status', 'begin', 'wake', 'local', 'answer', 'need', 'offline', 'online', 'stop'];

export function encodeEvent(e: Event): Uint8Array<ArrayBuffer> {
  const { kind, header, ...rest } = e as { kind: string } & Piece;
  const fields = header?.map(([name, value]) => ({ name, value }));
  return putEvent(Writer.envelope(), {
    ...rest,
    kind: events.indexOf(kind),
    ...(fields && { header: fields }),
  }).finish();
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

/** A request of the machine to its host. Times are in milliseconds since 1970. */
export type Effect =
  | ({ kind: 'ask' } & Ask)
  | { kind: 'cancel'; id: number }
  | { kind: 'wake'; at: number }
  | { kind: 'got'; blob: Uint8Array; error?: GuestError }
  | { kind: 'changed' }
  | { kind: 'purge'; why: string; keepOutbox: boolean };

/** The phase of the machine's sync. */
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

/** The status of the machine. Times are in milliseconds since 1970, 0: never. */
export interface SyncStatus extends Omit<ReplicaStatus, 'phase' | 'epoch'> {
  phase: Phase;
  epoch: Uint8Array;
}

/** The result of an event. After an error the machine has ended. */
export interface SyncResult {
  error?: GuestError;
  status: SyncStatus;
  effects: Effect[];
}

export function decodeSyncResult(data: Uint8Array): SyncResult {
  const { error, status, effects } = getSyncResult(Reader.envelope(data));
  return {
    status: decodeStatus(status ?? getReplicaStatus(new Reader(new Uint8Array()))),
    effects: effects.map(effect),
    ...(error && { error: failure(error) }),
  };
}

function effect({
  kind,
  id,
  method,
  path,
  query,
  header,
  stream,
  at,
  blob,
  error,
  why,
  keepOutbox,
  body,
}: Fields): Effect {
  switch (kind) {
    case 1:
      return { kind: 'ask', id, method, path, query, header: header.map(pair), body: body ?? new Uint8Array(), stream };
    case 2:
      return { kind: 'cancel', id };
    case 3:
      return { kind: 'wake', at };
    case 4:
      return { kind: 'got', blob: blob ?? new Uint8Array(32), ...(error && { error: failure(error) }) };
    case 5:
      return { kind: 'changed' };
    case 6:
      return { kind: 'purge', why, keepOutbox };
  }
  throw new EnvelopeError(`an effect of kind ${kind}`);
}

const decodeStatus = ({ phase, epoch, ...rest }: ReplicaStatus): SyncStatus => ({
  ...rest,
  phase: phases[phase] ?? throwUnknown('phase'),
  epoch: epoch ?? new Uint8Array(16),
});

function throwUnknown(field: string): never {
  throw new EnvelopeError(`unknown ${field}`);
}

/** The digest of a replica's state after the folded part of its log. */
export interface Digest {
  /** The epoch of the log: 32 hex digits. */
  epoch: string;
  /** The last folded entry. */
  seq: number;
  /** The digest of the state, as sync/README.md defines it: 64 hex digits. */
  digest: string;
}

/** Decodes the value of the question `digest`. */
export function decodeDigest(value: Uint8Array): Digest {
  const { epoch, seq, digest } = getDigestReply(new Reader(value));
  return { epoch: hex(epoch ?? new Uint8Array(16)), seq, digest: hex(digest ?? new Uint8Array(32)) };
}

export const hex = (p: Uint8Array): string => Array.from(p, (b) => b.toString(16).padStart(2, '0')).join('');
