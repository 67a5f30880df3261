import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, cpus, platform, release, totalmem } from 'node:os';
import { serverFacts } from './database.ts';
import type { Engine } from './engine.ts';

/** What a reader needs to judge the numbers, without identifying the machine. */
export async function machineFacts(engines: readonly Engine[]): Promise<readonly string[]> {
  return [
    `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${release().split('-')[0]}`,
    `Node ${process.version}`,
    ...(await Promise.all(engines.map(async (engine) => `${await serverFacts(engine)}, on the same machine`))),
  ];
}

/** The tools installed in a folder, with their versions. */
export function peerFacts(folder = new URL('./peers/', import.meta.url)): string {
  const read = (file: URL) => JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string };
  const { dependencies } = createRequire(folder)('./package.json') as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const peers = Object.keys(dependencies).map(
    (name) => `${name} ${read(new URL(`node_modules/${name}/package.json`, folder)).version}`,
  );
  return `Peers: ${peers.join(', ')}`;
}
