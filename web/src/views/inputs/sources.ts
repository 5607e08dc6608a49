// Reads the sources of pictures: files, folders, archives, lists of URLs, and lists of inputs as JSON lines or tables. The formats are
// those of the import command.
import type { Schemas } from '../../api/client';
import { messageOf } from '../../text/problem';
import { fetchSample, parseSamples } from '../look/pictures';
import { isNamedPicture, kindOf, type Reason, reasonFor, startBytes } from './leftOut';
import { degrees, separatorOf, textOf } from './lists';
import { unzip, ZipError, type ZipFile, type ZipProblem } from './zip';

/** One picture to add: its bytes or its URL, and its data. */
export interface Source {
  readonly name: string; // displayed name: a path, a title or a URL
  readonly blob?: Blob;
  readonly url?: string;
  readonly id?: string;
  readonly crop?: Schemas['PictureSource']['crop'];
  readonly concepts?: readonly { readonly id: string; readonly value: 0 | 1 }[];
  readonly metadata?: Record<string, unknown>;
  readonly geo?: Schemas['Geo'];
  readonly file?: string; // path of its file, for the metadata
  readonly problem?: string; // the reason why it cannot be added; empty if it is not a picture
  readonly unread?: Unread; // the reason why its file cannot be read
  readonly leftOut?: Reason; // the reason why it is left out on purpose
  readonly isInMemory?: true; // the page holds its bytes, as of a file of a zip
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

const unnamed = /^image\.(png|jpe?g)$/i; // what browsers call a picture from the clipboard or the camera

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

const unreadOf = (failure: unknown): Unread =>
  failure instanceof ZipError ? failure.problem : { why: messageOf(failure) };

const inMemory = (isUnpacked: unknown) => (isUnpacked ? ({ isInMemory: true } as const) : {});

/** Returns the source of a file that no list names. */
async function sourceOfFile(found: FoundFile): Promise<Source> {
  const name = found.path;
  const leftOut = reasonOf(found);
  if (leftOut) return { name, leftOut };
  try {
    const start = await startOf(found);
    const kind = kindOf(start);
    if (kind === 'picture')
      return { name, ...(!unnamed.test(name) && { file: name }), blob: await fileOf(found), ...inMemory(found.packed) };
    if (kind === 'video') return { name, problem: '' };
    return start.length === 0 && isNamedPicture(name) ? { name, unread: 'empty' } : { name, leftOut: 'unknown' };
  } catch (failure) {
    return { name, unread: unreadOf(failure) };
  }
}

/** Reports whether a text file is a list. A text is a list if a person has chosen the file itself, and its first line is a URL. */
async function isList(found: FoundFile): Promise<boolean> {
  if (!/\.txt$/i.test(found.path)) return true;
  if (found.packed || found.path.includes('/')) return false;
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
    text = await textOf(await fileOf(manifest));
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
  return { name, problem: messageOf(failure) };
}

/** The image of a line. */
interface ImageOfLine {
  readonly url?: string;
  readonly base64?: string;
  readonly path?: string;
  readonly crop?: Source['crop'];
}

/** The data of a line. The members of its image may be among them. */
interface DataOfLine extends ImageOfLine {
  readonly image?: ImageOfLine;
  readonly concepts?: readonly (string | { readonly id?: string; readonly name?: string; readonly value?: unknown })[];
  readonly not_concepts?: readonly string[];
  readonly metadata?: Source['metadata'];
  readonly geo?: Schemas['Geo'] | Schemas['GeoPoint'];
}

/** A JSON line: in the form of the API, or with the same members without nesting. The host checks the values. */
interface Line extends DataOfLine {
  readonly id?: string;
  readonly data?: DataOfLine;
}

/** Converts a line into a source. */
async function sourceOf(entry: Line, name: string, find: Find): Promise<Source> {
  const data = entry.data ?? entry;
  const image = data.image ?? data;
  const { url, base64, crop } = image;
  const path = entry.path ?? image.path;
  const found = base64 || !path ? undefined : find(path);
  const blob = base64 ? decode(base64) : found && (await fileOf(found));
  if (!blob && !url) throw new Error(path ?? 'url, path, base64');
  const not = (data.not_concepts ?? []).map((id) => ({ id, value: 0 }) as const);
  const concepts = [...(data.concepts ?? []).map(conceptOf), ...not];
  const { geo, metadata } = data;
  return {
    name: path ?? url ?? entry.id ?? name,
    ...(entry.id !== undefined && { id: String(entry.id) }),
    ...(blob ? { blob, ...inMemory(base64 || found?.packed) } : { url }),
    ...(found && { file: found.path }),
    ...(crop && { crop }),
    ...(concepts.length > 0 && { concepts }),
    ...(metadata !== undefined && { metadata }),
    ...(geo && { geo: 'geo_point' in geo ? geo : { geo_point: geo } }),
  };
}

function conceptOf(concept: NonNullable<DataOfLine['concepts']>[number]): { id: string; value: 0 | 1 } {
  if (typeof concept === 'string') return { id: concept, value: 1 };
  return { id: String(concept.id ?? concept.name), value: concept.value === false || concept.value === 0 ? 0 : 1 };
}

function decode(base64: string): Blob {
  return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))]);
}

async function* rows(text: string, path: string, find: Find): AsyncGenerator<Source> {
  const { default: Papa } = await import('papaparse');
  const separator = separatorOf(text);
  const { data } = Papa.parse<Record<string, string>>(text, {
    header: true,
    skipEmptyLines: 'greedy',
    delimiter: separator,
    transformHeader: (h) => h.trim(),
  });
  for (const [n, row] of data.entries()) {
    const name = `${path}:${n + 2}`;
    try {
      yield await sourceOf(flat(row, separator), name, find);
    } catch (failure) {
      yield failed(name, failure);
    }
  }
}

/** Converts a row of a table into the flat form of a JSON line. */
function flat(row: Record<string, string>, separator: string): Line {
  const entry: Members = {};
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
  if (latitude && longitude)
    entry.geo = { latitude: degrees(latitude, separator), longitude: degrees(longitude, separator) };
  return entry;
}

type Members = Record<string, unknown>;

/** Sets a value at a path of names. */
function set(into: Members, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length) {
    into[name] ??= {};
    if (typeof into[name] !== 'object') throw new Error(name);
    set(Object(into[name]), rest, value);
  } else into[name] = value;
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

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => !entry.isFile;

/** Walks a dropped file or folder. It continues after those that the browser cannot read. */
async function* walk(entry: FileSystemEntry): AsyncGenerator<FoundFile> {
  const path = entry.fullPath.replace(/^\//, '');
  try {
    if (isFile(entry)) {
      yield { path, file: await new Promise<File>((resolve, reject) => entry.file(resolve, reject)) };
      return;
    }
    if (!isFolder(entry)) return;
    const reader = entry.createReader();
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
