// Compares the digests of a replica's state and of its origin's. At the same entry of the same log, equal states have equal digests.
import { Failure } from '../../console';
import { bytesToHex } from '../look/receipt';

/** The digest of an application's state after an entry of its log. All but seq in hex. */
export interface Digest {
  readonly epoch: string; // of the log
  readonly seq: number;
  readonly root: string;
}

/** Compares two digests. The result is 'elsewhere' if they belong to different entries or logs, and thus are not comparable. */
export function compare(local: Digest, remote: Digest): 'equal' | 'differ' | 'elsewhere' {
  if (local.epoch !== remote.epoch || local.seq !== remote.seq) return 'elsewhere';
  return local.root === remote.root ? 'equal' : 'differ';
}

/** Requests the origin's digest of an application, with an access token. */
export async function originDigest(app: string, token: string): Promise<Digest> {
  const headers = { Authorization: `Bearer ${token}`, Accept: 'application/vnd.sightline.sync' };
  const query = new URLSearchParams({ app, p: '0', prefix: '' });
  const answer = await fetch(`/v2/sync/digest?${query}`, { headers, cache: 'no-store' }).catch(() => undefined);
  if (!answer) throw new Failure(0);
  if (!answer.ok) throw new Failure(answer.status, { description: answer.statusText });
  return rootOf(new Uint8Array(await answer.arrayBuffer()));
}

/** The digest that a message Digests of the tree's root tells (sync/README.md): the hash of its sixteen children's. */
export async function rootOf(message: Uint8Array<ArrayBuffer>): Promise<Digest> {
  let [epoch, seq] = ['', 0];
  const children: Uint8Array[] = [];
  for (const [number, value] of fields(message.subarray(1))) {
    // after its version
    if (number === 1 && typeof value !== 'number') epoch = hex(value);
    if (number === 2 && typeof value === 'number') seq = value;
    if (number === 4 && typeof value !== 'number') {
      const child = fields(value).find(([n]) => n === 2)?.[1];
      children.push(child instanceof Uint8Array ? child : new Uint8Array(32)); // a child without keys says none
    }
  }
  const all = new Uint8Array(32 * children.length);
  for (const [i, child] of children.entries()) all.set(child, 32 * i);
  return { epoch, seq, root: bytesToHex(await crypto.subtle.digest('SHA-256', all)) };
}

const hex = (bytes: Uint8Array): string => bytesToHex(new Uint8Array(bytes).buffer);

/** The fields of a message in the wire format of Protocol Buffers: numbers and bytes, of which these messages consist. */
function fields(message: Uint8Array<ArrayBuffer>): [number, number | Uint8Array<ArrayBuffer>][] {
  const all: [number, number | Uint8Array<ArrayBuffer>][] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++];
      if (byte === undefined) throw new Error('a digest ends early');
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const [number, kind] = [Math.floor(tag / 8), tag % 8];
    const value = varint();
    if (kind === 0) all.push([number, value]);
    else if (kind === 2 && at + value <= message.length) {
      all.push([number, message.subarray(at, at + value)]);
      at += value;
    } else throw new Error('this is no digest');
  }
  return all;
}
