// Writes dist/licences.txt: the licence of every package that has code in the pages.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export function licences() {
  return {
    name: 'licences',
    /** @param {unknown} _ @param {Record<string, {type: string, moduleIds?: string[]}>} bundle */
    generateBundle(_, bundle) {
      const folders = new Set();
      const moduleLicences = new Set(); // paths of licence files for modules that contain code of other packages
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.moduleIds ?? []) {
          const found = id.match(/^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//);
          if (found) folders.add(found[1]);
          if (found && existsSync(`${id}.LICENSE.txt`)) moduleLicences.add(`${id}.LICENSE.txt`);
        }
      }
      const texts = [...folders].sort().map((/** @type {string} */ folder) => {
        const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
        const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
        if (!file || !existsSync(join(folder, file))) throw new Error(`${manifest.name} has no licence file`);
        const text = readFileSync(join(folder, file), 'utf8').trim();
        return `${manifest.name} ${manifest.version} (${manifest.license ?? 'its licence follows'})\n\n${text}\n`;
      });
      const line = `\n${'-'.repeat(72)}\n\n`;
      this.emitFile({
        type: 'asset',
        fileName: 'licences.txt',
        source: [...texts, ...[...moduleLicences].map((file) => readFileSync(file, 'utf8'))].join(line),
      });
    },
  };
}
