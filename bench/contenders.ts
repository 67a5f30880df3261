import { mkdir, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareStatements } from './bare.ts';
import type { Engine } from './engine.ts';
import { svcMigration, svcSchemaFile, type WorkloadMigration, writeAll } from './workload.ts';

/** A tool under measurement: the files it reads and the commands that are timed. */
export interface Contender {
  readonly name: string;
  readonly how: string;
  readonly program?: string;
  prepare(folder: string, steps: readonly WorkloadMigration[], engine: Engine): Promise<void>;
  readonly up: readonly string[];
  /** The command to run when everything is applied; default: `up`. */
  readonly noop?: readonly string[] | false;
  /** The only engine that it supports. */
  readonly only?: Engine['name'];
  /** Needs a `mysql:` URL for MariaDB. */
  readonly asMysql?: true;
  readonly status?: readonly string[];
  /** A query that counts the migrations that the tool has recorded. */
  readonly recorded: string | ((engine: Engine) => string);
}

const benchFolder = fileURLToPath(new URL('.', import.meta.url));
const root = join(benchFolder, '..');
const peers = createRequire(join(benchFolder, 'peers/'));
const { bin } = createRequire(import.meta.url)('../package.json') as { bin: { svc: string } };
export const CLI = join(root, bin.svc);
const script = (name: string, ...args: string[]): readonly string[] => [join(benchFolder, 'peers', name), ...args];
const sqlFiles = (steps: readonly WorkloadMigration[], text: (step: WorkloadMigration) => string, extension: string) =>
  steps.map((step) => [`migrations/${step.tag}${extension}`, text(step)] as const);

const svcWith = (name: string, how: string, more = ''): Contender => ({
  name,
  how,
  prepare: async (folder, steps, engine) => {
    await writeAll(folder, [
      ['package.json', JSON.stringify({ type: 'module', private: true })],
      [
        'svc.config.ts',
        `import { defineConfig } from '@svc/sdk/config';

export default defineConfig({
  product: 'bench',
  env: 'dev',
  databases: { main: { dialect: '${engine.name}', url: { dev: process.env.DATABASE_URL } } },
${more}});
`,
      ],
      ['svc/config.json', JSON.stringify({ product: 'bench', env: 'dev' })],
      ['svc/database/schema.json', JSON.stringify(svcSchemaFile(steps), null, 2)],
      ...steps.map(
        (step) =>
          [
            `svc/database/migrations/main/${step.tag}.json`,
            `${JSON.stringify(svcMigration(step), null, 2)}\n`,
          ] as const,
      ),
    ]);
    await mkdir(join(folder, 'node_modules/@svc'), { recursive: true });
    await symlink(root, join(folder, 'node_modules/@svc/sdk'));
  },
  up: [CLI, 'db', 'migrate'],
  status: [CLI, 'db', 'migrate', 'status'],
  recorded: "SELECT count(*) FROM _svc_migrations WHERE status = 'completed'",
});

export const svc = svcWith(
  'svc',
  'a transaction for each migration and its history row; journaled steps where DDL is not transactional',
);

/** In an environment whose people are asked about plans that destroy data, which these do not. */
const svcAsking = svcWith(
  'svc, with approval',
  'svc, where people approve what destroys data: nothing here does',
  `  environments: { dev: { approval: { role: 'dba' } } },
  approvals: { store: { database: 'main' }, roles: { dba: ['group:dba'] } },
`,
);

/** The driver alone, with `batch` migrations per round trip. */
export const bareOf = ({ short }: Engine, batch: number): Contender => ({
  name: batch === 1 ? `bare ${short}` : `bare ${short}, ${batch} per query`,
  how: `the same statements and history writes, ${batch === 1 ? 'one round trip per migration' : `${batch} migrations per round trip`}`,
  prepare: (folder, steps, engine) =>
    writeAll(folder, [['migrations.json', JSON.stringify(bareStatements(engine, steps))]]),
  up: script('bare.mjs', 'up', String(batch)),
  noop: batch === 1 && script('bare.mjs', 'count'),
  recorded: svc.recorded,
});

/** The folder of drizzle's migrator. */
export const drizzleFiles = (
  { drizzle: { dialect } }: Engine,
  steps: readonly WorkloadMigration[],
): readonly (readonly [name: string, text: string])[] => [
  ...sqlFiles(steps, (step) => step.sql, '.sql'),
  [
    'migrations/meta/_journal.json',
    JSON.stringify({
      version: '7',
      dialect,
      entries: steps.map(({ tag }, idx) => ({
        idx,
        version: '7',
        when: Date.UTC(2026, 0, 1) + idx * 1000,
        tag,
        breakpoints: true,
      })),
    }),
  ],
];

