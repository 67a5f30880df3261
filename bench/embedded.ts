import { cp, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './command.ts';
import { CLI, svc } from './contenders.ts';
import { postgresql } from './engine.ts';
import { type Measure, NODE, node } from './measures.ts';
import { race } from './race.ts';
import { workload } from './workload.ts';

const COUNT = 100;
const MODULE = 'node_modules/@electric-sql/pglite';
const BARE = 'bare PGlite: opens, counts';

/** The short commands on an embedded database, and what PGlite alone takes to open the same one. */
export async function measureEmbedded(folder: string, rounds: number, until: number): Promise<Measure> {
  const project = join(folder, 'pglite');
  await svc.prepare(project, workload(postgresql, COUNT), postgresql);
  await mkdir(join(project, MODULE, '..'), { recursive: true });
  await symlink(fileURLToPath(new URL(`../${MODULE}`, import.meta.url)), join(project, MODULE));
  const execute = async (...args: string[]) =>
    (await run({ args, cwd: project, env: { DATABASE_URL: 'pglite://./main' } })).ms;
  await execute(CLI, 'db', 'migrate');
  const copy = join(project, 'copy');
  await cp(join(project, 'main'), copy, { recursive: true });
  const bare = fileURLToPath(new URL('peers/pglite.mjs', import.meta.url));
  const runners = [
    node,
    { name: BARE, lap: () => execute(bare, copy) },
    { name: svc.name, lap: () => execute(CLI, 'db', 'migrate') },
    { name: 'svc db migrate status', lap: () => execute(CLI, 'db', 'migrate', 'status') },
  ];
  const title = `Nothing to do, ${COUNT} applied on PGlite`;
  await race(`${title}, warm-up`, runners, 1);
  return {
    title,
    unit: NODE,
    race: await race(title, runners, rounds, until),
    aims: [
      { than: NODE, atMost: 7 },
      { than: BARE, atMost: 1 },
    ],
  };
}
