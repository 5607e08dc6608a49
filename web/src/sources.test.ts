import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const ts: typeof import('typescript') = createRequire(import.meta.url)('typescript'); // not bundled, because it is large
const most = 12; // maximum number of casts in all sources
const columns = 140; // of a line in a component. The formatter breaks longer ones, but no text and no comment.

const sources = import.meta.glob<string>(['./**/*.{ts,svelte}', '!./**/*.{d,test,testkit}.ts', '!./words/**'], {
  eager: true,
  query: '?raw',
  import: 'default',
});

/** Returns the text of a module, and of a component only the scripts. The scripts keep their lines. */
const scriptsOf = (path: string, text: string): string =>
  path.endsWith('.ts')
    ? text
    : text.replace(/(^|<\/script>).*?(<script[^>]*>|$)/gs, (markup) => markup.replace(/./g, ' '));

/** Returns the casts of a script, except `as const`: their lines, and whether a comment next to them gives the reason. */
function castsIn(text: string): { line: number; hasReason: boolean }[] {
  const file = ts.createSourceFile('script.ts', text, ts.ScriptTarget.Latest, true);
  const lines = text.split('\n');
  const found: { line: number; hasReason: boolean }[] = [];
  const visit = (node: import('typescript').Node): void => {
    if (ts.isAssertionExpression(node) && !ts.isConstTypeReference(node.type)) {
      const [first, last] = [node.getStart(), node.end].map((at) => file.getLineAndCharacterOfPosition(at).line);
      const hasReason = / \/\/ /.test(lines[last ?? 0] ?? '') || /^\s*\/\/ /.test(lines[(first ?? 0) - 1] ?? '');
      found.push({ line: (first ?? 0) + 1, hasReason });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

test('a cast has a reason next to it, and there are few', () => {
  const all = Object.entries(sources).flatMap(([path, text]) =>
    castsIn(scriptsOf(path, text)).map((cast) => ({ ...cast, path })),
  );
  assert.deepEqual(
    all.filter(({ hasReason }) => !hasReason).map(({ path, line }) => `${path}:${line}`),
    [],
  );
  assert.ok(all.length <= most, `${all.length} casts, at most ${most}`);
  assert.ok(Object.keys(sources).length > 300, 'the sources were not found');
});

test('no line of a component has more than 140 columns', () => {
  const long = Object.entries(sources).flatMap(([path, text]) =>
    text
      .split('\n')
      .flatMap((line, i) => (path.endsWith('.svelte') && line.length > columns ? [`${path}:${i + 1}`] : [])),
  );
  assert.deepEqual(long, []);
});

test('casts are found in modules and in the scripts of components', () => {
  const component =
    '<script lang="ts" module>\n  const a = b as C;\n</script>\n\n<p>{a as D}</p>\n<script>\n  // the reason\n  e = f as G;\n</script>';
  assert.deepEqual(castsIn(scriptsOf('A.svelte', component)), [
    { line: 2, hasReason: false },
    { line: 8, hasReason: true },
  ]);
  assert.deepEqual(castsIn('const a = [1] as const;\nlet b = <C>d; // the reason'), [{ line: 2, hasReason: true }]);
});
