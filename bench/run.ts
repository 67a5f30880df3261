import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { contenders } from './contenders.ts';
import { dropDatabases, serverFacts } from './database.ts';
import { measureCalls, measureGrowth } from './growth.ts';
import { buildSdk, installPeers } from './install.ts';
import { machineFacts } from './machine.ts';
import { measureCold, measureGenerate, measurePending, prepare, type Setting } from './measures.ts';
import { report } from './report.ts';

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    'no-build': { type: 'boolean' },
    'no-growth': { type: 'boolean' },
    only: { type: 'string' },
    'inherit-env': { type: 'boolean' },
  },
});
const started = performance.now();
const minutes = (count: number): number => started + count * 60_000;

await serverFacts().catch((error: { readonly code?: string; readonly message?: string }) => {
  console.error(
    `No PostgreSQL server answers (${error.message || error.code}). Name one with SVC_TEST_POSTGRESQL_URL.`,
  );
  process.exit(2);
});
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
  const setting: Setting = {
    folder,
    count: flags.quick ? 100 : 1000,
    contenders: contenders.filter(
      ({ name }) => !wanted || name === 'svc' || wanted.some((one) => name.startsWith(one)),
    ),
    database: (name) => `svc_bench_${process.pid}_${name.replace(/\W+/g, '_')}`,
  };
  await prepare(setting);
  const pending = await measurePending(setting, flags.quick ? 2 : 7, minutes(6));
  const cold = await measureCold(setting, flags.quick ? 5 : 21, minutes(9));
  const generate = await measureGenerate(setting, flags.quick ? 3 : 11, minutes(11));
  const calls = flags['no-growth'] ? [] : await measureCalls(setting);
  const growth = flags['no-growth']
    ? []
    : await measureGrowth(
        setting,
        flags.quick ? [10, 100, 1000] : [100, 1000, 10_000],
        flags.quick ? 1 : 3,
        minutes(20),
      );
  await report({
    measures: [pending, ...cold, generate],
    growth,
    calls,
    contenders: setting.contenders,
    facts: [
      `Processes start with ${flags['inherit-env'] ? 'the inherited' : 'a bare'} environment`,
      ...(await machineFacts()),
    ],
    files: flags.quick || wanted ? undefined : new URL('.', import.meta.url),
  });
} finally {
  await cleanUp();
}
