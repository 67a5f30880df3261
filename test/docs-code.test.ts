import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readSchemaFile } from '../config/project/schema-file.ts';
import { Kernel } from '../core/kernel.ts';
import { applyPlugin } from '../core/plugin.ts';
import { type DocsBlock, docsBlocks, importDocsPlugin } from './kit/docs-blocks.ts';
import { PRELUDE } from './kit/docs-prelude.ts';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';

/**
 * The code in README.md and docs/: compiled against the built package, all of it by one run of the compiler. Plugins are
 * applied and schema files read; what README.md runs as a project, test/readme.test.ts does.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const blocks = docsBlocks();
const COMPILED = ['ts', 'js'];
/** Other languages: run by another test, or not run. */
const OTHER = ['sh', 'text', 'json', 'python', 'go', 'mermaid', 'console'];

/** Pads a block so that its lines have the same numbers in the file as on the page. */
function source({ page, line, language, text }: DocsBlock): { readonly name: string; readonly text: string } {
  const name = `${page.replaceAll('/', '-')}.${line}.m${language}`;
  return { name, text: `${'\n'.repeat(line)}${text}\nexport {};\n` };
}

function project(): string {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const paths = Object.entries<{ types?: string }>(exports).flatMap(([name, { types }]) =>
    types === undefined ? [] : [[`@svc/sdk${name.slice(1)}`, [join(root, types)]]],
  );
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  const options = { ...compilerOptions, paths: Object.fromEntries(paths), allowJs: true, noUnusedLocals: false };
  const path = folder({
    'tsconfig.json': { compilerOptions: { ...options, declaration: false }, include: ['*.ts', '*.mts', '*.mjs'] },
    'prelude.ts': PRELUDE,
    'package.json': { type: 'module' },
    // Modules that a block imports from its folder.
    'dialect.ts': "import type { Dialect } from '@svc/sdk';\nexport declare const abacus: Dialect;",
    'index.ts': "import { definePlugin } from '@svc/sdk';\nexport default definePlugin({ name: 'own', apply() {} });",
    'client.ts':
      "import type { BrokerClient } from '@svc/sdk/testing';\nexport declare function openClient(): Promise<BrokerClient>;",
  });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  for (const block of blocks.filter(({ language }) => COMPILED.includes(language))) {
    const { name, text } = source(block);
    writeFileSync(join(path, name), text);
  }
  return path;
}

test('every block has a known language', () => {
  const strange = blocks.filter(({ language }) => ![...COMPILED, ...OTHER].includes(language));
  assert.deepEqual(
    strange.map(({ page, line, language }) => `${page}:${line} ${language}`),
    [],
  );
  assert.ok(blocks.filter(({ language }) => language === 'ts').length > 10);
});

test('TypeScript and JavaScript compile against the public types', async () => {
  assert.ok(existsSync(join(root, 'dist', 'config', 'sdk', 'index.d.ts')), 'npm run build');
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const path = project();
  await promisify(execFile)(process.execPath, [tsc, '-p', path, '--pretty', 'false'], { cwd: path }).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      // docs-reference-hooks.md.12.mts(14,3) is docs/reference/hooks.md, line 14.
      const output = `${stdout}${stderr}`.replace(
        /^(?:docs-)?(\S+?\.md)\.\d+\.m[tj]s\((\d+),/gm,
        '$1: line $2 (column ',
      );
      assert.fail(output);
    },
  );
});

test('JSON is valid, and so are schema files', async () => {
  for (const { page, line, text } of blocks.filter(({ language }) => language === 'json')) {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value)) continue;
    const databases = value.map(({ db }) => db);
    const read = await readSchemaFile(folder({ 'svc/database/schema.json': text }), databases);
    assert.deepEqual([...read.keys()], databases, `${page}:${line}`);
  }
});

/** Complete plugins, not those assembled from several files. */
const plugins = blocks.filter(({ text }) => /^export default definePlugin\(/m.test(text) && !/ from '\.\//.test(text));

test('plugins can be applied, and register what they should', async () => {
  assert.ok(plugins.length >= 5);
  for (const block of plugins) {
    const at = `${block.page}:${block.line}`;
    const plugin = await importDocsPlugin(block);
    const { registers, taps } = applyPlugin(new Kernel(), plugin, at);
    assert.ok(Object.keys({ ...registers, ...taps }).length > 0, `${at} does nothing`);
  }
});

test('hooks.md lists exactly the hooks', () => {
  const page = readFileSync(join(root, 'docs', 'reference', 'hooks.md'), 'utf8');
  const written = [...page.matchAll(/^\| `([\w:]+)` \|/gm)].map((match) => match[1]);
  assert.deepEqual(written, Object.keys(new Kernel().hooks));
});
