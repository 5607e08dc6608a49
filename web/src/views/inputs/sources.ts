// Reads the sources of pictures: files, folders, archives, lists of URLs, and lists of inputs as JSON lines or tables. The formats are
// those of the import command.

import { fetchSample, parseSamples } from '../look/pictures';
import type { Input } from './calls';
import { isNamedPicture, kindOf, type Reason, reasonFor, startBytes } from './leftOut';
import { unzip, ZipError, type ZipFile, type ZipProblem } from './zip';

/** One picture to add: its bytes or its URL, and its data. */
export interface Source {
  readonly name: string; // displayed name: a path, a title or a URL
  readonly blob?: Blob;
  readonly url?: string;
  readonly id?: string;
  readonly crop?: readonly number[];
  readonly concepts?: readonly { readonly id: string; readonly value: 0 | 1 }[];
  readonly metadata?: Record<string, unknown>;
  readonly geo?: Input['data']['geo'];
  readonly file?: string; // path of its file, for the metadata
  readonly problem?: string; // the reason why it cannot be added; empty if it is not a picture
  readonly unread?: Unread; // the reason why its file cannot be read
  readonly leftOut?: Reason; // the reason why it is left out on purpose
}

/** Why a file cannot be read: a known reason, or the browser's text. */
export type Unread = ZipProblem | 'empty' | { readonly why: string };

/** A file or folder with its path in the selection. */
export interface FoundFile {
  readonly path: string;
  readonly file?: File; // absent if it could not be read
  readonly packed?: ZipFile; // a file of a zip
  readonly failure?: unknown; // the reason why it could not be read
}

/** The maximum number of bytes of a picture of any kind. */
const maxBytes = 64_000_000;

const lists = /\.(jsonl|ndjson|csv|tsv|txt)$/i;

/** Returns the pictures in files. It opens archives. A list among the files determines which of the others are added, with their data. */
export async function* sources(foundFiles: readonly FoundFile[]): AsyncGenerator<Source> {
  const files: FoundFile[] = [];
  for (const found of foundFiles) {
    if (!/\.zip$/i.test(found.path) || !found.file || reasonOf(found)) files.push(found);
    else {
      try {
        for (const packed of await unzip(found.file)) files.push({ path: packed.name, packed });
      } catch (failure) {
        yield { name: found.path, unread: unreadOf(failure) };
      }
    }
  }
  const manifests: FoundFile[] = [];
  for (const found of files)
    if (lists.test(found.path) && !reasonOf(found) && (await isList(found))) manifests.push(found);
  const listed = manifests.filter(({ path }) => /(^|\/)inputs\.(jsonl|csv)$/i.test(path));
  const chosen = listed.length ? listed : manifests;
  const used = new Set<FoundFile>();
  for (const manifest of chosen) {
    const folder = manifest.path.replace(/[^/]*$/, '');
    const find = (path: string) => {
      const found = files.find((one) => one.path === folder + path) ?? files.find((one) => baseOf(one) === path);
      if (found) used.add(found);
      return found;
    };
    yield* read(manifest, find);
  }
  if (listed.length) return; // pictures that the list does not name are left out
  for (const found of files) if (!used.has(found) && !chosen.includes(found)) yield sourceOfFile(found);
}

