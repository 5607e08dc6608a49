// Makes a runtime whose network differs from the network of the tests.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const resolvePath = (path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * Makes a runtime in a new folder below `folder`, and returns the path of the new folder. Its general model predicts lower values, so it is
 * another network.
 */
export function another(folder) {
  const bundles = join(folder, 'bundles');
  const models = resolvePath('../../../models');
  for (const name of readdirSync(models))
    if (name.match(/^(general|food|color)/)) cpSync(join(models, name), join(bundles, name), { recursive: true });
  const at = (name) => join(bundles, 'general-v1.3', name);
  const lines = readFileSync(at('calibration.tsv'), 'utf8').split('\n');
  const column = lines[0].split('\t').indexOf('intercept');
  const table = lines.map((line, n) => {
    const fields = line.split('\t');
    if (n > 0 && line) fields[column] = (Number(fields[column]) - 3).toFixed(4);
    return fields.join('\t');
  });
  writeFileSync(at('calibration.tsv'), table.join('\n'));
  const manifest = JSON.parse(readFileSync(at('manifest.json'), 'utf8'));
  manifest.files['calibration.tsv'] = createHash('sha256').update(table.join('\n')).digest('hex');
  writeFileSync(at('manifest.json'), JSON.stringify(manifest));
  const to = join(folder, 'runtime');
  execFileSync('node', [resolvePath('../tools/assemble.js'), to, '--bundles', bundles]);
  return to;
}
