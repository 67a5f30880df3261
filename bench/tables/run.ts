import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { run } from '../command.ts';
import { CLI } from '../contenders.ts';
import { dropDatabases, freshDatabase, value } from '../database.ts';
import { type Engine, engineOf } from '../engine.ts';
import { machineFacts } from '../machine.ts';
import { spread } from '../race.ts';
import { saveResult } from '../report.ts';
import { table } from '../table.ts';
import { catalogQuery, showStatements, statementsOf } from './workload.ts';

/*
 * A database of 2,000 tables of 20 fields: `npm run bench -- tables [--tables=2000] [--rounds=5] [--quick] [engine…]`. Only a
 * complete run writes results/tables.md.
 */

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tables: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean' },
    'no-growth': { type: 'boolean' },
    'inherit-env': { type: 'boolean' },
  },
});
const COUNT = Number(flags.tables ?? (flags.quick ? 100 : 2_000));
const ROUNDS = Number(flags.rounds ?? (flags.quick ? 1 : 5));
const NAMES = ['postgresql', 'mysql', 'mariadb'] as const;
const TIMEOUT_MS = 900_000;
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Of one process: its time from start to end, its processor time, and its greatest memory. */
interface Usage {
  readonly ms: number;
  readonly cpuMs: number;
  readonly kilobytes: number;
}

const MEASURES = [
  ['elapsed, s', 'ms', 1_000, 2],
  ['processor, s', 'cpuMs', 1_000, 2],
  ['peak memory, MB', 'kilobytes', 1_024, 0],
] as const;

async function measured(folder: string, args: readonly string[]) {
  const file = join(folder, 'usage.json');
  const { ms, output } = await run({
    args: ['--require', here('usage.cjs'), ...args],
    cwd: folder,
    env: { SVC_BENCH_USAGE: file },
    timeoutMs: TIMEOUT_MS,
  });
  return { usage: { ms, ...JSON.parse(await readFile(file, 'utf8')) } as Usage, output };
}

const SCHEMA = 'svc/database/schema.json';

/** Measures an engine; returns the rows of its table. */
async function measure(engine: Engine, folder: string): Promise<readonly (readonly string[])[]> {
  const source = await freshDatabase(engine, 'svc_bench_tables');
  const project = join(folder, 'project');
  const unmigrated = join(folder, 'unmigrated');
  const svc = async (root: string, url: string, ...command: readonly string[]) => {
    await mkdir(root, { recursive: true });
    const databases = { main: { dialect: engine.name, url: { dev: url } } };
    await writeFile(join(root, 'svc.config.json'), JSON.stringify({ product: 'bench', env: 'dev', databases }));
    return measured(root, [CLI, 'db', ...command]);
  };
  const bare = async (url: string, texts: readonly string[]) => {
    await writeFile(join(folder, 'texts.json'), JSON.stringify(texts));
    const { usage } = await measured(folder, [here('bare.mjs'), engine.name, url, join(folder, 'texts.json')]);
    return usage;
  };
  const statements = statementsOf(engine.name, COUNT);
  const catalog = await catalogQuery(engine.name);
  await bare(source, statements);

  const contenders: Readonly<Record<string, () => Promise<Usage>>> = {
    [CATALOG]: () => bare(source, [catalog]),
    ...(engine.name !== 'postgresql' && { [SHOWN]: () => bare(source, [catalog, ...showStatements(COUNT)]) }),
    async pull() {
      await rm(join(project, 'svc'), { recursive: true, force: true });
      const { usage } = await svc(project, source, 'schema', 'pull');
      const [main] = JSON.parse(await readFile(join(project, SCHEMA), 'utf8')) as { readonly tables: object }[];
      assertCount('pull', Object.keys(main?.tables ?? {}).length);
      return usage;
    },
    async 'generate, nothing changed'() {
      const { usage, output } = await svc(project, source, 'schema', 'generate');
      if (!output.startsWith('Nothing to generate')) throw new Error(`generate: ${output.slice(0, 200)}`);
      return usage;
    },
    async 'generate, all tables new'() {
      await rm(join(unmigrated, 'svc'), { recursive: true, force: true });
      await mkdir(join(unmigrated, 'svc/database'), { recursive: true });
      await cp(join(project, SCHEMA), join(unmigrated, SCHEMA));
      return (await svc(unmigrated, source, 'schema', 'generate')).usage;
    },
    [STATEMENTS]: async () => bare(await freshDatabase(engine, 'svc_bench_tables_made'), statements),
    async migrate() {
      const url = await freshDatabase(engine, 'svc_bench_tables_made');
      const { usage } = await svc(project, url, 'migrate');
      const made = `SELECT count(*) FROM information_schema.tables WHERE table_schema = ${engine.currentSchema} AND table_name LIKE 't#______' ESCAPE '#'`;
      assertCount('migrate', Number(await value(engine, url, made)));
      return usage;
    },
  };
  const found = new Map<string, Usage[]>(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 1; round <= ROUNDS; round++) {
    for (const [name, lap] of Object.entries(contenders)) {
      const usage = await lap();
      found.get(name)?.push(usage);
      const figures = MEASURES.map(([unit, key, per, digits]) => `${unit} ${(usage[key] / per).toFixed(digits)}`);
      console.error(`${engine.title}, round ${round} of ${ROUNDS}, ${name}: ${figures.join(', ')}`);
    }
  }
  return PAIRS.flatMap(([name, than]) => {
    const [ours, theirs] = [found.get(name), found.get(than)];
    if (!ours || !theirs) return [];
    const cells = MEASURES.flatMap(([, key, per, digits]) => {
      const [own, other] = [ours, theirs].map((usages) => spread(usages.map((usage) => usage[key])).median / per);
      const ratio = spread(ours.map((usage, round) => usage[key] / (theirs[round]?.[key] ?? Number.NaN)));
      return [`${own?.toFixed(digits)} : ${other?.toFixed(digits)}`, ratio.median.toFixed(2)];
    });
    return [[engine.title, `\`${name.replace(',', '`,')}${name.includes(',') ? '' : '`'}`, than, ...cells]];
  });
}

