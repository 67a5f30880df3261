import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';
import { ABACUS, ACCEPTED, REJECTED } from './kit/type-cases.ts';

/** What the public types reject, and with which message. One run of the compiler for all snippets. */

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const IMPORTS = `import { type AnyHistoryEntry, type Config, type Database, defineConfig, definePlugin, type FieldValue, type HistoryEntry, isSvcError, type Migration, type MigrationEngine, migration, MigrationHelpers, Svc, SvcError } from '@svc/sdk';
declare const db: Database;
declare const engine: MigrationEngine;`;

/** Lines of the compiler's output by file. */
async function compile(): Promise<Map<string, string[]>> {
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  const paths = Object.entries<string[]>(compilerOptions.paths).map(([name, [file = '']]) => [
    name,
    [join(root, file)],
  ]);
  const snippets = Object.values(REJECTED).map(([code], index) => [`rejected-${index}.ts`, `${IMPORTS}\n${code}\n`]);
  paths.push(['svc-dialect-abacus', ['./abacus/index.d.ts']]);
  const path = folder({
    'abacus/index.d.ts': ABACUS,
    'tsconfig.json': {
      compilerOptions: { ...compilerOptions, paths: Object.fromEntries(paths), noUnusedLocals: false },
      include: ['*.ts'],
    },
    'package.json': { type: 'module' },
    'accepted.ts': `${IMPORTS}\n${ACCEPTED}\n`,
    ...Object.fromEntries(snippets),
  });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const output = await new Promise<string>((settle) => {
    execFile(
      process.execPath,
      [tsc, '-p', path, '--pretty', 'false'],
      { cwd: path, maxBuffer: 1 << 24 },
      (_error, stdout) => settle(stdout),
    );
  });
  const found = new Map<string, string[]>();
  let file = '';
  for (const line of output.split('\n').filter((text) => text !== '')) {
    file = /^(\S+?\.ts)\(\d/.exec(line)?.[1] ?? file; // a continuation is indented
    found.set(file, [...(found.get(file) ?? []), line]);
  }
  return found;
}

const found = await compile();

test('correct code compiles, and nothing else of the program is reported', () => {
  assert.deepEqual(found.get('accepted.ts') ?? [], []);
  assert.deepEqual(
    [...found.keys()].filter((file) => !file.startsWith('rejected-')),
    [],
  );
});

for (const [index, [what, [code, message]]] of Object.entries(REJECTED).entries()) {
  test(`${what} does not compile, and the message names it`, () => {
    const file = `rejected-${index}.ts`;
    const lines = found.get(file) ?? [];
    assert.match(lines.join('\n'), message);
    const errors = lines.filter((line) => line.startsWith(file));
    assert.equal(errors.length, 1, errors.join('\n'));
    const line = `${IMPORTS}\n${code}`.split('\n').findIndex((text) => text.includes('// here')) + 1;
    assert.ok(errors[0]?.startsWith(`${file}(${line},`), errors[0]);
  });
}
