import * as assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from './kit/test.ts';

// Approvals and agents are experimental, and each of their exports is marked as such.

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PREVIEW = /^(core\/(agent|approval|tool)\/|config\/sdk\/(agents?|approvals|gate)\.ts$)/;
const EXPORTS = /export (?:type )?\{([^}]*)\} from '([^']+)'/g;

interface Exported {
  readonly name: string;
  readonly path: string;
}

const sourceOf = (path: string) => readFileSync(join(root, path), 'utf8');

/** The re-exports of a file: exported name and source. */
function reexports(path: string): readonly Exported[] {
  return [...sourceOf(path).matchAll(EXPORTS)].flatMap(([, names = '', from = '']) =>
    names
      .split(',')
      .map((name) => /^(?:type )?(\w+)/.exec(name.trim())?.[1])
      .flatMap((name) => (name === undefined ? [] : [{ name, path: join(dirname(path), from) }])),
  );
}

/** The doc comment of its declaration, followed through re-exports; undefined if it has none. */
function commentOf({ name, path }: Exported): string | undefined {
  const reexport = reexports(path).find((one) => one.name === name);
  if (reexport) return commentOf(reexport);
  const source = sourceOf(path);
  const declaration = new RegExp(`^export (?:async )?(?:interface|type|class|function|const) ${name}\\b`, 'm');
  const at = source.search(declaration);
  assert.notEqual(at, -1, `${name} is not declared in ${path}`);
  return /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n$/.exec(source.slice(0, at))?.[0];
}

test('every export of approvals and agents is marked @experimental', () => {
  const exported = reexports('config/sdk/exports.ts').filter(({ path }) => PREVIEW.test(path));
  assert.ok(exported.length > 60);
  const unmarked = exported.filter((one) => !/@experimental\b/.test(commentOf(one) ?? ''));
  assert.deepEqual(
    unmarked.map(({ name, path }) => `${name} in ${path}`),
    [],
  );
});