const drizzle: Contender = {
  name: 'drizzle',
  how: 'all in one transaction',
  prepare: (folder, steps, engine) => writeAll(folder, drizzleFiles(engine, steps)),
  up: script('drizzle.mjs', 'up'),
  recorded: ({ drizzle: { table } }) => `SELECT count(*) FROM ${table}`,
};

const others: readonly Contender[] = [
  {
    name: 'knex',
    how: 'a transaction per migration',
    prepare: (folder, steps) =>
      writeAll(
        folder,
        sqlFiles(
          steps,
          ({ sql, table }) =>
            `exports.up = (knex) => knex.raw(${JSON.stringify(sql)});\nexports.down = (knex) => knex.schema.dropTable('${table}');\n`,
          '.cjs',
        ),
      ),
    up: script('knex.mjs', 'up'),
    status: script('knex.mjs', 'status'),
    recorded: 'SELECT count(*) FROM knex_migrations',
  },
  {
    name: 'kysely',
    how: 'all in one transaction where DDL is transactional; the newest version for Node 20',
    prepare: (folder, steps) =>
      writeAll(
        folder,
        sqlFiles(
          steps,
          ({ sql, table }) =>
            `export const up = (db) => db.executeQuery({ sql: ${JSON.stringify(sql)}, parameters: [], query: { kind: 'RawNode' } });\nexport const down = (db) => db.schema.dropTable('${table}').execute();\n`,
          '.mjs',
        ),
      ),
    up: script('kysely.mjs', 'up'),
    status: script('kysely.mjs', 'status'),
    recorded: 'SELECT count(*) FROM kysely_migration',
  },
  {
    name: 'umzug',
    how: 'no transaction around migration and row',
    prepare: (folder, steps) =>
      writeAll(
        folder,
        sqlFiles(steps, (step) => step.sql, '.sql'),
      ),
    up: script('umzug.mjs', 'up'),
    status: script('umzug.mjs', 'status'),
    recorded: 'SELECT count(*) FROM umzug_migrations',
  },
  {
    name: 'typeorm',
    how: 'all in one transaction',
    prepare: (folder, steps) =>
      writeAll(
        folder,
        steps.map(({ sql, table, tag }, index) => {
          const name = `Create${table.replace('_', '')}${Date.UTC(2026, 0, 1) + index}`;
          return [
            `migrations/${tag}.cjs`,
            `exports.${name} = class ${name} {\n  up(runner) { return runner.query(${JSON.stringify(sql)}); }\n  down(runner) { return runner.query('DROP TABLE ${table}'); }\n};\n`,
          ] as const;
        }),
      ),
    up: script('typeorm.mjs', 'up'),
    status: script('typeorm.mjs', 'status'),
    recorded: 'SELECT count(*) FROM migrations',
  },
  {
    name: 'node-pg-migrate',
    only: 'postgresql',
    how: 'all in one transaction',
    prepare: (folder, steps) =>
      writeAll(
        folder,
        steps.map(
          ({ sql, table }, index) =>
            [
              `migrations/${Date.UTC(2026, 0, 1) + index}_create-${table}.cjs`,
              `exports.up = (pgm) => pgm.sql(${JSON.stringify(sql)});\nexports.down = (pgm) => pgm.dropTable('${table}');\n`,
            ] as const,
        ),
      ),
    up: script('node-pg-migrate.mjs', 'up'),
    recorded: 'SELECT count(*) FROM pgmigrations',
  },
  {
    name: 'dbmate',
    how: 'a transaction per migration; a Go program, started without its npm wrapper',
    asMysql: true,
    get program() {
      const { resolveBinary } = peers('dbmate') as { resolveBinary(): string };
      return resolveBinary();
    },
    prepare: (folder, steps) =>
      writeAll(
        folder,
        steps.map(
          ({ sql, table, tag }) =>
            [
              `migrations/${tag.replace('_', '')}.sql`,
              `-- migrate:up\n${sql}\n\n-- migrate:down\nDROP TABLE ${table};\n`,
            ] as const,
        ),
      ),
    up: ['--migrations-dir', 'migrations', '--no-dump-schema', 'migrate'],
    status: ['--migrations-dir', 'migrations', '--no-dump-schema', 'status'],
    recorded: 'SELECT count(*) FROM schema_migrations',
  },
];

/** The contenders on an engine. */
export function contendersOf(engine: Engine): readonly Contender[] {
  const all = [svc, svcAsking, bareOf(engine, 1), bareOf(engine, 50), drizzle, ...others];
  return all.filter(({ only }) => only === undefined || only === engine.name);
}
