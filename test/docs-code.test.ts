import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Hono } from 'hono';
import { assertConfig } from '../config/load/validate.ts';
import { readSchemaFile } from '../config/project/schema-file.ts';
import type { Dialect } from '../core/dialect.ts';
import { Kernel } from '../core/kernel.ts';
import { migrationProblems } from '../core/migration/validate-migration.ts';
import { applyPlugin } from '../core/plugin.ts';
import { describeDifferences } from '../core/schema/diff.ts';
import type { Operation } from '../core/schema/operation.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import {
  type DocsBlock,
  type DocsStubs,
  docsBlocks,
  docsModules,
  EXAMPLES,
  readPage,
  runnableBlock,
} from './kit/docs-blocks.ts';
import { PRELUDE } from './kit/docs-prelude.ts';
import { folder } from './kit/folder.ts';
import { ModelServer } from './kit/model-server.ts';
import { freshFolder } from './kit/pglite.ts';
import { test } from './kit/test.ts';
import { withGate } from './suites/gate-client.ts';
import { runOperations } from './suites/run-operations.ts';

/**
 * The code of the pages: compiled against the built package, all of it by one run of the compiler, and run. What another
 * test runs is listed in RUN_BY; any other block that is not run has its reason in a comment before it.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const blocks = docsBlocks();
const COMPILED = ['ts', 'js'];
const pagesWithCode = new Set(blocks.filter(({ language }) => COMPILED.includes(language)).map(({ page }) => page));

/** Blocks that another file runs. */
const RUN_BY: Readonly<Record<string, (block: DocsBlock) => boolean>> = {
  'readme.test.ts': ({ page, language }) =>
    page === 'README.md' ||
    page.startsWith('docs/tutorials/') ||
    (/adopt-a-database|recover-a-failed-migration/.test(page) && language === 'sh'),
  'approval-docs.test.ts': ({ page, language, annotation }) =>
    (page === 'docs/reference/approvals.md' &&
      (['python', 'go'].includes(language) || annotation === 'receiver.mjs')) ||
    (page === 'docs/how-to/approve-by-webhook.md' && language === 'sh'),
  'frameworks-pages.test.ts': ({ page, language, text }) =>
    /use-(the-ai-sdk|openai-agents|langchain|langgraph|genkit|mastra|claude-agent)\.md$/.test(page) &&
    language === 'ts' &&
    !text.includes('approvalHooks('),
  'frameworks-durable.test.ts': ({ page, language }) => /use-(dbos|temporal)\.md$/.test(page) && language === 'ts',
  'http-api-docs.test.ts': ({ page, language }) => page === 'docs/reference/http-api.md' && language === 'sh',
  'objects.test.ts': ({ page, language }) => page === 'docs/reference/objects.md' && ['sh', 'sql'].includes(language),
  'schema-diff.test.ts': ({ page, language }) => page === 'docs/reference/commands.md' && language === 'sh',
  'cli-approvals.test.ts': ({ page, language, text }) =>
    page === 'docs/reference/approvals.md' && language === 'sh' && text.includes('--review-token'),
};
const isRunElsewhere = (block: DocsBlock) => Object.values(RUN_BY).some((runs) => runs(block));
const at = ({ page, line }: DocsBlock): string => `${page}:${line}`;

