// Reads the sources of pictures: files, folders, archives, lists of URLs, and lists of inputs as JSON lines or tables. The formats are
// those of the import command.
import { isPicture } from '../../pictureFiles';
import { fetchSample, parseSamples } from '../look/pictures';
import type { Input } from './calls';
import { degrees, separatorOf, textOf } from './lists';

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
  readonly problem?: string; // the reason why it cannot be added; empty if it is not a picture
}

/** A file with its path in the selection. */
export interface FoundFile {
  readonly path: string;
  readonly file: File;
}

const lists = /\.(jsonl|ndjson|csv|tsv|txt)$/i;

const hidden = /(^|\/)(\.|__MACOSX\/|thumbs\.db$|desktop\.ini$)/i; // files that operating systems leave in folders

/** Returns the pictures in files. It opens archives. A list among the files determines which of the others are added, with their data. */
export async function* sources(foundFiles: readonly FoundFile[]): AsyncGenerator<Source> {
  const files: FoundFile[] = [];
  for (const found of foundFiles) {
    if (/\.zip$/i.test(found.path)) {
      for await (const packed of unpack(found.file)) files.push(packed);
    } else files.push(found);
  }
  const manifests = files.filter(({ path }) => lists.test(path) && !hidden.test(path));
  const listed = manifests.filter(({ path }) => /(^|\/)inputs\.(jsonl|csv)$/i.test(path));
  const chosen = listed.length ? listed : manifests;
  const used = new Set<FoundFile>();
  for (const manifest of chosen) {
    const folder = manifest.path.replace(/[^/]*$/, '');
    const find = (path: string) => {
      const found = files.find((one) => one.path === folder + path) ?? files.find((one) => one.file.name === path);
      if (found) used.add(found);
      return found?.file;
    };
    yield* read(manifest, find);
  }
  if (listed.length) return; // pictures that the list does not name are left out
  for (const found of files) {
    if (used.has(found) || chosen.includes(found) || hidden.test(found.path)) continue;
    yield isPicture({ name: found.path, type: found.file.type })
      ? { name: found.path, blob: found.file }
      : { name: found.path, problem: '' };
  }
}

/** Returns the inputs of a list. find: returns a file by its path relative to the list. */
export async function* read(
  { path, file }: FoundFile,
  find: (path: string) => File | undefined,
): AsyncGenerator<Source> {
  let text: string;
  try {
    text = await textOf(file);
  } catch (failure) {
    yield { name: path, problem: (failure as Error).message };
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

function* lines(text: string, path: string, find: (path: string) => File | undefined): Generator<Source> {
  let n = 0;
  for (const line of text.split(/\r?\n/)) {
    n++;
    if (!line.trim()) continue;
    const name = `${path}:${n}`;
    try {
      yield sourceOf(JSON.parse(line), name, find);
    } catch (failure) {
      yield { name, problem: (failure as Error).message };
    }
  }
}

type Json = Record<string, unknown>;

/** Converts a JSON line into a source. The line has the form of the API, or the same members without nesting. */
function sourceOf(entry: Json, name: string, find: (path: string) => File | undefined): Source {
  const data = (entry.data ?? entry) as Json;
  const image = (data.image ?? data) as Json;
  const { url, base64, crop } = image as { url?: string; base64?: string; crop?: number[] };
  const path = (entry.path ?? image.path) as string | undefined;
  const blob = base64 ? decode(base64) : path ? find(path) : undefined;
  if (!blob && !url) throw new Error(path ?? 'url, path, base64');
  const concepts = ((data.concepts ?? []) as (string | Json)[]).map(conceptOf);
  const not = ((data.not_concepts ?? []) as string[]).map((id) => ({ id, value: 0 }) as const);
  const geo = data.geo as Json | undefined;
  return {
    name: path ?? url ?? (entry.id as string) ?? name,
    ...(entry.id !== undefined && { id: String(entry.id) }),
    ...(blob ? { blob } : { url: url as string }),
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

async function* rows(text: string, path: string, find: (path: string) => File | undefined): AsyncGenerator<Source> {
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
      yield sourceOf(flat(row, separator), name, find);
    } catch (failure) {
      yield { name, problem: (failure as Error).message };
    }
  }
}

/** Converts a row of a table into the flat form of a JSON line. */
function flat(row: Record<string, string>, separator: string): Json {
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
  if (latitude && longitude)
    entry.geo = { latitude: degrees(latitude, separator), longitude: degrees(longitude, separator) };
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

/** Returns the files of an archive. It reads the archive in parts, so the whole is never in memory. */
async function* unpack(archive: Blob): AsyncGenerator<FoundFile> {
  const { Unzip, UnzipInflate, UnzipPassThrough } = await import('fflate');
  const ended: FoundFile[] = [];
  let failure: Error | undefined;
  const unzip = new Unzip((entry) => {
    if (
      entry.name.endsWith('/') ||
      !(isPicture({ name: entry.name, type: '' }) || lists.test(entry.name)) ||
      /(^|\/)(\.|__MACOSX\/)/.test(entry.name)
    )
      return;
    const parts: Uint8Array<ArrayBuffer>[] = [];
    entry.ondata = (error, part, last) => {
      if (error) failure = error;
      parts.push(new Uint8Array(part)); // copied, because fflate reuses the memory
      if (last) ended.push({ path: entry.name, file: new File(parts, entry.name.replace(/^.*\//, '')) });
    };
    entry.start();
  });
  unzip.register(UnzipInflate);
  unzip.register(UnzipPassThrough);
  const reader = archive.stream().getReader();
  for (;;) {
    const { done, value } = await reader.read();
    unzip.push(value ?? new Uint8Array(0), done);
    if (failure) throw failure;
    yield* ended.splice(0);
    if (done) return;
  }
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

async function* walk(entry: FileSystemEntry): AsyncGenerator<FoundFile> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    yield { path: entry.fullPath.replace(/^\//, ''), file };
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!batch.length) return;
    for (const one of batch) yield* walk(one);
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
