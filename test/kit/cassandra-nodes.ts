import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { CASSANDRA, cassandraArguments, shortLivedJvm } from '../servers/engines/cassandra.ts';
import { handshake } from '../servers/handshake.ts';
import { javaFor, maven, whyMavenUnavailable } from '../servers/maven.ts';
import { waitUntil } from '../suites/wait-until.ts';
import { clientOf, DATACENTER } from './cassandra.ts';

const BYTES_EACH = 900 * 2 ** 20;
const STARTS_MS = 300_000;

/** Why nodes cannot be started here; undefined if they can. */
export function nodesMissing(count: number): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has every address of 127.0.0.0/8';
  if (freemem() < count * BYTES_EACH)
    return `${count} nodes of Cassandra need ${count} times ${BYTES_EACH / 2 ** 20} MB of free memory`;
  return whyMavenUnavailable(CASSANDRA);
}

/** A node for one test, which can be frozen and killed. */
export class CassandraNode {
  readonly address: string;
  readonly datacenter: string;
  readonly #seed: string;
  readonly #folder: string;
  readonly #jvm: readonly string[];
  #child: ChildProcess | undefined;

  constructor(address: string, seed: string, folder: string, jvm = shortLivedJvm('512m'), datacenter = DATACENTER) {
    this.address = address;
    this.datacenter = datacenter;
    this.#seed = seed;
    this.#folder = folder;
    this.#jvm = jvm;
  }

  get point(): string {
    return `${this.address}:9042`;
  }

  async start(): Promise<void> {
    const args = cassandraArguments({
      ...{ folder: this.#folder, lib: await maven(CASSANDRA, () => undefined), cluster: `svc-${this.#seed}` },
      ...{ address: this.address, port: 9042, storagePort: 7000 },
      ...{ seed: this.#seed, jvm: this.#jvm, ringDelayMs: 15_000, datacenter: this.datacenter },
    });
    const log = join(this.#folder, 'log');
    const output = openSync(log, 'a');
    const child = spawn(javaFor(CASSANDRA) ?? 'java', args, { cwd: this.#folder, stdio: ['ignore', output, output] });
    closeSync(output);
    this.#child = child;
    const deadline = Date.now() + STARTS_MS;
    await waitUntil(
      async () => {
        if (child.exitCode !== null) {
          throw new Error(
            `The node ${this.address} ended with ${child.exitCode}: ${readFileSync(log, 'utf8').slice(-2000)}`,
          );
        }
        return handshake('cassandra', this.point).then(
          () => true,
          () => {
            if (Date.now() > deadline) throw new Error(`The node ${this.address} does not answer`);
            return false;
          },
        );
      },
      `The node ${this.address} does not answer`,
      STARTS_MS,
    );
  }

  freeze(): void {
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}

/** Runs `body` with a cluster of `count` nodes in these data centers. */
export async function withNodes(
  count: number,
  body: (nodes: readonly CassandraNode[]) => Promise<void>,
  datacenters: readonly string[] = [],
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-cassandra-'));
  const byte = () => 1 + Math.floor(Math.random() * 254);
  const network = `127.${byte()}.${byte()}`;
  const nodes = Array.from({ length: count }, (_, at) => {
    const own = mkdtempSync(join(folder, 'node-'));
    return new CassandraNode(`${network}.${at + 2}`, `${network}.2`, own, undefined, datacenters[at]);
  });
  try {
    for (const node of nodes) await node.start();
    for (const node of nodes) await waitForPeers(node, count - 1);
    await body(nodes);
  } finally {
    for (const node of nodes) node.thaw();
    for (const node of nodes) await node.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function waitForPeers(node: CassandraNode, others: number): Promise<void> {
  const client = clientOf([node.point], undefined, node.datacenter);
  try {
    await waitUntil(async () => {
      const { rows } = await client.execute('SELECT schema_version FROM system.peers');
      return rows.filter((row) => row.schema_version !== null).length === others;
    }, `${node.address} does not know the other nodes`);
  } finally {
    await client.shutdown();
  }
}