/** What blocks import from their folder and no page shows. */
const STUBS: DocsStubs = {
  'dialect.ts': "import type { Dialect } from '@svc/sdk';\nexport declare const abacus: Dialect;",
  'driver.ts':
    "import type { KeyValueDriver } from '@svc/sdk/dialect';\nexport declare function open(url: string): Promise<KeyValueDriver>;",
  'abacus.ts': `import type { EntryRange, KeyCommit } from '@svc/sdk/dialect';
export declare function connect(url: string): Promise<{
  version: string;
  getMany(keys: readonly string[]): Promise<(string | undefined)[]>;
  range(start: string, end: string, options: Pick<EntryRange, 'limit' | 'reverse'>): Promise<string[]>;
  compareAndSet(expected: KeyCommit['expected'], put: KeyCommit['put'], remove: readonly string[]): Promise<boolean>;
  close(): Promise<void>;
}>;
export declare function toSvcError(error: unknown): unknown;`,
  'session.ts': `import type { Result } from '@svc/sdk/dialect';
export declare function openSession(url: string, options: { timeZone: string; timeout: number }): Promise<{
  version: string;
  run(text: string): Promise<{ rows: Result['rows']; affected: number }>;
  end(): Promise<void>;
}>;`,
  'model.ts':
    "export declare const model: import('ai').LanguageModel & { bindTools(tools: object): { invoke(messages: object): object } };\nimport { genkit } from 'genkit';\nexport declare const ai: ReturnType<typeof genkit>;\nexport declare const account: object;",
  'tools.ts': `import type { Svc } from '@svc/sdk';
export declare const gate: ReturnType<Svc['gate']>;
export declare const model: import('ai').LanguageModel;
export declare const refund: import('ai').Tool<{ orderId: string; amount: number }, string>;`,
  'client.ts':
    "import type { BrokerClient } from '@svc/sdk/testing';\nexport declare function openClient(): Promise<BrokerClient>;",
};
/** The same at run time. */
const NEIGHBOURS: DocsStubs = {
  'dialect.ts': 'export const abacus = {};',
  'driver.ts': 'export const open = () => undefined;',
  'session.ts': 'export const openSession = () => undefined;',
  'abacus.ts': 'export const connect = () => undefined;\nexport const toSvcError = () => undefined;',
};

/** Packages that are not installed here; test/frameworks-pages.test.ts and test/frameworks-durable.test.ts run the frameworks. */
const UNTYPED = `declare module '@anthropic-ai/claude-agent-sdk';
declare module '@dbos-inc/dbos-sdk';
declare module '@langchain/core/tools';
declare module '@langchain/langgraph';
declare module '@langchain/langgraph/prebuilt';
declare module '@langchain/langgraph-checkpoint-postgres';
declare module '@mastra/core/agent';
declare module '@mastra/core/mastra';
declare module '@mastra/core/tools';
declare module '@mastra/pg';
declare module '@openai/agents';
declare module '@temporalio/activity';
declare module '@temporalio/client';
declare module '@temporalio/worker';
declare module '@temporalio/workflow';
declare module 'genkit';
declare module 'genkit/tool';
declare module 'langchain';
declare module 'lmdb' {
  export function open<V, K>(options: object): {
    get(key: K): V | undefined;
    getKeys(range: { start: K; end: K }): { map<T>(convert: (key: K) => T): { readonly asArray: T[] } };
    putSync(key: K, value: V): boolean;
    removeSync(key: K): boolean;
    transactionSync<T>(work: () => T): T;
    resetReadTxn(): void;
    readonly flushed: Promise<boolean>;
    close(): Promise<void>;
  };
}`;

function project(): string {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const paths = Object.entries<{ types?: string }>(exports).flatMap(([name, { types }]) =>
    types === undefined ? [] : [[`@svc/sdk${name.slice(1)}`, [join(root, types)]]],
  );
  for (const [name, file] of EXAMPLES) paths.push([name, [file]]);
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  const options = { ...compilerOptions, paths: Object.fromEntries(paths), allowJs: true, noUnusedLocals: false };
  const files = [...pagesWithCode].flatMap((page) =>
    Object.entries({ ...STUBS, ...docsModules(page) }).map(([file, text]) => [`${page}/${file}`, text]),
  );
  const path = folder({
    'tsconfig.json': { compilerOptions: { ...options, declaration: false }, include: ['**/*.ts', '**/*.js'] },
    'prelude.ts': PRELUDE,
    'untyped.d.ts': UNTYPED,
    'package.json': { type: 'module' },
    ...Object.fromEntries(files),
  });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  return path;
}

test('every block is run, or says why not', () => {
  const idle = blocks.filter(
    (block) => ![...COMPILED, 'json'].includes(block.language) && !isRunElsewhere(block) && block.notRun === undefined,
  );
  assert.deepEqual(idle.map(at), []);
  const needless = blocks.filter((block) => block.notRun !== undefined && isRunElsewhere(block));
  assert.deepEqual(needless.map(at), []);
  for (const [file, runs] of Object.entries(RUN_BY)) assert.ok(blocks.some(runs), file);
});

