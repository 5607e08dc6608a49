// Compares the digests of a replica's state and of its origin's. At the same entry of the same log, equal states have equal digests.
import { clientOf } from '../../api/client';
import { Failure } from '../../api/console';
import { bytesToHex } from '../look/consistency';

/** The digest of an application's state after an entry of its log. All but seq in hex. */
export interface Digest {
  readonly epoch: string; // of the log
  readonly seq: number;
  readonly digest: string;
}

/** Compares two digests. The result is 'elsewhere' if they belong to different entries or logs, and thus are not comparable. */
export function compare(local: Digest, remote: Digest): 'equal' | 'differ' | 'elsewhere' {
  if (local.epoch !== remote.epoch || local.seq !== remote.seq) return 'elsewhere';
  return local.digest === remote.digest ? 'equal' : 'differ';
}

/** Requests the origin's digest of an application, with an access token. */
export async function originDigest(app: string, token: string): Promise<Digest> {
  const { data, response } = await clientOf(fetch).GET('/sync/digest', {
    params: { query: { app }, header: { 'Sync-Protocol': '2' } },
    headers: { Authorization: `Bearer ${token}`, Accept: 'application/vnd.sightline.sync' },
    cache: 'no-store',
    parseAs: 'arrayBuffer',
  });
  if (!data) throw new Failure(response.status, { description: response.statusText });
  return decodeDigest(new Uint8Array(data));
}

/** Decodes a message Digest (sync/README.md). */
export function decodeDigest(message: Uint8Array<ArrayBuffer>): Digest {
  const got = new Map(fields(message.subarray(1))); // after its version
  const [epoch, seq, digest] = [got.get(1), got.get(2), got.get(3)];
  if (!(epoch instanceof Uint8Array && typeof seq === 'number' && digest instanceof Uint8Array))
    throw new Error('this is no digest');
  return { epoch: hex(epoch), seq, digest: hex(digest) };
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
