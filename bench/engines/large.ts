import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { prepareMigrators } from '../../test/kit/migrators.ts';
import { machineFacts } from '../machine.ts';
import { saveResult } from '../report.ts';
import { table } from '../table.ts';
import { ENGINES } from './engines.ts';
import { backfill } from './load.ts';

/*
 * A default for a million rows, fewer on DynamoDB Local: `npm run bench -- large [--rows=1000000] [--quick] [engine…]`. The
 * migrator is killed at a third and another one resumes; the memory of both is sampled. Only a complete run writes
 * results/large.md.
 */

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { rows: { type: 'string' }, quick: { type: 'boolean' } },
});
const MILLION = 1_000_000;
const QUICK_ROWS = 30_000;
/** DynamoDB Local writes some 1,300 items a second. */
const MAX_ROWS: Readonly<Record<string, number>> = { dynamodb: 60_000 };
const SAMPLE_INTERVAL_MS = 250;

interface RunResult {
  readonly ms: number;
  /** The first and the last reported number of completed rows, and the number of reports. */
  readonly first: number;
  readonly last: number;
  readonly reports: number;
  /** Peak resident memory in each third of the run, in MB. */
  readonly memory: readonly number[];
}

const kilobytes = /^VmRSS:\s+(\d+)/m;

/** Runs one migrator and kills it once it has reported `killAt` rows. */
async function run(
  start: Awaited<ReturnType<typeof prepareMigrators>>,
  url: string,
  killAt = Infinity,
): Promise<RunResult> {
  const startedAt = performance.now();
  const { child, ended } = start(url);
  const done: number[] = [];
  const memory: number[] = [];
  const sampler = setInterval(() => {
    try {
      const [, size] = kilobytes.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
      if (size !== undefined) memory.push(Number(size) / 1024);
    } catch {
      // The process has ended.
    }
  }, SAMPLE_INTERVAL_MS);
  child.stdout?.on('data', (chunk) => {
    for (const [, rows] of String(chunk).matchAll(/done (\d+)/g)) done.push(Number(rows));
    if ((done.at(-1) ?? 0) >= killAt) child.kill('SIGKILL');
  });
  const { code, err } = await ended;
  clearInterval(sampler);
  if (code !== 0 && killAt === Infinity) throw new Error(err);
  const third = Math.ceil(memory.length / 3);
  return {
    ms: performance.now() - startedAt,
    first: done[0] ?? 0,
    last: done.at(-1) ?? 0,
    reports: done.length,
    memory: [0, 1, 2].map((part) => Math.round(Math.max(...memory.slice(part * third, (part + 1) * third), 0))),
  };
}

/** The allowed growth from the second to the last third, as the first is a process that starts. */
const MAX_GROWTH = 1.25;

function assertResult(name: string, runs: readonly RunResult[], left: number): void {
  if (left > 0) throw new Error(`${name}: ${count(left)} rows were not filled`);
  for (const { memory } of runs) {
    const [, second = 0, last = 0] = memory;
    if (last > MAX_GROWTH * second) throw new Error(`${name}: memory grew: ${memory.join(', ')} MB`);
  }
}

const count = (number: number): string => number.toLocaleString('en');
const results: string[][] = [];
for (const name of positionals.length > 0 ? positionals : Object.keys(ENGINES)) {
  const engine = await ENGINES[name]?.();
  if (!engine) throw new Error(`unknown engine ${name}: choose from ${Object.keys(ENGINES).join(', ')}`);
  const rows = Number(flags.rows ?? (flags.quick ? QUICK_ROWS : (MAX_ROWS[name] ?? MILLION)));
  const database = await engine.fresh();
  const bare = await database.bare();
  try {
    console.error(`${name}: writing ${count(rows)} rows`);
    await bare.load(rows);
    const start = await prepareMigrators(name, [backfill]);
    console.error(`${name}: filling them, until killed at a third`);
    const killed = await run(start, database.url, rows / 3);
    console.error(`${name}: killed at ${count(killed.last)}; resuming`);
    const rest = await run(start, database.url);
    const left = await bare.backfill();
    const line = [
      `${name}: ${engine.server}`,
      `${count(killed.last)} of ${count(rows)}`,
      count(rest.first),
      `${killed.reports + rest.reports}`,
      [killed, rest].map(({ memory }) => `${memory.join(', ')} MB`).join('; '),
      `${count(Math.round((killed.last / killed.ms) * 1000))}/s; ${count(Math.round(((rest.last - killed.last) / rest.ms) * 1000))}/s`,
      count(left),
    ];
    assertResult(name, [killed, rest], left);
    results.push(line);
    console.error(line.join(' | '));
  } finally {
    await bare.close();
    await database.drop();
    await engine.close();
  }
}
const head = [
  '',
  'killed at',
  'first report after resuming',
  'reports',
  'memory, by thirds of the run',
  'rows',
  'not filled',
];
const text = [
  '# Measured with `npm run bench -- large`',
  '',
  'A default for that many rows. The migrator is killed at a third, and another process resumes.',
  '',
  ...(await machineFacts([])).map((fact) => `- ${fact}`),
  '',
  table(head, results),
].join('\n');
console.log(text);
if (positionals.length === 0 && Object.keys(flags).length === 0) await saveResult('large.md', text);