const CATALOG = 'the catalog query';
const SHOWN = 'that query and SHOW CREATE TABLE of all';
const STATEMENTS = 'the statements';
/** What is compared with what. */
const PAIRS = [
  ['pull', CATALOG],
  ['pull', SHOWN],
  ['generate, nothing changed', CATALOG],
  ['generate, all tables new', CATALOG],
  ['migrate', STATEMENTS],
] as const;

function assertCount(what: string, count: number): void {
  if (count !== COUNT) throw new Error(`${what}: ${count} tables of ${COUNT}`);
}

const names = positionals.length > 0 ? NAMES.filter((name) => positionals.includes(name)) : NAMES;
const engines = await Promise.all(names.map(engineOf));
const folder = await mkdtemp(join(tmpdir(), 'svc-bench-tables-'));
const rows: (readonly string[])[] = [];
try {
  for (const engine of engines) {
    await mkdir(join(folder, engine.name));
    rows.push(...(await measure(engine, join(folder, engine.name))));
  }
} catch (error) {
  // A session of a command that failed may prevent the drop, whose error would hide this one.
  console.error(error);
  throw error;
} finally {
  await rm(folder, { recursive: true, force: true });
  await dropDatabases();
}
const text = [
  '# Measured with `npm run bench -- tables`',
  '',
  `A database of ${COUNT.toLocaleString('en')} tables of 20 fields, with a unique key, an index, a check and a foreign key each. Each command, from the start`,
  `of its process to its end, compared with a process that sends SQL with the bare driver and does nothing with the answer; the`,
  `median of ${ROUNDS} ${ROUNDS === 1 ? 'round' : 'rounds'}, and the median of the ratios within each round. The server has its processor time and memory of its own.`,
  '',
  ...(await machineFacts(engines)).map((fact) => `- ${fact}`),
  '',
  table(['', 'command', 'compared with', ...MEASURES.flatMap(([unit]) => [unit, 'times'])], rows),
].join('\n');
console.log(text);
const isWhole = positionals.length === 0 && flags.quick !== true && flags.tables === undefined;
if (isWhole) await saveResult('tables.md', text);