test('a page names the installation of every package that its code imports', () => {
  const missing = blocks
    .filter(({ language }) => COMPILED.includes(language))
    .flatMap((block) =>
      [...block.text.matchAll(/ from '([^.'][^']*)'/g)]
        .map(([, name = '']) => name.replace(/^((?:@[^/]+\/)?[^/]+).*$/, '$1'))
        .filter((name) => !/^(node:|@svc\/sdk($|\/)|svc-example-)/.test(name))
        .filter((name) => !new RegExp(`npm install[^\`\n]*[ /]${name}\\b`).test(readPage(block.page)))
        .map((name) => `${at(block)} ${name}`),
    );
  assert.deepEqual(missing, []);
});

test('TypeScript and JavaScript compile against the public types', async () => {
  assert.ok(existsSync(join(root, 'dist', 'config', 'sdk', 'index.d.ts')), 'npm run build');
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const path = project();
  await promisify(execFile)(process.execPath, [tsc, '-p', path, '--pretty', 'false'], { cwd: path }).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      // docs/reference/hooks.md/line-12.ts(14,3) is docs/reference/hooks.md, line 14.
      const output = `${stdout}${stderr}`.replace(/^(\S+?\.md)\/line-\d+\.[tj]s\((\d+),/gm, '$1: line $2 (column ');
      assert.fail(output);
    },
  );
});

test('JSON is valid, and so are schema files and migrations', async () => {
  for (const { page, line, text } of blocks.filter(({ language }) => language === 'json')) {
    const value: unknown = JSON.parse(text);
    const isMigration = typeof value === 'object' && value !== null && 'up' in value;
    if (isMigration) assert.deepEqual(migrationProblems(value), [], `${page}:${line}`);
    if (!Array.isArray(value)) continue;
    const databases = value.map(({ db }) => db);
    const read = await readSchemaFile(folder({ 'svc/database/schema.json': text }), databases);
    assert.deepEqual([...read.keys()], databases, `${page}:${line}`);
  }
});

/** What the prelude declares, with a request that waits for a decision. */
async function withPrelude(body: () => Promise<void>): Promise<void> {
  await withGate({}, async ({ svc, refund }) => {
    const { request } = await refund();
    const { requestId, executionId } = request;
    const user = { email: 'ada@shop.example', address: '192.0.2.7' };
    const decision = { approved: true, reason: 'Agreed.', modifiedParams: { amount: 15 } };
    const bank = { refund: async (orderId: string, amount: number) => `paid ${amount} for order ${orderId}` };
    const mcp = {
      listTools: async () => ({ tools: [{ name: 'refund', inputSchema: { type: 'object' } }] }),
      callTool: async () => 'paid',
    };
    const services = { app: new Hono(), bank, mcp };
    Object.assign(globalThis, { svc, request, requestId, executionId, ...decision, user, ...services });
    await body();
  });
}

/** The API of the model provider that the pages use. */
async function withModel(body: () => Promise<void>): Promise<void> {
  const server = new ModelServer();
  process.env.OPENAI_BASE_URL = await server.listen();
  process.env.OPENAI_API_KEY = 'sk-test';
  const call = { id: 'call_1', name: 'refund', args: '{"orderId":"1234","amount":20}' };
  server.replies.push({ calls: [call] }, { text: 'Done.' });
  await body().finally(() => server.close());
}

const run = blocks.filter(
  (block) => COMPILED.includes(block.language) && !isRunElsewhere(block) && block.notRun === undefined,
);

const isSuite = ({ text }: DocsBlock) => text.includes("from 'node:test'");

for (const block of run.filter(isSuite)) {
  test(`${at(block)} passes`, async () => {
    const args = ['--import', 'tsx', '--test-reporter=tap', runnableBlock(block, NEIGHBOURS)];
    const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env });
    assert.match(stdout, /^# fail 0$/m);
    assert.doesNotMatch(stdout, /^# pass 0$/m);
  });
}

