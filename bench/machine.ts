import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { serverFacts } from './database.ts';
import type { Engine } from './engine.ts';

/** What a reader needs to judge the numbers; nothing that names the machine. */
export async function machineFacts(
  engines: readonly Engine[],
  folder = new URL('./peers/', import.meta.url),
): Promise<readonly string[]> {
  const { dependencies } = createRequire(folder)('./package.json') as {
    dependencies: Readonly<Record<string, string>>;
  };
  const version = (name: string): string =>
    (
      JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, folder), 'utf8')) as {
        version: string;
      }
    ).version;
  return [
    `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${release().split('-')[0]}`,
    `Node ${process.version}`,
    ...(await Promise.all(engines.map(async (engine) => `${await serverFacts(engine)}, on the same machine`))),
    `Peers: ${Object.keys(dependencies)
      .map((name) => `${name} ${version(name)}`)
      .join(', ')}`,
  ];
}