const baseOf = ({ path }: FoundFile) => path.replace(/^.*\//, '');

/** Returns why an import leaves out a file. The rules apply below the chosen folder or archive. A chosen file may be hidden. */
function reasonOf({ path, packed }: FoundFile): Reason | undefined {
  if (packed) return reasonFor(path);
  if (path.includes('/')) return reasonFor(path.replace(/^[^/]*\//, ''));
  const reason = reasonFor(path);
  return reason === 'hidden' ? undefined : reason;
}

async function startOf({ file, packed, failure }: FoundFile): Promise<Uint8Array> {
  if (packed) return packed.start(startBytes);
  if (file) return new Uint8Array(await file.slice(0, startBytes).arrayBuffer());
  throw failure;
}

async function fileOf(found: FoundFile): Promise<File> {
  if (found.packed) return new File([await found.packed.bytes(maxBytes)], baseOf(found));
  if (found.file) return found.file;
  throw found.failure;
}

function unreadOf(failure: unknown): Unread {
  return failure instanceof ZipError
    ? failure.problem
    : { why: failure instanceof Error ? failure.message : String(failure) };
}

/** Returns the source of a file that no list names. */
async function sourceOfFile(found: FoundFile): Promise<Source> {
  const name = found.path;
  const leftOut = reasonOf(found);
  if (leftOut) return { name, leftOut };
  try {
    const start = await startOf(found);
    const kind = kindOf(start);
    if (kind === 'picture') return { name, file: name, blob: await fileOf(found) };
    if (kind === 'video') return { name, problem: '' };
    return start.length === 0 && isNamedPicture(name) ? { name, unread: 'empty' } : { name, leftOut: 'unknown' };
  } catch (failure) {
    return { name, unread: unreadOf(failure) };
  }
}

/** Reports whether a text file is a list. A text without a URL in its first line is not. */
async function isList(found: FoundFile): Promise<boolean> {
  if (!/\.txt$/i.test(found.path)) return true;
  const start = new TextDecoder().decode(await startOf(found).catch(() => new Uint8Array()));
  const [first] = start.split(/\r?\n/).filter((line) => line.trim() && !line.startsWith('#'));
  return /^\ufeff?\s*https?:\/\//i.test(first ?? '');
}

type Find = (path: string) => FoundFile | undefined;

/** Returns the inputs of a list. find: returns a file by its path relative to the list. */
export async function* read(manifest: FoundFile, find: Find): AsyncGenerator<Source> {
  const { path } = manifest;
  let text: string;
  try {
    text = (await (await fileOf(manifest)).text()).replace(/^\ufeff/, '');
  } catch (failure) {
    yield { name: path, unread: unreadOf(failure) };
    return;
  }
  if (/\.(jsonl|ndjson)$/i.test(path)) yield* lines(text, path, find);
  else if (/\.(csv|tsv)$/i.test(path)) yield* rows(text, path, find);
  else yield* addresses(text);
}

/** Returns the URLs of a text with one URL per line. Lines that begin with # are comments. */
export function* addresses(text: string): Generator<Source> {
  for (const line of text.split(/\r?\n/)) {
    const url = line.trim();
    if (url && !url.startsWith('#')) yield { name: url, url };
  }
}

async function* lines(text: string, path: string, find: Find): AsyncGenerator<Source> {
  let n = 0;
  for (const line of text.split(/\r?\n/)) {
    n++;
    if (!line.trim()) continue;
    const name = `${path}:${n}`;
    try {
      yield await sourceOf(JSON.parse(line), name, find);
    } catch (failure) {
      yield failed(name, failure);
    }
  }
}

/** Returns the source of a line that is wrong, or whose file cannot be read. */
function failed(name: string, failure: unknown): Source {
  if (failure instanceof ZipError) return { name, unread: failure.problem };
  return { name, problem: (failure as Error).message };
}

type Json = Record<string, unknown>;

/** Converts a JSON line into a source. The line has the form of the API, or the same members without nesting. */
async function sourceOf(entry: Json, name: string, find: Find): Promise<Source> {
  const data = (entry.data ?? entry) as Json;
  const image = (data.image ?? data) as Json;
  const { url, base64, crop } = image as { url?: string; base64?: string; crop?: number[] };
  const path = (entry.path ?? image.path) as string | undefined;
  const found = base64 || !path ? undefined : find(path);
  const blob = base64 ? decode(base64) : found && (await fileOf(found));
  if (!blob && !url) throw new Error(path ?? 'url, path, base64');
  const concepts = ((data.concepts ?? []) as (string | Json)[]).map(conceptOf);
  const not = ((data.not_concepts ?? []) as string[]).map((id) => ({ id, value: 0 }) as const);
  const geo = data.geo as Json | undefined;
  return {
    name: path ?? url ?? (entry.id as string) ?? name,
    ...(entry.id !== undefined && { id: String(entry.id) }),
    ...(blob ? { blob } : { url: url as string }),
    ...(found && { file: found.path }),
    ...(crop && { crop }),
    ...(concepts.length + not.length > 0 && { concepts: [...concepts, ...not] }),
    ...(data.metadata !== undefined && { metadata: data.metadata as Json }),
    ...(geo && { geo: (geo.geo_point ? geo : { geo_point: geo }) as NonNullable<Source['geo']> }),
  };
}

function conceptOf(concept: string | Json): { id: string; value: 0 | 1 } {
  if (typeof concept === 'string') return { id: concept, value: 1 };
  return { id: String(concept.id ?? concept.name), value: concept.value === false || concept.value === 0 ? 0 : 1 };
}

function decode(base64: string): Blob {
  return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))]);
}