for (const block of run.filter((one) => !isSuite(one))) {
  test(`${at(block)} runs`, async () => {
    await withPrelude(() =>
      withModel(async () => {
        const { default: exported } = await import(pathToFileURL(runnableBlock(block, NEIGHBOURS)).href);
        if (block.text.includes('defineConfig(')) assertConfig(exported);
        if (!block.text.includes('definePlugin(')) return;
        const { registers, taps } = applyPlugin(new Kernel(), exported, at(block));
        assert.ok(Object.keys({ ...registers, ...taps }).length > 0, 'it does nothing');
      }),
    );
  });
}

test('hooks.md lists exactly the hooks', () => {
  const page = readFileSync(join(root, 'docs', 'reference', 'hooks.md'), 'utf8');
  const written = [...page.matchAll(/^\| `([\w:]+)` \|/gm)].map((match) => match[1]);
  assert.deepEqual(written, Object.keys(new Kernel().hooks));
});

test('the grammar of a page compiles statements of standard SQL, which PostgreSQL runs', async () => {
  const block = blocks.find(({ text }) => text.includes('const grammar: Grammar')) ?? assert.fail('no grammar');
  const { compile } = await import(pathToFileURL(runnableBlock(block, NEIGHBOURS)).href);
  const dialect = { ...postgresql, compile } as Dialect;
  const { url, drop } = await freshFolder();
  const connection = await dialect.connect(url, {});
  try {
    const id = { name: 'id', type: 'integer', primaryKey: true } as const;
    const teams = { collection: 'my "teams"' };
    const operations: readonly Operation[] = [
      {
        type: 'createCollection',
        name: teams.collection,
        fields: [
          id,
          { name: 'title', type: 'string', length: 40, required: true, default: "it's" },
          { name: 'points', type: 'integer', default: -5 },
          { name: 'createdAt', type: 'timestamp', default: 'now' },
          { name: 'ratio', type: 'decimal', precision: 10, scale: 2 },
        ],
      },
      { type: 'createCollection', name: 'owners', fields: [id, { name: 'team', type: 'integer' }] },
      { type: 'addField', ...teams, field: { name: 'code name', type: 'string', length: 9, unique: true } },
      { type: 'modifyField', ...teams, field: 'points', changes: { type: 'bigint', default: 7, unique: true } },
      { type: 'modifyField', ...teams, field: 'code name', changes: { unique: false, length: 20, required: true } },
      { type: 'renameField', ...teams, from: 'points', to: 'score' },
      { type: 'createIndex', ...teams, index: 'by_title', columns: [{ name: 'title', order: 'desc' }], unique: true },
      {
        type: 'addConstraint',
        collection: 'owners',
        constraint: {
          name: 'of_a_team',
          type: 'foreignKey',
          columns: ['team'],
          references: { table: teams.collection, columns: ['id'], onDelete: 'CASCADE' },
        },
      },
      { type: 'renameCollection', ...teams, to: 'groups' },
      { type: 'dropConstraint', collection: 'owners', constraint: 'of_a_team' },
      { type: 'dropIndex', collection: 'groups', index: 'by_title' },
      { type: 'dropField', collection: 'groups', field: 'ratio' },
      { type: 'dropCollection', collection: 'owners' },
      { type: 'raw', dialect: 'abacus', statement: 'INSERT INTO groups (id, "code name") VALUES (7, \'x\')' },
    ];
    // Raw statements need the lock.
    const model = await connection.withLock((epoch) =>
      runOperations(dialect, connection, operations, new Map(), epoch),
    );
    const [row] = await connection.query('SELECT title, score FROM groups');
    assert.deepEqual({ title: row?.title, score: Number(row?.score) }, { title: "it's", score: 7 });
    const differences = describeDifferences(await connection.normalize(model), await connection.introspect());
    // The timestamps of this grammar have another precision than svc's on PostgreSQL.
    assert.deepEqual(
      differences.filter((one) => !/createdAt/.test(one)),
      [],
    );
  } finally {
    await connection.close();
    await drop();
  }
});
