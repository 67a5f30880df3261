import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { run } from './command.ts';
import { bareOf, CLI, svc } from './contenders.ts';
import { databaseUrl, freshDatabase } from './database.ts';
import { applyAll, command, folderOf, prepare, type Setting } from './measures.ts';
import { race, spread } from './race.ts';

/** Median milliseconds of one job at growing sizes. */
export interface Growth {
  readonly job: string;
  readonly points: readonly { readonly size: number; readonly ms: number }[];
  readonly failure?: string;
}

const CALLS = fileURLToPath(new URL('./schema-calls.mjs', import.meta.url));

/** Times svc as whole processes with growing numbers of migrations; starts no further size after `until`. */
export async function measureGrowth(
  base: Setting,
  sizes: readonly number[],
  rounds: number,
  until: number,
): Promise<readonly Growth[]> {
  const bare = bareOf(base.engine, 1);
  const points = new Map<string, { size: number; ms: number }[]>();
  const failures = new Map<string, string>();
  for (const size of sizes) {
    if (performance.now() > until) break;
    const setting: Setting = {
      ...base,
      count: size,
      contenders: [svc, bare],
      database: (name) => `${base.database(name)}_${size}`,
    };
    await prepare(setting);
    const lap = (args: readonly string[]) => async () =>
      (await run(command(setting, svc, args, databaseUrl(setting.engine, setting.database(svc.name))))).ms;
    const jobs = [
      { name: `${bare.name}, pending`, lap: () => applyAll(setting, bare), rounds: size > 1000 ? 1 : rounds },
      { name: 'migrate, pending', lap: () => applyAll(setting, svc), rounds: size > 1000 ? 1 : rounds },
      { name: 'migrate, nothing to do', lap: lap(svc.up), rounds },
      { name: 'status', lap: lap(svc.status ?? []), rounds },
      { name: 'schema generate, unchanged', lap: lap([CLI, 'db', 'schema', 'generate']), rounds },
    ];
    // The first command of a project transpiles its configuration.
    await run(
      command(setting, svc, [CLI, 'db', 'schema', 'generate'], databaseUrl(setting.engine, setting.database(svc.name))),
    ).catch(() => undefined);
    for (const job of jobs) {
      const { times, failures: failed } = await race(`${size} migrations, ${job.name}`, [job], job.rounds);
      const ran = times.get(job.name);
      if (ran) points.set(job.name, [...(points.get(job.name) ?? []), { size, ms: spread(ran).median }]);
      for (const [name, why] of failed) failures.set(name, why);
    }
    for (const contender of setting.contenders)
      await rm(folderOf(setting, contender), { recursive: true, force: true });
  }
  return [...new Set([...points.keys(), ...failures.keys()])].map((job) => {
    const failure = failures.get(job);
    return { job, points: points.get(job) ?? [], ...(failure !== undefined && { failure }) };
  });
}

/** `db.schema.create` in one process: milliseconds of each tenth of the calls. */
export async function measureCalls(setting: Setting): Promise<readonly number[] | string> {
  try {
    const url = await freshDatabase(setting.engine, `${setting.database(svc.name)}_calls`);
    const { output } = await run({
      args: [CALLS, String(setting.count)],
      cwd: folderOf(setting, svc),
      env: { DATABASE_URL: url },
    });
    return JSON.parse(output.trim().split('\n').at(-1) ?? '') as number[];
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
