import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { serverFacts } from './database.ts';

const peers = createRequire(new URL('./peers/', import.meta.url));

/** What a reader needs to judge the numbers; nothing that names the machine. */
export async function machineFacts(): Promise<readonly string[]> {
  const { dependencies } = peers('./package.json') as { dependencies: Readonly<Record<string, string>> };
  const version = (name: string): string =>
    (
      JSON.parse(readFileSync(new URL(`./peers/node_modules/${name}/package.json`, import.meta.url), 'utf8')) as {
        version: string;
      }
    ).version;
  return [
    `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${release().split('-')[0]}`,
    `Node ${process.version}`,
    `${await serverFacts()}, on the same machine`,
    `Peers: ${Object.keys(dependencies)
      .map((name) => `${name} ${version(name)}`)
      .join(', ')}`,
  ];
}
