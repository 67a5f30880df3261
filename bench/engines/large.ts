import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { migratorsOf } from '../../test/kit/migrators.ts';
import { keep } from '../report.ts';
import { table } from '../table.ts';
import { ENGINES } from './engines.ts';
import { backfill } from './load.ts';

/*
 * A default for a million rows, fewer on DynamoDB Local: `npm run bench -- large [--rows=1000000] [engine…]`. The migrator is killed at a third,
 * the next one goes on from there; what both held in memory is read while they work. Only all of it writes
 * results/large.md.
 */

const { values: flags, positionals } = parseArgs({ allowPositionals: true, options: { rows: { type: 'string' } } });
const MILLION = 1_000_000;
/** DynamoDB Local writes some 1,300 items a second. */
const MOST: Readonly<Record<string, number>> = { dynamodb: 150_000 };
const LOOK_MS = 250;

interface Ran {
  readonly ms: number;
  /** What it had told as done, first and last, of how many tellings. */
  readonly first: number;
  readonly last: number;
  readonly told: number;
  /** The most that it held in each third of its time, in MB. */
  readonly held: readonly number[];
}

const kilobytes = /^VmRSS:\s+(\d+)/m;

/** One migrator, which is killed once it has told so many rows. */
async function run(start: Awaited<ReturnType<typeof migratorsOf>>, url: string, killAt = Infinity): Promise<Ran> {
  const begun = performance.now();
  const { child, ended } = start(url);
  const done: number[] = [];
  const held: number[] = [];
  const look = setInterval(() => {
    try {
      const [, size] = kilobytes.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
      if (size !== undefined) held.push(Number(size) / 1024);
    } catch {
      // It has ended.
    }
  }, LOOK_MS);
  child.stdout?.on('data', (chunk) => {
    for (const [, told] of String(chunk).matchAll(/done (\d+)/g)) done.push(Number(told));
    if ((done.at(-1) ?? 0) >= killAt) child.kill('SIGKILL');
  });
  const { code, err } = await ended;
  clearInterval(look);
  if (code !== 0 && killAt === Infinity) throw new Error(err);
  const third = Math.ceil(held.length / 3);
  return {
    ms: performance.now() - begun,
    first: done[0] ?? 0,
    last: done.at(-1) ?? 0,
    told: done.length,
    held: [0, 1, 2].map((part) => Math.round(Math.max(...held.slice(part * third, (part + 1) * third), 0))),
  };
}

/** More by the end than it was in the first third: what it keeps of each row would show. */
const MOST_GROWN = 1.5;

function checked(name: string, runs: readonly Ran[], left: number): void {
  if (left > 0) throw new Error(`${name}: ${count(left)} rows were left over`);
  for (const { held } of runs) {
    const [first = 0, , last = 0] = held;
    if (last > MOST_GROWN * first) throw new Error(`${name}: it held ${held.join(', ')} MB`);
  }
}

const count = (number: number): string => number.toLocaleString('en');
const found: string[][] = [];
for (const name of positionals.length > 0 ? positionals : Object.keys(ENGINES)) {
  const engine = await ENGINES[name]?.();
  if (!engine) throw new Error(`there is no engine ${name}: choose of ${Object.keys(ENGINES).join(', ')}`);
  const rows = Number(flags.rows ?? MOST[name] ?? MILLION);
  const database = await engine.fresh();
  const bare = await database.bare();
  try {
    console.error(`${name}: writes ${count(rows)} rows`);
    await bare.load(rows);
    const start = await migratorsOf(name, [backfill]);
    console.error(`${name}: fills them, and is killed at a third`);
    const killed = await run(start, database.url, rows / 3);
    console.error(`${name}: killed at ${count(killed.last)}; goes on`);
    const rest = await run(start, database.url);
    const left = await bare.backfill();
    const line = [
      `${name}: ${engine.server}`,
      `${count(killed.last)} of ${count(rows)}`,
      count(rest.first),
      `${killed.told + rest.told}`,
      [killed, rest].map(({ held }) => `${held.join(', ')} MB`).join('; '),
      `${count(Math.round((killed.last / killed.ms) * 1000))}/s; ${count(Math.round(((rest.last - killed.last) / rest.ms) * 1000))}/s`,
      count(left),
    ];
    checked(name, [killed, rest], left);
    found.push(line);
    console.error(line.join(' | '));
  } finally {
    await bare.close();
    await database.drop();
    await engine.close();
  }
}
const head = ['', 'killed at', 'the next first told', 'times told', 'held, by thirds of its time', 'rows', 'left over'];
const text = [
  '# Measured with `npm run bench -- large`',
  '',
  'A default for as many rows. The migrator is killed at a third; another one goes on. Each a process of its own.',
  '',
  table(head, found),
].join('\n');
console.log(text);
if (positionals.length === 0 && flags.rows === undefined) await keep('large.md', text);
