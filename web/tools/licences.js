// Writes dist/licences.txt: the licence of every package that has code in the pages.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export function licences() {
  return {
    name: 'licences',
    /** @param {unknown} _ @param {Record<string, {type: string, moduleIds?: string[]}>} bundle */
    generateBundle(_, bundle) {
      const folders = new Set();
      const inside = new Set(); // paths of licence files for modules that contain code of other packages
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.moduleIds ?? []) {
          const found = id.match(/^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//);
          if (found) folders.add(found[1]);
          if (found && existsSync(`${id}.LICENSE.txt`)) inside.add(`${id}.LICENSE.txt`);
        }
      }
      const texts = [...folders].sort().map((/** @type {string} */ folder) => {
        const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
        const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
        if (!file || !existsSync(join(folder, file))) throw new Error(`${about.name} has no licence file`);
        const text = readFileSync(join(folder, file), 'utf8').trim();
        return `${about.name} ${about.version} (${about.license ?? 'its licence follows'})\n\n${text}\n`;
      });
      const line = `\n${'-'.repeat(72)}\n\n`;
      this.emitFile({
        type: 'asset',
        fileName: 'licences.txt',
        source: [...texts, ...[...inside].map((file) => readFileSync(file, 'utf8'))].join(line),
      });
    },
  };
}
