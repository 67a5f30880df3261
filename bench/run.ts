import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { run } from './command.ts';
import { engineOf } from './engine.ts';
import { waitUntilIdle } from './idle.ts';
import { buildSdk } from './install.ts';

const HELP = `Usage: npm run bench [-- [subject] [--quick] [--only=name,...] [--no-build]]

Compares svc with other tools on the test servers, on a machine that does nothing else, and writes
bench/results/<subject>.md. Prints progress to stderr, one line per round. Without a subject: all of them, one after the
other, in some two hours; then the page docs/reference/speed.md is made from the results.

  postgresql  migration tools on PostgreSQL, and svc on PGlite
  mysql       migration tools on MySQL, compared with svc on PostgreSQL
  mariadb     migration tools on MariaDB, compared with svc on PostgreSQL
  engines     svc and the bare driver on MongoDB, DynamoDB and Cassandra [--rounds=5] [--count=200] [--rows=100000]
  large       a default for a million rows on the same three, with a migrator killed at a third [--rows=1000000]
  tables      pull, generate and migrate of 2,000 tables of 20 fields on PostgreSQL, MySQL and MariaDB [--tables=2000]
              [--rounds=5] [engine…]
  online      how long an application waits while its table of a million rows changes [--rows=1000000] [engine…]
  gate        the cost of an approval, compared with bare PostgreSQL
  pages       a page of 100,000 waiting requests, on every engine [--waiting=100000]
  crowd       1,000 people with the inbox open while agents make requests [--people=1000] [--seconds=60]
  approvals   one gated call end to end, compared with other tools, and with faults [--rounds=200] [--waiting=5000]
  adoption    what is the same in a database made again from pulled files: a table, on any machine

  --quick        fewer rounds and less work, for a trial run on any machine; writes nothing
  --only         only these contenders (svc is always included), or engines; writes nothing
  --no-build     measures the existing dist/
  --no-growth    skips the measures with growing numbers of migrations (postgresql)
  --inherit-env  starts processes with the caller's environment, not a minimal one (postgresql, mysql, mariadb)

Example: npm run bench -- mysql --quick --only=drizzle,knex
`;
const SUBJECTS = [
  'postgresql',
  'mysql',
  'mariadb',
  'engines',
  'large',
  'tables',
  'online',
  'gate',
  'pages',
  'crowd',
  'approvals',
  'adoption',
] as const;
/** Separate scripts, run from source; they read the remaining arguments. */
const SCRIPTS = {
  engines: () => import('./engines/run.ts'),
  large: () => import('./engines/large.ts'),
  tables: () => import('./tables/run.ts'),
  online: () => import('./online/run.ts'),
  gate: () => import('./approvals/gate.ts'),
  pages: () => import('./approvals/pages.ts'),
  crowd: () => import('./approvals/crowd.ts'),
  adoption: () => import('./adoption.ts'),
};
/** Whose results are not times. */
const UNTIMED = new Set<string>(['adoption']);

const isScript = (name: string): name is keyof typeof SCRIPTS => Object.hasOwn(SCRIPTS, name);

/** Prints a usage error and exits. */
function exitWithUsageError(message: string): never {
  console.error(message);
  process.exit(2);
}

/** Runs each subject in a process of its own; returns those that failed. */
async function measureAll(flags: readonly string[]): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const subject of SUBJECTS) {
    const startedAt = performance.now();
    const args = ['--import', 'tsx', fileURLToPath(import.meta.url), subject, '--no-build', ...flags];
    const [code] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit');
    const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
    console.error(`${subject}: ${code === 0 ? 'measured' : 'FAILED'}, ${minutes} minutes`);
    if (code !== 0) failed.push(subject);
  }
  return failed;
}

const all = process.argv.slice(2);
if (all.includes('--help') || all.includes('-h')) {
  console.log(HELP);
  process.exit();
}
const [first = ''] = all;
const isNamed = first !== '' && !first.startsWith('-');
const flags = (isNamed ? all.slice(1) : all).filter((flag) => flag !== '--no-build');
const isTrial = flags.includes('--quick');
const build = all.includes('--no-build') ? async () => undefined : buildSdk;

if (!isNamed) {
  await build();
  const failed = await measureAll(flags);
  if (!isTrial)
    await run({ args: ['--import', 'tsx', fileURLToPath(new URL('../docs/generate.ts', import.meta.url))] });
  if (failed.length > 0) exitWithUsageError(`Not measured: ${failed.join(', ')}`);
  process.exit();
}
const subject = SUBJECTS.find((one) => one === first);
if (!subject) exitWithUsageError(`Unknown subject: ${first}\n\n${HELP}`);
await build();
if (!isTrial && !UNTIMED.has(subject)) await waitUntilIdle();
if (isScript(subject)) {
  process.argv.splice(2, all.length, ...flags);
  await SCRIPTS[subject]();
} else {
  // PostgreSQL is also the reference for the other engines.
  const connectEngine = (name: Parameters<typeof engineOf>[0]) =>
    engineOf(name).catch((error: Error) => exitWithUsageError(error.message));
  const postgresql = await connectEngine('postgresql');
  if (subject === 'approvals') {
    const { compare } = await import('./approvals/compare.ts');
    await compare(flags);
  } else {
    const { measureSql } = await import('./sql.ts');
    await measureSql(subject === 'postgresql' ? postgresql : await connectEngine(subject), flags);
  }
}
// Peers leave connections open.
process.exit();