async function* rows(text: string, path: string, find: Find): AsyncGenerator<Source> {
  const { default: Papa } = await import('papaparse');
  const { data } = Papa.parse<Record<string, string>>(text, {
    header: true,
    skipEmptyLines: 'greedy',
    transformHeader: (h) => h.trim(),
  });
  for (const [n, row] of data.entries()) {
    const name = `${path}:${n + 2}`;
    try {
      yield await sourceOf(flat(row), name, find);
    } catch (failure) {
      yield failed(name, failure);
    }
  }
}

/** Converts a row of a table into the flat form of a JSON line. */
function flat(row: Record<string, string>): Json {
  const entry: Json = {};
  const split = (cell: string) =>
    cell
      .split(';')
      .map((part) => part.trim())
      .filter(Boolean);
  for (const [title, cell] of Object.entries(row)) {
    if (!cell) continue;
    const key = title.toLowerCase();
    if (key === 'concepts' || key === 'not_concepts') entry[key] = split(cell);
    else if (title.startsWith('metadata.')) set(entry, title.split('.'), scalar(cell));
    else if (['id', 'url', 'path'].includes(key)) entry[key] = cell;
  }
  const [latitude, longitude] = [row.lat, row.lon];
  if (latitude && longitude) entry.geo = { latitude: Number(latitude), longitude: Number(longitude) };
  return entry;
}

function set(into: Json, path: readonly string[], value: unknown): void {
  let at = into;
  for (const name of path.slice(0, -1)) {
    at[name] ??= {};
    at = at[name] as Json;
  }
  at[path.at(-1) as string] = value;
}

/** Converts a cell into a number, true or false. Any other cell stays text. */
function scalar(cell: string): unknown {
  if (cell === 'true' || cell === 'false') return cell === 'true';
  return /^-?\d/.test(cell) && Number.isFinite(Number(cell)) ? Number(cell) : cell;
}

/** Returns the files of a drop, including those in folders. */
export async function filesOfDrop(transfer: DataTransfer): Promise<FoundFile[]> {
  // Read at once, because the browser empties the list after the event.
  const entries = [...transfer.items].flatMap((item) =>
    item.kind === 'file' ? [item.webkitGetAsEntry?.() ?? item.getAsFile()] : [],
  );
  const found: FoundFile[] = [];
  for (const entry of entries) {
    if (entry instanceof File) found.push({ path: entry.name, file: entry });
    else if (entry) for await (const one of walk(entry)) found.push(one);
  }
  return found;
}

/** Walks a dropped file or folder. It continues after those that the browser cannot read. */
async function* walk(entry: FileSystemEntry): AsyncGenerator<FoundFile> {
  const path = entry.fullPath.replace(/^\//, '');
  try {
    if (entry.isFile) {
      const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
      yield { path, file };
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (!batch.length) return;
      for (const one of batch) yield* walk(one);
    }
  } catch (failure) {
    yield { path, failure };
  }
}

/** Returns the sample pictures with their credits and places. The first sample comes last, since pages show the newest input first. */
export async function* samples(): AsyncGenerator<Source> {
  const listed = parseSamples(await (await fetchSample('credits.tsv')).text());
  for (const { file, title, latitude, longitude, author, licence, page, place } of listed.reverse()) {
    const metadata = { name: title, author, licence, page, place };
    yield { name: title, blob: await fetchSample(file), metadata, geo: { geo_point: { latitude, longitude } } };
  }
}
