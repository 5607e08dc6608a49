// Finds the root folder of the repository.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

function find(from: string): string {
  if (existsSync(join(from, 'go.mod'))) return from;
  if (dirname(from) === from) throw new Error('no go.mod above this file');
  return find(dirname(from));
}

export const root = find(import.meta.dirname);
