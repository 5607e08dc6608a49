// Stores the bundles of networks in a store's folder. A store needs a network as long as it has embeddings of inputs from this network. A
// runtime with another network answers with the old network from this folder until it has analysed all inputs again.
//
//     network-HASH-N    base (32 bytes) · length of the list (u32) · the list as JSON: [[name, size], …] · the N files, one after another
//
// HASH is the hash of the bundles' manifests. The runtime loads some files of its bundles only after its start (load.ts). It then stores
// all files again, under the name with the new N.

import type { Folder } from './files.ts';
import { sha256 } from './load.ts';
import { hex } from './sync.ts';

/** The files of a network's bundles by their names. */
export type Bundles = Map<string, Uint8Array<ArrayBuffer>>;

const nameOf = (hash: string, files: number) => `network-${hash}-${files}`;

/** The networks of a store: older networks in its folder, and the runtime's own network. */
export class Networks {
  /** Networks other than the runtime's own, by their bases in hex. */
  readonly older: ReadonlyMap<string, Bundles>;

  #folder: Folder;
  #own: Bundles;
  #hash: string; // HASH of the own network
  #storedCount: number; // number of the own network's files in the folder
  #names = new Map<string, string>(); // file names of the other networks, by base
  #cleared = false;

  private constructor(
    folder: Folder,
    own: Bundles,
    hash: string,
    stored: number,
    older: [name: string, file: StoredNetwork][],
  ) {
    this.#folder = folder;
    this.#own = own;
    this.#hash = hash;
    this.#storedCount = stored;
    for (const [name, { base }] of older) this.#names.set(base, name);
    this.older = new Map(older.map(([, { base, bundles }]) => [base, bundles]));
  }

  /** Reads the networks of a folder, except for the runtime's own, whose bundles are `own`. */
  static async open(folder: Folder, own: Bundles): Promise<Networks> {
    const hash = await hashOf(own);
    const maxCounts = new Map<string, number>(); // maximum N by HASH
    for (const name of await folder.list()) {
      const [, of, n] = name.match(/^network-(.+)-(\d+)$/) ?? [];
      const otherCount = (of && maxCounts.get(of)) || 0;
      if (of && otherCount) await folder.remove(nameOf(of, Math.min(otherCount, Number(n)))); // a crash during `settle` left both
      if (of) maxCounts.set(of, Math.max(otherCount, Number(n)));
    }
    const stored = maxCounts.get(hash) ?? 0;
    maxCounts.delete(hash);
    const read = async ([of, n]: [string, number]): Promise<[string, StoredNetwork]> => {
      const name = nameOf(of, n);
      return [name, decode(await folder.read(name))];
    };
    return new Networks(folder, own, hash, stored, await Promise.all([...maxCounts].map(read)));
  }

  /**
   * Removes the older networks whose bases, in hex, are not in `usedBases`. Stores the runtime's own network with its base, unless all its
   * loaded files are stored.
   */
  async settle(base: Uint8Array<ArrayBuffer>, usedBases: ReadonlySet<string>): Promise<void> {
    if (this.#cleared) return;
    for (const [otherBase, name] of this.#names) {
      if (usedBases.has(otherBase)) continue;
      await this.#folder.remove(name);
      this.#names.delete(otherBase);
    }
    const [storedCount, count] = [this.#storedCount, this.#own.size];
    if (storedCount < count) {
      await this.#folder.write(nameOf(this.#hash, count), await encode(base, this.#own));
      this.#storedCount = count;
      if (storedCount > 0) await this.#folder.remove(nameOf(this.#hash, storedCount));
    }
  }

  /** Removes all networks from the folder. Later calls of `settle` do nothing. */
  async clear(): Promise<void> {
    this.#cleared = true;
    for (const name of await this.#folder.list()) if (name.startsWith('network-')) await this.#folder.remove(name);
  }
}

async function hashOf(bundles: Bundles): Promise<string> {
  const manifests = [...bundles]
    .filter(([name]) => name.endsWith('/manifest.json'))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return sha256(await new Blob(manifests.map(([, data]) => data)).arrayBuffer());
}

interface StoredNetwork {
  base: string;
  bundles: Bundles;
}

async function encode(base: Uint8Array<ArrayBuffer>, bundles: Bundles): Promise<Uint8Array<ArrayBuffer>> {
  const list = new TextEncoder().encode(JSON.stringify([...bundles].map(([name, data]) => [name, data.length])));
  const length = new DataView(new ArrayBuffer(4));
  length.setUint32(0, list.length, true);
  return new Uint8Array(await new Blob([base, length, list, ...bundles.values()]).arrayBuffer());
}

function decode(data: Uint8Array<ArrayBuffer>): StoredNetwork {
  const length = new DataView(data.buffer, data.byteOffset).getUint32(32, true);
  let at = 36 + length;
  const bundles: Bundles = new Map();
  for (const [name, size] of JSON.parse(new TextDecoder().decode(data.subarray(36, at))) as [string, number][]) {
    bundles.set(name, data.subarray(at, at + size));
    at += size;
  }
  return { base: hex(data.subarray(0, 32)), bundles };
}
