import { readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './command.ts';
import { bareOf, CLI, type Contender, svc } from './contenders.ts';
import { databaseUrl, freshDatabase, value } from './database.ts';
import type { Engine } from './engine.ts';
import { type Race, type Runner, race } from './race.ts';
import { workload, writeAll } from './workload.ts';

export interface Setting {
  readonly engine: Engine;
  readonly folder: string;
  readonly count: number;
  readonly contenders: readonly Contender[];
  readonly database: (name: string) => string;
}

/** One race and the baseline of its ratios. */
export interface Measure {
  /** The contenders, if the report should describe how each works. */
  readonly contenders?: readonly Contender[];
  readonly title: string;
  readonly unit: string;
  readonly race: Race;
  readonly aims?: readonly Aim[];
}

/** A target: svc takes at most `atMost` times as long as `than`. */
interface Aim {
  readonly than: string;
  readonly atMost: number;
}

export const NODE = 'node -e 0';
export const node: Runner = { name: NODE, lap: async () => (await run({ args: ['-e', '0'] })).ms };
const kit = join(fileURLToPath(new URL('./peers/', import.meta.url)), 'node_modules', 'drizzle-kit', 'bin.cjs');

export const folderOf = (setting: Setting, { name }: Contender): string => join(setting.folder, setting.database(name));

export async function prepare(setting: Setting): Promise<void> {
  const steps = workload(setting.engine, setting.count);
  for (const contender of setting.contenders)
    await contender.prepare(folderOf(setting, contender), steps, setting.engine);
}

/** Applies everything to an empty database and verifies the result, so that no contender is fast by doing less. */
export async function measurePending(setting: Setting, rounds: number, until: number): Promise<Measure> {
  const { count, contenders, engine } = setting;
  const bare = bareOf(engine, 1).name;
  const runners = contenders.map((contender) => ({ name: contender.name, lap: () => applyAll(setting, contender) }));
  const title = `${count} pending migrations on ${engine.title}`;
  return {
    title,
    unit: bare,
    contenders,
    race: await race(title, runners, rounds, until),
    aims: [
      { than: bare, atMost: 1.15 },
      ...contenders
        .filter(({ name, noop }) => !name.startsWith(svc.name) && name !== bare && noop !== false)
        .map(({ name }) => ({ than: name, atMost: 1 })),
    ],
  };
}

export async function applyAll(setting: Setting, contender: Contender): Promise<number> {
  const { engine } = setting;
  const url = await freshDatabase(engine, setting.database(contender.name));
  const { ms } = await run(command(setting, contender, contender.up, url));
  const countTables = `SELECT count(*) FROM information_schema.tables WHERE table_schema = ${engine.currentSchema} AND table_name LIKE 't#______' ESCAPE '#'`;
  const tables = await value(engine, url, countTables);
  const { recorded } = contender;
  const rows = await value(engine, url, typeof recorded === 'string' ? recorded : recorded(engine));
  if (Number(tables) !== setting.count || Number(rows) !== setting.count) {
    throw new Error(`left ${tables} tables and ${rows} records of ${setting.count}`);
  }
  return ms;
}

export const command = (setting: Setting, contender: Contender, args: readonly string[], url: string) => ({
  ...(contender.program !== undefined && { program: contender.program }),
  args,
  cwd: folderOf(setting, contender),
  env: { DATABASE_URL: contender.asMysql ? url.replace(/^mariadb:/, 'mysql:') : url },
  timeoutMs: 180_000,
});

/** The commands of daily use when everything is applied, which it is after `measurePending`. */
export async function measureCold(setting: Setting, rounds: number, until: number): Promise<readonly Measure[]> {
  const { count } = setting;
  const status = setting.contenders.flatMap((contender) =>
    contender.status ? [{ name: contender.name, lap: lapOf(setting, contender, contender.status) }] : [],
  );
  const version = { name: svc.name, lap: async () => (await run({ args: [CLI, '--version'] })).ms };
  const title = `Status, ${count} applied`;
  await race(`${title}, warm-up`, status, 1);
  const third = (until - performance.now()) / 3;
  const startedAt = performance.now();
  return [
    await measureNoop(setting, rounds, startedAt + third),
    {
      title,
      unit: NODE,
      race: await race(title, [node, ...status], rounds, startedAt + 2 * third),
      aims: [{ than: NODE, atMost: 3 }],
    },
    {
      title: 'svc --version',
      unit: NODE,
      race: await race('svc --version', [node, version], rounds, until),
      aims: [{ than: NODE, atMost: 1.3 }],
    },
  ];
}

/** `reference`: svc on another engine where everything is applied, as the baseline of the target. */
export async function measureNoop(
  setting: Setting,
  rounds: number,
  until: number,
  reference?: Setting,
): Promise<Measure> {
  const { contenders, count, engine } = setting;
  const runners = contenders
    .filter(({ noop }) => noop !== false)
    .map((contender) => ({
      name: contender.noop ? `${contender.name}: connects, counts` : contender.name,
      lap: lapOf(setting, contender, contender.noop || contender.up),
    }));
  const other = reference && { name: `svc on ${reference.engine.title}`, lap: lapOf(reference, svc, svc.up) };
  const all = [node, ...(other ? [other] : []), ...runners];
  const title = `Nothing to do, ${count} applied on ${engine.title}`;
  await race(`${title}, warm-up`, all, 1);
  return {
    title,
    unit: NODE,
    race: await race(title, all, rounds, until),
    aims: [other ? { than: other.name, atMost: 1.05 } : { than: NODE, atMost: 2.2 }],
  };
}

const lapOf = (setting: Setting, contender: Contender, args: readonly string[]) => async (): Promise<number> =>
  (await run(command(setting, contender, args, databaseUrl(setting.engine, setting.database(contender.name))))).ms;

/** The diff of a schema file with `count` unchanged tables, without a database. */
export async function measureGenerate(setting: Setting, rounds: number, until: number): Promise<Measure> {
  const folder = join(setting.folder, 'drizzle-kit');
  await writeAll(folder, [
    [
      'drizzle.config.ts',
      `import { defineConfig } from 'drizzle-kit';\n\nexport default defineConfig({ dialect: 'postgresql', schema: './schema.ts', out: './drizzle' });\n`,
    ],
    [
      'schema.ts',
      [
        `import { integer, pgTable, varchar } from 'drizzle-orm/pg-core';`,
        ...workload(setting.engine, setting.count).map(
          ({ table }) =>
            `export const ${table} = pgTable('${table}', { id: integer().primaryKey().generatedByDefaultAsIdentity(), name: varchar({ length: 255 }).notNull() });`,
        ),
      ].join('\n'),
    ],
  ]);
  await symlink(fileURLToPath(new URL('./peers/node_modules', import.meta.url)), join(folder, 'node_modules'));
  const drizzleKit = { args: [kit, 'generate'], cwd: folder };
  const svcCommand = { args: [CLI, 'db', 'schema', 'generate'], cwd: folderOf(setting, svc) };
  await run(drizzleKit);
  const runners: Runner[] = [
    node,
    { name: svc.name, lap: async () => (await run(svcCommand)).ms },
    { name: 'drizzle-kit', lap: async () => (await run(drizzleKit)).ms },
  ];
  const title = `Schema generate, ${setting.count} unchanged tables`;
  await race(`${title}, warm-up`, runners, 1);
  const result = await race(title, runners, rounds, until);
  const files = (await readdir(join(folderOf(setting, svc), 'svc/database/migrations/main'))).length;
  if (files !== setting.count)
    throw new Error(`generate left ${files} migration files of ${setting.count}, although nothing had changed`);
  return {
    title,
    unit: NODE,
    race: result,
    aims: [{ than: NODE, atMost: 6 }],
  };
}
