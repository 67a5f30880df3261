import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Contender, contendersOf, svc } from './contenders.ts';
import { dropDatabases } from './database.ts';
import { measureEmbedded } from './embedded.ts';
import { type Engine, postgresql } from './engine.ts';
import { type Growth, measureCalls, measureGrowth } from './growth.ts';
import { installPeers } from './install.ts';
import { machineFacts, peerFacts } from './machine.ts';
import {
  applyAll,
  type Measure,
  measureCold,
  measureGenerate,
  measureNoop,
  measurePending,
  prepare,
  type Setting,
} from './measures.ts';
import { report } from './report.ts';

const minutes = (count: number): number => performance.now() + count * 60_000;

/** Measures migrators as whole processes that take turns on a server of the engine; at most 12 minutes in total. */
export async function measureSql(engine: Engine, args: readonly string[]): Promise<void> {
  const { values: flags } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean' },
      'no-growth': { type: 'boolean' },
      only: { type: 'string' },
      'inherit-env': { type: 'boolean' },
    },
  });
  const { quick = false } = flags;
  const selected = flags.only?.split(',');
  await installPeers();

  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  async function cleanUp(): Promise<void> {
    await rm(folder, { recursive: true, force: true });
    await dropDatabases();
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => cleanUp().finally(() => process.exit(130)));

  const settingOf = (engine: Engine, contenders: readonly Contender[]): Setting => ({
    engine,
    folder: join(folder, engine.name),
    count: quick ? 100 : 1000,
    contenders,
    database: (name) => `svc_bench_${process.pid}_${name.replace(/\W+/g, '_')}`,
  });
  const isSelected = ({ name }: Contender) =>
    !selected || name === svc.name || selected.some((one) => name.startsWith(one));

  try {
    const setting = settingOf(engine, contendersOf(engine).filter(isSelected));
    await prepare(setting);
    const measures: Measure[] = [await measurePending(setting, quick ? 2 : 7, minutes(5))];
    let growth: readonly Growth[] = [];
    let calls: readonly number[] | string = [];
    if (engine === postgresql) {
      measures.push(...(await measureCold(setting, quick ? 5 : 21, minutes(3))));
      measures.push(await measureEmbedded(folder, quick ? 3 : 11, minutes(1)));
      measures.push(await measureGenerate(setting, quick ? 3 : 11, minutes(1)));
      if (!flags['no-growth']) {
        calls = await measureCalls(setting);
        const sizes = quick ? [10, 100, 1000] : [100, 1000, 10_000];
        growth = await measureGrowth(setting, sizes, quick ? 1 : 3, minutes(3));
      }
    } else {
      // The target on these engines: no slower than on PostgreSQL, where the command itself is measured.
      const reference = settingOf(postgresql, [svc]);
      await prepare(reference);
      await applyAll(reference, svc);
      measures.push(await measureNoop(setting, quick ? 5 : 21, minutes(3), reference));
    }
    await report({
      subject: engine.name,
      measures,
      growth,
      calls,
      facts: [
        `Processes start with ${flags['inherit-env'] ? 'the inherited' : 'a bare'} environment`,
        ...(await machineFacts(engine === postgresql ? [engine] : [engine, postgresql])),
        peerFacts(),
      ],
      isSaved: !quick && !selected && !flags['no-growth'],
    });
  } finally {
    await cleanUp();
  }
}
