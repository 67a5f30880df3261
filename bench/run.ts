import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { contendersOf } from './contenders.ts';
import { dropDatabases, serverFacts } from './database.ts';
import { type Engine, enginesOf, postgresql } from './engine.ts';
import { measureCalls, measureGrowth } from './growth.ts';
import { buildSdk, installPeers } from './install.ts';
import { machineFacts } from './machine.ts';
import {
  type Measure,
  measureCold,
  measureGenerate,
  measureNoop,
  measurePending,
  prepare,
  type Setting,
} from './measures.ts';
import { report } from './report.ts';

/** Ends the process with a word for the person where the server does not answer. */
async function needed(engine: Engine): Promise<void> {
  await serverFacts(engine).catch((error: { readonly code?: string; readonly message?: string }) => {
    console.error(
      `No ${engine.title} server answers (${error.message || error.code}). Name one with SVC_TEST_${engine.name.toUpperCase()}_URL.`,
    );
    process.exit(2);
  });
}

const [subject, ...rest] = process.argv.slice(2);
if (subject === 'approvals') {
  await needed(postgresql);
  if (!rest.includes('--no-build')) await buildSdk();
  const { compare } = await import('./approvals/compare.ts');
  await compare(rest.filter((flag) => flag !== '--no-build'));
  process.exit();
}

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    'no-build': { type: 'boolean' },
    'no-growth': { type: 'boolean' },
    only: { type: 'string' },
    engine: { type: 'string' },
    'inherit-env': { type: 'boolean' },
  },
});
const minutes = (count: number): number => performance.now() + count * 60_000;

const engines = await enginesOf(flags.engine?.split(',')).catch((error: Error) => {
  console.error(error.message);
  process.exit(2);
});
for (const engine of engines) await needed(engine);
await installPeers();
if (!flags['no-build']) await buildSdk();

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
async function cleanUp(): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await dropDatabases();
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => cleanUp().finally(() => process.exit(130)));

try {
  const wanted = flags.only?.split(',');
  const settings = engines.map(
    (engine): Setting => ({
      engine,
      folder: join(folder, engine.name),
      count: flags.quick ? 100 : 1000,
      contenders: contendersOf(engine).filter(
        ({ name }) => !wanted || name === 'svc' || wanted.some((one) => name.startsWith(one)),
      ),
      database: (name) => `svc_bench_${process.pid}_${name.replace(/\W+/g, '_')}`,
    }),
  );
  const measures: Measure[] = [];
  for (const setting of settings) {
    await prepare(setting);
    measures.push(await measurePending(setting, flags.quick ? 2 : 7, minutes(6)));
  }
  // Where tools speak to several engines, the rest is measured on the first.
  const [first, ...others] = settings;
  if (!first) throw new Error('no engine is left');
  measures.push(...(await measureCold(first, flags.quick ? 5 : 21, minutes(4))));
  for (const setting of others) measures.push(await measureNoop(setting, flags.quick ? 5 : 21, minutes(2), first));
  measures.push(await measureGenerate(first, flags.quick ? 3 : 11, minutes(2)));
  const whole = !flags['no-growth'] && first.engine === postgresql;
  const calls = whole ? await measureCalls(first) : [];
  const growth = whole
    ? await measureGrowth(first, flags.quick ? [10, 100, 1000] : [100, 1000, 10_000], flags.quick ? 1 : 3, minutes(9))
    : [];
  await report({
    measures,
    growth,
    calls,
    facts: [
      `Processes start with ${flags['inherit-env'] ? 'the inherited' : 'a bare'} environment`,
      ...(await machineFacts(engines)),
    ],
    files: flags.quick || wanted || flags.engine ? undefined : new URL('.', import.meta.url),
  });
} finally {
  await cleanUp();
}
