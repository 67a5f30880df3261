import { engineOf } from './engine.ts';
import { buildSdk } from './install.ts';

const HELP = `Usage: npm run bench -- [subject] [--quick] [--only=name,...] [--no-build]

Compares with other tools on the servers of the tests, and writes bench/results/<subject>.md. What happens meanwhile is
told on stderr, a line a round.

  postgresql  migrators on PostgreSQL; what is measured without a subject
  mysql       the same on MySQL, with svc on PostgreSQL beside it
  mariadb     the same on MariaDB, with svc on PostgreSQL beside it
  engines     MongoDB, DynamoDB and Cassandra, with the driver alone beside it [--rounds=5] [--count=200] [--rows=100000]
  large       a default for a million rows on the same three, with a migrator killed at a third [--rows=1000000]
  gate        what an approval costs, with the least that PostgreSQL allows beside
  pages       a page of 100,000 waiting requests, on every engine [--waiting=100000]
  approvals   one gated call end to end, with the faults that each was tried on [--rounds=200] [--waiting=10000]

  --quick        a few rounds with less work: to see it run, not to measure; writes nothing
  --only         these contenders, or engines, beside svc; writes nothing
  --no-build     measures dist/ as it is
  --no-growth    leaves out what grows with the number of migrations (postgresql)
  --inherit-env  starts processes with the caller's environment, not a bare one (postgresql, mysql, mariadb)

Example: npm run bench -- mysql --quick --only=drizzle,knex
`;
const SUBJECTS = ['postgresql', 'mysql', 'mariadb', 'engines', 'large', 'gate', 'pages', 'approvals'] as const;
/** Scripts of their own, from the sources: they read what is left of the arguments. */
const SCRIPTS = {
  engines: () => import('./engines/run.ts'),
  large: () => import('./engines/large.ts'),
  gate: () => import('./approvals/gate.ts'),
  pages: () => import('./approvals/pages.ts'),
};

const isScript = (name: string): name is keyof typeof SCRIPTS => Object.hasOwn(SCRIPTS, name);

/** Ends the process with a word for the person. */
function refuse(message: string): never {
  console.error(message);
  process.exit(2);
}

const all = process.argv.slice(2);
if (all.includes('--help') || all.includes('-h')) {
  console.log(HELP);
  process.exit();
}
const [first = ''] = all;
const isNamed = first !== '' && !first.startsWith('-');
const subject = SUBJECTS.find((one) => one === (isNamed ? first : 'postgresql'));
if (!subject) refuse(`There is no bench of "${first}".\n\n${HELP}`);
const flags = (isNamed ? all.slice(1) : all).filter((flag) => flag !== '--no-build');
const build = all.includes('--no-build') ? async () => undefined : buildSdk;

if (isScript(subject)) {
  process.argv.splice(2, all.length, ...flags);
  await SCRIPTS[subject]();
} else {
  // PostgreSQL is also what stands beside the others.
  const answers = (name: Parameters<typeof engineOf>[0]) =>
    engineOf(name).catch((error: Error) => refuse(error.message));
  const postgresql = await answers('postgresql');
  const engine = subject === 'approvals' ? postgresql : await answers(subject);
  await build();
  if (subject === 'approvals') {
    const { compare } = await import('./approvals/compare.ts');
    await compare(flags);
  } else {
    const { measureSql } = await import('./sql.ts');
    await measureSql(engine, flags);
  }
}
// Peers leave connections open.
process.exit();
