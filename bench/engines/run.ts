import { parseArgs } from 'node:util';
import { migrate } from '../../core/migration/migrate.ts';
import { definedInCode } from '../../test/kit/migrations.ts';
import { connectTarget } from '../../test/kit/target.ts';
import { machineFacts } from '../machine.ts';
import { type Race, race, ratios, type Spread, spread } from '../race.ts';
import { saveResult } from '../report.ts';
import { table } from '../table.ts';
import type { Bare, BenchDatabase, BenchEngine } from './contender.ts';
import { ENGINES } from './engines.ts';
import { backfill, createMigrations } from './load.ts';

/*
 * The overhead of svc within one process, compared with the bare driver doing the same work. Connecting is not measured.
 */

const SVC = 'svc';
const BARE = 'bare driver';
const MAX_RATIO = 1.15;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean' },
    only: { type: 'string' },
    rounds: { type: 'string' },
    rows: { type: 'string' },
    count: { type: 'string' },
  },
});
const rounds = Number(flags.rounds ?? (flags.quick ? 2 : 5));
/** DynamoDB Local writes some 1,300 items a second. */
const MAX_ROWS: Readonly<Record<string, number>> = { dynamodb: 10_000 };
const rowsOn = (engine: string): number => Number(flags.rows ?? (flags.quick ? 10_000 : (MAX_ROWS[engine] ?? 100_000)));
const COUNT = Number(flags.count ?? 200);

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** One round of a contender, on a new database. */
function lap(engine: BenchEngine, run: (database: BenchDatabase, bare: Bare) => Promise<number>) {
  return async (): Promise<number> => {
    const database = await engine.fresh();
    try {
      const bare = await database.bare();
      try {
        return await run(database, bare);
      } finally {
        await bare.close();
      }
    } finally {
      await database.drop();
    }
  };
}

function runSvc(engine: BenchEngine, defined: Parameters<typeof migrate>[1]) {
  return async ({ url }: BenchDatabase): Promise<number> => {
    const target = await connectTarget(engine.dialect, url);
    try {
      return await timed(() => migrate(target, defined));
    } finally {
      await target.connection.close();
    }
  };
}

async function measureMigrations(engine: BenchEngine): Promise<Race> {
  const migrations = createMigrations(COUNT);
  return race(
    `${COUNT} migrations on ${engine.dialect.name}`,
    [
      { name: SVC, lap: lap(engine, runSvc(engine, migrations.map(definedInCode))) },
      { name: BARE, lap: lap(engine, (_, bare) => timed(() => bare.migrate(migrations))) },
    ],
    rounds,
  );
}

async function measureBackfill(engine: BenchEngine): Promise<Race> {
  const rows = rowsOn(engine.dialect.name);
  return race(
    `${rows} rows on ${engine.dialect.name}`,
    [
      {
        name: SVC,
        lap: lap(engine, async (database, bare) => {
          await bare.load(rows);
          return runSvc(engine, [definedInCode(backfill)])(database);
        }),
      },
      {
        name: BARE,
        lap: lap(engine, async (_, bare) => {
          await bare.load(rows);
          return timed(() => bare.backfill());
        }),
      },
    ],
    rounds,
  );
}

const spreadText = ({ median, min, max }: Spread, digits: number): string =>
  `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`;

function line(name: string, result: Race, format: (ms: number) => string, aim?: number): string[] {
  for (const [one, why] of result.failures) return [name, `${one} failed: ${why.split('\n')[0]}`, '', '', ''];
  const [svc, other] = [SVC, BARE].map((one) => spread(result.times.get(one) ?? []));
  const ratio = ratios(result, SVC, BARE);
  if (!svc || !other || !ratio) return [name, 'not measured', '', '', ''];
  const reached = aim === undefined ? '' : ratio.median <= aim ? 'reached' : 'MISSED';
  return [name, format(svc.median), format(other.median), spreadText(ratio, 2), reached];
}

const perSecond =
  (rows: number) =>
  (ms: number): string =>
    `${Math.round((rows / ms) * 1000).toLocaleString('en')}/s`;
const migrationLines: string[][] = [];
const backfillLines: string[][] = [];
const named = [...positionals, ...(flags.only?.split(',') ?? [])];
for (const name of named.length > 0 ? named : Object.keys(ENGINES)) {
  const engine = await ENGINES[name]?.();
  if (!engine) throw new Error(`unknown engine ${name}`);
  try {
    migrationLines.push(
      line(`${name}: ${engine.server}`, await measureMigrations(engine), (ms) => `${ms.toFixed(0)} ms`, MAX_RATIO),
    );
    const rows = rowsOn(name);
    const title = `${name}: ${rows.toLocaleString('en')} rows`;
    if (rows > 0) backfillLines.push(line(title, await measureBackfill(engine), perSecond(rows)));
  } finally {
    await engine.close();
  }
}
const text = [
  '# Measured with `npm run bench -- engines`',
  '',
  `${rounds} rounds; ratios round by round, median (minimum to maximum).`,
  '',
  ...(await machineFacts([])).map((fact) => `- ${fact}`),
  '',
  `## ${COUNT} migrations of one table each`,
  '',
  'The bare driver sends the same statements and the same history row before and after each, combined into one request where possible.',
  '',
  table(['', SVC, BARE, `times ${BARE}`, `at most ${MAX_RATIO}`], migrationLines),
  '',
  '## A default for the rows of a table',
  '',
  table(['', SVC, BARE, `times ${BARE}`, ''], backfillLines),
].join('\n');
console.log(text);
if (named.length === 0 && Object.keys(flags).length === 0) await saveResult('engines.md', text);
