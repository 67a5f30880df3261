import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { migrate } from '../../core/migration/migrate.ts';
import { connectAdapter } from '../../test/kit/adapter.ts';
import { definedInCode } from '../../test/kit/defined.ts';
import { type Race, race, ratios, type Spread, spread } from '../race.ts';
import { keep } from '../report.ts';
import { table } from '../table.ts';
import type { Bare, BenchDatabase, BenchEngine } from './contender.ts';
import { ENGINES } from './engines.ts';
import { backfill, createMigrations } from './load.ts';

/*
 * What svc adds to an engine's own work, within one process: connecting is done before the clock starts, and whoever is
 * measured against it does the same with the driver alone.
 */

const SVC = 'svc';
const BARE = 'bare driver';
const MOST = 1.15;

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
const rows = Number(flags.rows ?? (flags.quick ? 10_000 : 100_000));
const COUNT = Number(flags.count ?? 200);

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** A round of one of both, on a database of its own. */
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

function ours(engine: BenchEngine, defined: Parameters<typeof migrate>[1]) {
  return async ({ url }: BenchDatabase): Promise<number> => {
    const adapter = await connectAdapter(engine.dialect, url);
    try {
      return await timed(() => migrate(adapter, defined));
    } finally {
      await adapter.connection.close();
    }
  };
}

async function measureMigrations(engine: BenchEngine): Promise<Race> {
  const migrations = createMigrations(COUNT);
  return race(
    `${COUNT} migrations on ${engine.dialect.name}`,
    [
      { name: SVC, lap: lap(engine, ours(engine, migrations.map(definedInCode))) },
      { name: BARE, lap: lap(engine, (_, bare) => timed(() => bare.migrate(migrations))) },
    ],
    rounds,
  );
}

async function measureBackfill(engine: BenchEngine): Promise<Race> {
  return race(
    `${rows} rows on ${engine.dialect.name}`,
    [
      {
        name: SVC,
        lap: lap(engine, async (database, bare) => {
          await bare.load(rows);
          return ours(engine, [definedInCode(backfill)])(database);
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

function line(name: string, result: Race, what: (ms: number) => string, aim?: number): string[] {
  for (const [one, why] of result.failures) return [name, `${one} failed: ${why.split('\n')[0]}`, '', '', ''];
  const [own, other] = [SVC, BARE].map((one) => spread(result.times.get(one) ?? []));
  const ratio = ratios(result, SVC, BARE);
  if (!own || !other || !ratio) return [name, 'not measured', '', '', ''];
  const reached = aim === undefined ? '' : ratio.median <= aim ? 'reached' : 'MISSED';
  return [name, what(own.median), what(other.median), spreadText(ratio, 2), reached];
}

const perSecond = (ms: number): string => `${Math.round((rows / ms) * 1000).toLocaleString('en')}/s`;
const migrating: string[][] = [];
const filling: string[][] = [];
const named = [...positionals, ...(flags.only?.split(',') ?? [])];
for (const name of named.length > 0 ? named : Object.keys(ENGINES)) {
  const engine = await ENGINES[name]?.();
  if (!engine) throw new Error(`there is no engine ${name}`);
  try {
    migrating.push(
      line(`${name}: ${engine.server}`, await measureMigrations(engine), (ms) => `${ms.toFixed(0)} ms`, MOST),
    );
    if (rows > 0) filling.push(line(name, await measureBackfill(engine), perSecond));
  } finally {
    await engine.close();
  }
}
const text = [
  '# Measured with `npm run bench -- engines`',
  '',
  `Node ${process.version}, ${availableParallelism()} cores, ${rounds} rounds; ratios round by round, median (least to most).`,
  '',
  `## ${COUNT} migrations of one table each`,
  '',
  'The driver alone sends the same statements, and the same row of the history before and behind each, in one request where that can be.',
  '',
  table(['', SVC, BARE, `times ${BARE}`, `at most ${MOST}`], migrating),
  '',
  `## A default for ${rows.toLocaleString('en')} rows`,
  '',
  table(['', SVC, BARE, `times ${BARE}`, ''], filling),
].join('\n');
console.log(text);
if (named.length === 0 && Object.keys(flags).length === 0) await keep('engines.md', text);
