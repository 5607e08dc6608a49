// The IDs and the metadata that an addition gives to pictures. The rules of the IDs are those of the import command: identity.test.ts and a
// test of the command compare both with origin/server/collection/testdata/ids.json.
import { bytesToHex } from '../look/consistency';
import type { Source } from './sources';

const maxIdBytes = 128;
const maxFileBytes = 4096;
const maxMetadataBytes = 65_536;
const reserved = ['.', '..', 'searches', 'status', 'usage']; // path segments that lead to no ID

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Returns the SHA-256 of bytes in hexadecimal digits. */
export const sha256 = async (bytes: BufferSource): Promise<string> =>
  bytesToHex(await crypto.subtle.digest('SHA-256', bytes));

const digest = async (kind: string, content: string) =>
  (await sha256(bytesOf(`${kind}\x000\x00${content}`))).slice(0, 32);

/**
 * Returns the ID of a picture without an ID of a list. It is the path of its file if that is a valid ID, otherwise a digest of the path or of
 * the URL. A picture that has neither, such as one from the clipboard, has the first half of its SHA-256.
 */
export async function newId({ file, url, crop }: Omit<Source, 'blob'>, hash: string): Promise<string> {
  const crops = crop ? JSON.stringify(crop) : '';
  if (file !== undefined && !crops) return isId(file) ? file : digest('path', file);
  if (file !== undefined) return digest('path', `${file}\0${crops}`);
  return url === undefined ? hash.slice(0, 32) : digest('url', `${url}\0${crops}`);
}

/** Reports whether a new input can have an ID. */
function isId(id: string): boolean {
  return id !== '' && bytesOf(id).length <= maxIdBytes && !/\p{Cc}/u.test(id) && !reserved.includes(id);
}

/** Returns the start of a text, at most n bytes of UTF-8, without a part of a character at the end. */
function cut(text: string, n: number): string {
  const bytes = new Uint8Array(n);
  return text.slice(0, new TextEncoder().encodeInto(text, bytes).read);
}

/** Returns the ID of a picture whose ID belongs to another one. */
export function otherId(id: string, hash: string): string {
  const end = `~${hash.slice(0, 8)}`;
  return cut(id, maxIdBytes - end.length) + end;
}

/** Returns metadata with the path of a file. A member `file` of a list counts before it. */
export function withFile(metadata: unknown, file: string): unknown {
  if (metadata === undefined || metadata === null) return { file: cut(file, maxFileBytes) };
  if (typeof metadata !== 'object' || Array.isArray(metadata)) return metadata;
  const all = { file: cut(file, maxFileBytes), ...metadata };
  return bytesOf(JSON.stringify(all)).length > maxMetadataBytes ? metadata : all;
}
