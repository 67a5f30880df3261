import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromDocker } from '../docker.ts';
import { localMachine, serversTempFolder } from '../machine.ts';
import { type Artifact, javaFor, maven, whyMavenUnavailable } from '../maven.ts';
import type { Launch, Source } from '../source.ts';

export const CASSANDRA: Artifact = {
  group: 'org.apache.cassandra',
  name: 'cassandra-all',
  version: '5.0.6',
  java: (major) => major === 11 || major === 17,
};

export interface CassandraNode {
  readonly folder: string;
  readonly lib: string;
  readonly cluster: string;
  readonly address: string;
  readonly port: number;
  readonly storagePort: number;
  /** The address of the node to join. */
  readonly seed: string;
  /** Flags of the JVM. */
  readonly jvm: readonly string[];
  /** How long a node waits for gossip from the others; 1 for a single node. */
  readonly ringDelayMs: number;
  /** Default: datacenter1, as in Cassandra. */
  readonly datacenter?: string;
  /** For a node that no test kills: without the flush, a schema change is a quarter less work. Default: false. */
  readonly losesSchemaWhenKilled?: boolean;
}

/** For a node that runs for minutes: without the optimizing compiler and the concurrent collector. */
export const shortLivedJvm = (heap: string): readonly string[] => [
  ...['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'],
  ...['-Xms256m', `-Xmx${heap}`],
];

/** For benchmarks: the settings of Cassandra's jvm17-server.options. */
export const longLivedJvm = (heap: string): readonly string[] => [
  ...['-XX:+UseG1GC', '-XX:MaxGCPauseMillis=300', '-XX:+ParallelRefProcEnabled', '-XX:+AlwaysPreTouch'],
  ...[`-Xms${heap}`, `-Xmx${heap}`],
];

/** Writes the node's configuration and returns the arguments of its Java command. */
export function cassandraArguments(node: CassandraNode): readonly string[] {
  const { folder, lib, datacenter = 'datacenter1' } = node;
  const config = join(folder, 'conf');
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, 'cassandra.yaml'), configuration(node));
  writeFileSync(join(config, 'cassandra-rackdc.properties'), `dc=${datacenter}\nrack=rack1\n`);
  writeFileSync(
    join(config, 'logback.xml'),
    '<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%d %-5level %logger{20} %msg%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="out"/></root></configuration>\n',
  );
  const properties = {
    'cassandra.config': `file://${join(config, 'cassandra.yaml')}`,
    'cassandra-rackdc.properties': `file://${join(config, 'cassandra-rackdc.properties')}`,
    'cassandra.storagedir': folder,
    'cassandra.logdir': folder,
    'cassandra-foreground': 'yes',
    'cassandra.skip_wait_for_gossip_to_settle': '0',
    'cassandra.ring_delay_ms': String(node.ringDelayMs),
    'cassandra.superuser_setup_delay_ms': '0',
    ...(node.losesSchemaWhenKilled ? { 'cassandra.test.flush_local_schema_changes': 'false' } : {}),
    // By default, a timer runs every 2 ms, which costs 2 % of a core.
    'cassandra.approximate_time_precision_ms': '20',
    'io.netty.transport.noNative': 'true',
    'jdk.attach.allowAttachSelf': 'true',
  };
  return [
    ...node.jvm,
    ...Object.entries(properties).map(([name, value]) => `-D${name}=${value}`),
    ...EXPORTS.map((name) => `--add-exports=${name}=ALL-UNNAMED`),
    ...OPENS.map((name) => `--add-opens=${name}=ALL-UNNAMED`),
    ...['-cp', `${config}:${lib}/*`, 'org.apache.cassandra.service.CassandraDaemon'],
  ];
}

const configuration = ({ folder, cluster, address, port, storagePort, seed }: CassandraNode): string =>
  [
    `cluster_name: ${cluster}`,
    'num_tokens: 1',
    'partitioner: org.apache.cassandra.dht.Murmur3Partitioner',
    `seed_provider: [{ class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{ seeds: '${seed}:${storagePort}' }] }]`,
    `listen_address: ${address}`,
    `rpc_address: ${address}`,
    `storage_port: ${storagePort}`,
    `native_transport_port: ${port}`,
    'endpoint_snitch: GossipingPropertyFileSnitch',
    'commitlog_sync: periodic',
    'commitlog_sync_period: 10000ms',
    `data_file_directories: ['${join(folder, 'data')}']`,
    ...['commitlog', 'hints', 'saved_caches', 'cdc_raw'].map((name) => `${name}_directory: '${join(folder, name)}'`),
    'commitlog_segment_size: 8MiB',
    'memtable_heap_space: 64MiB',
    'materialized_views_enabled: true',
    'user_defined_functions_enabled: true',
    'auto_snapshot: false',
    // Writes that a node misses while it is down stay missing.
    'hinted_handoff_enabled: false',
    '',
  ].join('\n');

/** From Cassandra's jvm17-server.options. */
const EXPORTS = [
  ...['misc', 'ref'].map((name) => `java.base/jdk.internal.${name}`),
  ...['sun.nio.ch', 'java.lang.ref', 'java.lang.reflect'].map((name) => `java.base/${name}`),
  'java.management.rmi/com.sun.jmx.remote.internal.rmi',
  'java.rmi/sun.rmi.registry',
  'java.rmi/sun.rmi.server',
  'java.sql/java.sql',
  'jdk.unsupported/sun.misc',
];
const OPENS = [
  ...['loader', 'ref', 'reflect', 'math', 'module', 'util.jar'].map((name) => `java.base/jdk.internal.${name}`),
  ...['java.lang.module', 'java.net', 'sun.nio.ch', 'java.io', 'java.lang', 'java.lang.reflect'].map(
    (name) => `java.base/${name}`,
  ),
  ...['java.util', 'java.util.concurrent', 'java.util.concurrent.atomic', 'java.nio'].map(
    (name) => `java.base/${name}`,
  ),
  'jdk.management/com.sun.management.internal',
];

async function start(lib: string, launch: Launch): Promise<string> {
  const address = '127.0.0.1';
  const port = await launch.port(9042);
  const node = {
    folder: launch.folder,
    lib,
    cluster: 'svc-test',
    address,
    port,
    storagePort: await launch.port(7000),
    seed: address,
    jvm: shortLivedJvm('1g'),
    ringDelayMs: 1,
    losesSchemaWhenKilled: true,
  };
  launch.report(`starting on port ${port}`);
  launch.spawn(localMachine, javaFor(CASSANDRA) ?? 'java', cassandraArguments(node), { cwd: launch.folder });
  await launch.waitForAnswer('cassandra', `${address}:${port}`);
  return `${address}:${port}`;
}

const fromMaven: Source = {
  from: `Maven's ${CASSANDRA.name} ${CASSANDRA.version}`,
  whyUnavailable: () => whyMavenUnavailable(CASSANDRA),
  async prepare(report) {
    const lib = await maven(CASSANDRA, report);
    return { folder: serversTempFolder(), start: (launch) => start(lib, launch) };
  },
};

export const cassandra: readonly Source[] = [fromMaven, fromDocker('cassandra', 9042, (port) => `127.0.0.1:${port}`)];
