import type { Client, ClientOptions, QueryOptions, types } from 'cassandra-driver';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { type Driver, loadDriver } from '../../../shared/driver.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { toSvcError } from './errors.ts';
import { isReadFailure, retryDuringSchemaLag } from './schema-lag.ts';
import type { Settings } from './settings.ts';
import type { Address } from './url.ts';

export type Row = Readonly<Record<string, unknown>>;

/** The driver's classes for values that JavaScript has no type for. */
export type DriverTypes = typeof types;

export interface RowPage {
  readonly rows: readonly Row[];
  /** Absent on the last page. */
  readonly state?: string;
}

/** A connection to the cluster. Statements with values are prepared; the driver retries only idempotent reads. */
export interface Session {
  readonly keyspace: string;
  readonly datacenter: string;
  readonly types: DriverTypes;
  readonly version: string;
  /** Reads at LOCAL_QUORUM, with retries. */
  rows(cql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Reads at SERIAL, which includes all lightweight transactions and completes pending ones. */
  readSerial(cql: string, values: readonly unknown[]): Promise<readonly Row[]>;
  /** Reads at QUORUM, which includes lightweight transactions of other data centers. */
  readQuorum(cql: string, values: readonly unknown[]): Promise<readonly Row[]>;
  readPage(cql: string, values: readonly unknown[], size: number, state?: string): Promise<RowPage>;
  /** Writes at LOCAL_QUORUM. */
  write(cql: string, values: readonly unknown[]): Promise<void>;
  /**
   * Runs a lightweight transaction and returns the row with `[applied]`. It commits at QUORUM, because at LOCAL_QUORUM
   * another data center could miss all but the latest transaction of a partition.
   */
  transact(cql: string, values: readonly unknown[]): Promise<Row | undefined>;
  /** Runs DDL or a user's statement, without preparing it. */
  execute(cql: string): Promise<readonly Row[]>;
  /** The cluster's clock, read every few seconds and advanced by the local clock. */
  clusterTime(): Promise<Date>;
  /** The largest mutation in bytes, from a node's settings. */
  maxWriteBytes(): Promise<number>;
  /** Runs a query on every live node of the data center. The rows by address; undefined for a node that did not respond. */
  onEveryNode(cql: string): Promise<ReadonlyMap<string, readonly Row[] | undefined>>;
  /** Runs queries on the same node, concurrently. */
  onOneNode(cql: readonly string[]): Promise<readonly (readonly Row[])[]>;
  close(): Promise<void>;
}

const driver: Driver<typeof import('cassandra-driver')> = {
  name: 'The driver of Cassandra',
  package: 'cassandra-driver',
  load: () => import('cassandra-driver'),
};

const CLOCK_MAX_AGE_MS = 5000;
/** Rows per page: history rows may be large. */
const PAGE_SIZE = 500;
const RECONNECT_MS = 1_000;
/** How long the driver continues an attempt to connect that failed. */
const ABANDONED_MS = 1;
/** DDL can flush tables and wait for other nodes. */
const DDL_TIMEOUT_MS = 60_000;

/** The driver's node, with its connection pool. */
interface DriverHost {
  shutdown(waiting: boolean): unknown;
}

/** The default of `max_mutation_size`, also used if the user may not read a node's settings. */
const DEFAULT_MUTATION_KIB = 16 * 1024;

export const SELECT_NOW = 'SELECT toTimestamp(now()) AS now FROM system.local';

/** Throws `driver_missing`, `database_missing`, `not_supported` or a connection error. */
export async function openSession(address: Address, settings: Settings): Promise<Session> {
  const cassandra = await loadDriver(driver, settings.root);
  const {
    Client: DriverClient,
    types: driverTypes,
    policies,
  } = 'default' in cassandra ? (cassandra.default as typeof import('cassandra-driver')) : cassandra;
  const client = new DriverClient({
    ...clientOptions(address, settings, driverTypes),
    // The default policy waits for minutes, and a closed client keeps the process alive until the wait ends.
    policies: { reconnection: new policies.reconnection.ConstantReconnectionPolicy(RECONNECT_MS) },
  });
  // An unhandled error event would end the process; the next query reports the error.
  client.on('error', () => undefined);
  const connecting = client.connect();
  try {
    await withTimeout(settings.connectTimeoutMs, connecting);
    setTimeouts(client, { readTimeout: settings.readTimeoutMs });
    const { rows } = await client.execute('SELECT release_version FROM system.local', [], { prepare: false });
    const version = String(rows[0]?.release_version);
    if (Number(version.split('.')[0]) < 4) throw serverTooOld(version);
    await useKeyspace(client, address);
    return createSession(client, address, driverTypes, version);
  } catch (error) {
    // An abandoned connection attempt continues in the driver, and closing waits for a server that may be silent.
    setTimeouts(client, { connectTimeout: ABANDONED_MS, readTimeout: ABANDONED_MS });
    await closeClient(client);
    const closeLater = () => closeClient(client);
    void connecting.then(closeLater, closeLater);
    throw withNothingChanged(toSvcError(error));
  }
}

/** Sets timeouts of what the driver does from now on: connecting again, closing a connection, and requests. */
function setTimeouts(
  client: Client,
  timeouts: Pick<ClientOptions['socketOptions'] & object, 'connectTimeout' | 'readTimeout'>,
): void {
  const { options } = client as unknown as { readonly options: ClientOptions };
  Object.assign(options.socketOptions ?? {}, timeouts);
}

/** `shutdown` does nothing if the client never connected, which would leave its sockets and timers open. */
async function closeClient(client: Client): Promise<void> {
  await client.shutdown().catch(() => undefined);
  // A private member of the driver.
  const { controlConnection } = client as unknown as {
    readonly controlConnection?: { shutdown(): void; readonly connection?: { close(): void } };
  };
  controlConnection?.shutdown();
  controlConnection?.connection?.close();
}

function clientOptions(address: Address, settings: Settings, { consistencies }: DriverTypes): ClientOptions {
  return {
    contactPoints: [...address.contactPoints],
    localDataCenter: address.datacenter,
    ...(address.user !== undefined && { credentials: { username: address.user, password: address.password ?? '' } }),
    ...(address.tls && { sslOptions: {} }),
    // svc waits for schema agreement itself: the driver ignores a timeout.
    protocolOptions: { maxSchemaAgreementWaitSeconds: 0 },
    isMetadataSyncEnabled: false,
    // Heartbeats outlive their connections and keep the process alive; queries have timeouts of their own.
    pooling: { heartBeatInterval: 0 },
    encoding: { useBigIntAsLong: true, useBigIntAsVarint: true },
    queryOptions: { consistency: consistencies.localQuorum, serialConsistency: consistencies.serial, prepare: true },
    // The timer of the handshake, a request, would keep the process alive after a failed attempt.
    socketOptions: { connectTimeout: settings.connectTimeoutMs, readTimeout: settings.connectTimeoutMs },
  };
}

function createSession(client: Client, address: Address, driverTypes: DriverTypes, version: string): Session {
  const { serial, quorum } = driverTypes.consistencies;
  const removed = new Set<DriverHost>();
  client.on('hostRemove', (host) => removed.add(host));
  const execute = async (cql: string, values: readonly unknown[], options: QueryOptions): Promise<types.ResultSet> => {
    const query = () => client.execute(cql, [...values], options);
    try {
      return await (options.isIdempotent === true ? retryDuringSchemaLag(query, isReadFailure) : query());
    } catch (error) {
      throw toSvcError(error);
    }
  };
  const rows = async (cql: string, values: readonly unknown[], options: QueryOptions): Promise<readonly Row[]> =>
    (await execute(cql, values, options)).rows ?? [];
  let maxBytes: number | undefined;
  let clock = { readAt: Number.NEGATIVE_INFINITY, offset: 0 };
  const read = (cql: string, host: NonNullable<QueryOptions['host']>) =>
    rows(cql, [], { host, prepare: false, isIdempotent: true });
  const page = async (
    cql: string,
    values: readonly unknown[],
    size: number,
    state?: string,
    extra: QueryOptions = {},
  ): Promise<RowPage> => {
    const options = {
      ...extra,
      isIdempotent: true,
      fetchSize: size,
      autoPage: false,
      ...(state !== undefined && { pageState: state }),
    };
    const found = await execute(cql, values, options);
    return {
      rows: found.rows,
      ...(found.pageState !== null && found.pageState !== undefined && { state: found.pageState }),
    };
  };
  const all = async (cql: string, values: readonly unknown[], extra?: QueryOptions): Promise<readonly Row[]> => {
    const found: Row[] = [];
    for (let state: string | undefined; ; ) {
      const next = await page(cql, values, PAGE_SIZE, state, extra);
      found.push(...next.rows);
      if (next.state === undefined) return found;
      state = next.state;
    }
  };
  return {
    keyspace: address.keyspace,
    datacenter: address.datacenter,
    types: driverTypes,
    version,
    rows: (cql, values = []) => all(cql, values),
    readQuorum: (cql, values) => all(cql, values, { consistency: quorum }),
    readSerial: (cql, values) => rows(cql, values, { isIdempotent: true, consistency: serial }),
    readPage: (cql, values, size, state) => page(cql, values, size, state),
    async write(cql, values) {
      await rows(cql, values, {});
    },
    transact: async (cql, values) => (await rows(cql, values, { consistency: quorum }))[0],
    async clusterTime() {
      const before = performance.now();
      if (before - clock.readAt > CLOCK_MAX_AGE_MS) {
        const [row] = await rows(SELECT_NOW, [], { isIdempotent: true });
        clock = { readAt: before, offset: Number(row?.now) - (before + performance.now()) / 2 };
      }
      return new Date(Math.round(performance.now() + clock.offset));
    },
    async maxWriteBytes() {
      const cql = `SELECT value FROM system_views.settings WHERE name = 'max_mutation_size_in_kb'`;
      try {
        maxBytes ??= Number((await rows(cql, [], { isIdempotent: true }))[0]?.value ?? DEFAULT_MUTATION_KIB) * 1024;
      } catch (error) {
        if (!isSvcError(error) || error.code !== 'permission_denied') throw error;
        maxBytes = DEFAULT_MUTATION_KIB * 1024;
      }
      return maxBytes;
    },
    execute: (cql) => rows(cql, [], { prepare: false, readTimeout: DDL_TIMEOUT_MS }),
    async onEveryNode(cql) {
      // The driver opens no connections to other data centers.
      const hosts = client.hosts.values().filter((host) => host.isUp() && host.datacenter === address.datacenter);
      const responses = hosts.map(
        async (host) => [host.address, await read(cql, host).catch(ignoreUnreachable)] as const,
      );
      return new Map(await Promise.all(responses));
    },
    async onOneNode(queries) {
      const [host] = client.getState().getConnectedHosts();
      if (!host) throw toSvcError(Object.assign(new Error('No node is connected.'), { name: 'NoHostAvailableError' }));
      return Promise.all(queries.map((cql) => read(cql, host)));
    },
    async close() {
      // A control connection that is being reestablished adds hosts.
      client.on('hostAdd', (host: DriverHost) => host.shutdown(false));
      await client.shutdown().catch(() => undefined);
      // `shutdown` skips removed nodes, whose pools would keep reconnecting.
      for (const host of removed) host.shutdown(false);
    },
  };
}

function ignoreUnreachable(error: unknown): undefined {
  if (!isSvcError(error) || !['connection_failed', 'connection_lost'].includes(error.code)) throw error;
}

/** The driver's `connectTimeout` does not limit the handshake. */
async function withTimeout(timeoutMs: number, connecting: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(Object.assign(new Error(`There was no response within ${timeoutMs} ms.`), { code: 'ETIMEDOUT' })),
      timeoutMs,
    );
  });
  try {
    await Promise.race([connecting, timeout]);
  } finally {
    clearTimeout(timer);
    connecting.catch(() => undefined);
  }
}

async function useKeyspace(client: Client, { keyspace, datacenter }: Address): Promise<void> {
  const cql = 'SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?';
  const { rows } = await client.execute(cql, [keyspace]);
  if (rows.length > 0) {
    // The driver uses it for every later connection too.
    await client.execute(`USE "${keyspace}"`, [], { prepare: false });
    return;
  }
  const nodes = client.hosts.values().filter((host) => host.datacenter === datacenter).length;
  throw new SvcError('database_missing', `The keyspace "${keyspace}" does not exist.`, {
    next: [
      `CREATE KEYSPACE "${keyspace}" WITH replication = {'class': 'NetworkTopologyStrategy', '${datacenter}': ${Math.max(1, Math.min(3, nodes))}};`,
      'Or correct the URL.',
    ],
  });
}

function serverTooOld(version: string): SvcError {
  return new SvcError('not_supported', 'This Cassandra server is too old.', {
    why: `It has version ${version}; svc supports 4.0 and later.`,
  });
}
