import * as assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from './kit/test.ts';

/** Lowest first. A file belongs to the first floor that matches; a file that belongs to none fails. */
const FLOORS: readonly [name: string, files: RegExp][] = [
  ['ground', /^core\/(errors|json|nearest|on-abort|quoted|remedies|url|version)\.ts$/],
  ['schema', /^core\/schema\//],
  [
    'contracts',
    /^core\/(records|dialect|migration\/(migration|history)|approval\/(channel|display|request|review)|agent\/model)\.ts$/,
  ],
  ['kernel', /^core\/(kernel|registry|plugin)\.ts$/],
  ['engine', /^core\/(migration|database|approval|agent)\//],
  ['plugins and config', /^(plugins|config)\//],
  ['cli', /^cli\//],
];
const KERNEL = FLOORS.findIndex(([name]) => name === 'kernel');

/** What core may import beside Node: a driver or a transport is the business of a plugin. */
const CORE_PACKAGES = ['tapable', 'uuid', 'ajv', '@opentelemetry/api'];
const DIALECTS = /\b(postgres(ql)?|pglite|mysql|mariadb|mongodb|dynamodb|cassandra|sqlite)\b/i;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const IMPORTS = [
  /^\s*(?:import|export)\b[^'";]*?\bfrom\s*'([^']+)'/gm,
  /^\s*import\s*'([^']+)'/gm,
  /\bimport\(\s*'([^']+)'\s*\)/g,
];

interface Source {
  readonly file: string;
  readonly text: string;
  /** Files of ours, from the root. */
  readonly ours: readonly string[];
  readonly packages: readonly string[];
}

const sources: Source[] = ['core', 'plugins', 'config', 'cli'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => read(join(folder, name).replaceAll('\\', '/'))),
);

function read(file: string): Source {
  const text = readFileSync(join(root, file), 'utf8');
  const specifiers = IMPORTS.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''));
  const path = (specifier: string) => relative(root, join(root, dirname(file), specifier)).replaceAll('\\', '/');
  return {
    file,
    text,
    ours: specifiers.filter((one) => one.startsWith('.') && one.endsWith('.ts')).map(path),
    packages: specifiers.filter((one) => !one.startsWith('.') && !one.startsWith('node:')),
  };
}

function floor(file: string): number {
  return FLOORS.findIndex(([, files]) => files.test(file));
}

function each(check: (source: Source) => string[]): void {
  assert.deepEqual(sources.flatMap(check), []);
}

test('there is something to check, and imports are found', () => {
  assert.ok(sources.length > 20);
  assert.ok(sources.some(({ file, ours }) => file === 'core/kernel.ts' && ours.includes('core/dialect.ts')));
});

test('every file stands on a floor', () => {
  each(({ file }) => (floor(file) < 0 ? [file] : []));
});

test('imports go down only', () => {
  each(({ file, ours }) => ours.filter((one) => floor(one) > floor(file)).map((one) => `${file} -> ${one}`));
});

test('config and plugins do not import each other, but for the list of built-in plugins', () => {
  each(({ file, ours }) =>
    ours
      .filter((one) => /^(plugins|config)\//.test(one) && /^(plugins|config)\//.test(file))
      .filter((one) => one.split('/')[0] !== file.split('/')[0] && file !== 'config/builtin.ts')
      .map((one) => `${file} -> ${one}`),
  );
});

test('plugins import contracts and the kernel, never the engine', () => {
  each(({ file, ours }) =>
    file.startsWith('plugins/')
      ? ours.filter((one) => one.startsWith('core/') && floor(one) > KERNEL).map((one) => `${file} -> ${one}`)
      : [],
  );
});

test('a dialect imports no other dialect, but for MariaDB, which is a variant of MySQL', () => {
  const own = (file: string) => /^plugins\/dialects\/[^/]+\//.exec(file)?.[0];
  each(({ file, ours }) =>
    ours
      .filter((one) => own(one) !== undefined && file.startsWith('plugins/') && own(one) !== own(file))
      .filter((one) => !(file.startsWith('plugins/dialects/mariadb/') && one.startsWith('plugins/dialects/mysql/'))),
  );
});

test('what SQL dialects share names none of them', () => {
  each(({ file, text }) => {
    const lines = file.startsWith('plugins/sql/') ? text.split('\n') : [];
    return lines.flatMap((line, index) => (DIALECTS.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : []));
  });
});

test('no file asks which dialect it is', () => {
  each(({ file, text }) => (/dialect(\.name)?\s*[!=]==?\s*['"]/.test(text) ? [file] : []));
});

test('core imports no driver', () => {
  each(({ file, packages }) =>
    file.startsWith('core/')
      ? packages.filter((name) => !CORE_PACKAGES.includes(name)).map((name) => `${file} -> ${name}`)
      : [],
  );
});
