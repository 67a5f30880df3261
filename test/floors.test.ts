import * as assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from './kit/test.ts';

/** Lowest floor first. A file belongs to the first floor that matches; every file must have one. */
const FLOORS: readonly [name: string, files: RegExp][] = [
  [
    'ground',
    /^core\/(error-codes|errors|hook|json|match-text|merge-sorted|nearest|on-abort|process-wide|read-body|recent|registry|url|validate-shape|widened|version)\.ts$/,
  ],
  ['display', /^core\/display\//],
  ['schema', /^core\/schema\//],
  ['contracts', /^core\/(records|merged-page|dialect|blocking-session)\.ts$/],
  ['tool', /^core\/tool\//],
  ['migration', /^core\/migration\//],
  ['lint', /^core\/lint\//],
  ['database', /^core\/database\//],
  ['approval', /^core\/approval\//],
  ['agent', /^core\/agent\//],
  ['kernel', /^core\/(kernel|plugin)\.ts$/],
  ['plugins and config', /^(plugins|config)\//],
  ['cli', /^cli\//],
];

/** The core modules that plugins may import: contracts and rules, never an engine. */
const FOR_PLUGINS =
  /^core\/([a-z-]+\.ts$|schema\/|tool\/|approval\/(channel|parse-decision|presses|request|seal\/(seal|sink))\.ts$|display\/(json|limit|role-text|text)\.ts$|agent\/model\.ts$|lint\/(rule|sql-text|existing-tables|design-rules)\.ts$|migration\/(migration|history-table)\.ts$)/;

/** The packages that core may import in addition to Node; drivers and transports belong in plugins. */
const CORE_PACKAGES = ['tapable', 'uuid', 'ajv', 'ajv/dist/2020.js', '@opentelemetry/api'];
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
  /** The imported source files, relative to the root. */
  readonly internal: readonly string[];
  readonly packages: readonly string[];
}

const sources: Source[] = ['core', 'plugins', 'config', 'cli'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => read(join(folder, name).replaceAll('\\', '/'))),
);

function read(file: string): Source {
  const text = readFileSync(join(root, file), 'utf8');
  const specifiers = IMPORTS.flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''));
  const path = (specifier: string) => relative(root, join(root, dirname(file), specifier)).replaceAll('\\', '/');
  return {
    file,
    text,
    internal: specifiers.filter((one) => one.startsWith('.') && /\.tsx?$/.test(one)).map(path),
    packages: specifiers.filter((one) => !one.startsWith('.') && !one.startsWith('node:')),
  };
}

function floor(file: string): number {
  return FLOORS.findIndex(([, files]) => files.test(file));
}

function each(check: (source: Source) => string[]): void {
  assert.deepEqual(sources.flatMap(check), []);
}

test('source files and their imports are found', () => {
  assert.ok(sources.length > 20);
  assert.ok(sources.some(({ file, internal }) => file === 'core/kernel.ts' && internal.includes('core/dialect.ts')));
});

test('every file is on a floor', () => {
  each(({ file }) => (floor(file) < 0 ? [file] : []));
});

test('files only import lower floors', () => {
  each(({ file, internal }) => internal.filter((one) => floor(one) > floor(file)).map((one) => `${file} -> ${one}`));
});

test('config and plugins do not import each other, except for the list of built-in plugins', () => {
  each(({ file, internal }) =>
    internal
      .filter((one) => /^(plugins|config)\//.test(one) && /^(plugins|config)\//.test(file))
      .filter((one) => one.split('/')[0] !== file.split('/')[0] && file !== 'config/load/builtin.ts')
      .map((one) => `${file} -> ${one}`),
  );
});

test('plugins import contracts and the kernel, but no engine', () => {
  each(({ file, internal }) =>
    file.startsWith('plugins/')
      ? internal.filter((one) => one.startsWith('core/') && !FOR_PLUGINS.test(one)).map((one) => `${file} -> ${one}`)
      : [],
  );
});

test('there are no circular imports', () => {
  const imports = new Map(sources.map(({ file, internal }) => [file, internal]));
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) circles.push([...path.slice(at), file].join(' -> '));
    if (at >= 0 || done.has(file)) return;
    for (const next of imports.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const { file } of sources) visit(file, []);
  assert.deepEqual(circles, []);
});

test('a dialect imports no other dialect, except MariaDB, a variant of MySQL', () => {
  const own = (file: string) => /^plugins\/dialects\/(?!shared\/|sql\/)[^/]+\//.exec(file)?.[0];
  each(({ file, internal }) =>
    internal
      .filter((one) => own(one) !== undefined && file.startsWith('plugins/') && own(one) !== own(file))
      .filter((one) => !(file.startsWith('plugins/dialects/mariadb/') && one.startsWith('plugins/dialects/mysql/'))),
  );
});

test("an adapter imports no package: the framework is the caller's", () => {
  each(({ file, packages }) =>
    file.startsWith('plugins/frameworks/') ? packages.map((name) => `${file} -> ${name}`) : [],
  );
});

test('the code that SQL dialects share names none of them', () => {
  each(({ file, text }) => {
    const lines = file.startsWith('plugins/dialects/sql/') ? text.split('\n') : [];
    return lines.flatMap((line, index) => (DIALECTS.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : []));
  });
});

test('the compile folder of a dialect is pure: nothing in it waits for a server', () => {
  each(({ file, text }) =>
    /^plugins\/dialects\/[^/]+\/compile\//.test(file) && /\basync\b|\bPromise</.test(text) ? [file] : [],
  );
});

test('no file checks the name of its dialect', () => {
  each(({ file, text }) => (/dialect(\.name)?\s*[!=]==?\s*['"]/.test(text) ? [file] : []));
});

test('core imports no driver', () => {
  each(({ file, packages }) =>
    file.startsWith('core/')
      ? packages.filter((name) => !CORE_PACKAGES.includes(name)).map((name) => `${file} -> ${name}`)
      : [],
  );
});
