import type { Client, ClientOptions, QueryOptions, types } from 'cassandra-driver';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { type Driver, loadDriver } from '../../driver.ts';
import { refusal, unchanged } from './errors.ts';
import { isReadFailure, untilKnown } from './known.ts';
import type { Settings } from './settings.ts';
import type { Place } from './url.ts';

export type Row = Readonly<Record<string, unknown>>;

/** What the driver gives for values that JavaScript has no type for. */
export type Driven = typeof types;

export interface PageOf {
  readonly rows: readonly Row[];
  /** Absent on the last page. */
  readonly state?: string;
}

/** One conversation with the cluster: every statement of ours is prepared, and none is sent twice by the driver. */
export interface Session {
  readonly keyspace: string;
  readonly datacenter: string;
  readonly types: Driven;
  readonly version: string;
  /** Reads at LOCAL_QUORUM; tried again where a node does not answer. */
  rows(cql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Reads what every lightweight transaction before has written, and ends those that hang. */
  serially(cql: string, values: readonly unknown[]): Promise<readonly Row[]>;
  /** Reads at QUORUM what lightweight transactions have written through any data center. */
  widely(cql: string, values: readonly unknown[]): Promise<readonly Row[]>;
  page(cql: string, values: readonly unknown[], size: number, state?: string): Promise<PageOf>;
  /** At LOCAL_QUORUM. */
  write(cql: string, values: readonly unknown[]): Promise<void>;
  /**
   * A lightweight transaction gives the row that says whether it was applied. It is agreed on among all data centers, and
   * what it writes is waited for there too: at LOCAL_QUORUM another one could miss all but the last of a partition.
   */
  transact(cql: string, values: readonly unknown[]): Promise<Row | undefined>;
  /** Text without values, as DDL and the words of a user are: not prepared. */
  text(cql: string): Promise<readonly Row[]>;
  /** The clock of the cluster, asked now and then and counted on from there. */
  moment(): Promise<Date>;
  /** Bytes that a write may have, as a node says it. */
  mostBytes(): Promise<number>;
  /** The same question to every node of the data center that is up, by its address; nothing where none comes back. */
  everywhere(cql: string): Promise<ReadonlyMap<string, readonly Row[] | undefined>>;
  /** The same questions to one node, together. */
  onOne(cql: readonly string[]): Promise<readonly (readonly Row[])[]>;
  close(): Promise<void>;
}

const driver: Driver<typeof import('cassandra-driver')> = {
  name: 'The driver of Cassandra',
  package: 'cassandra-driver',
  load: () => import('cassandra-driver'),
};

/** How long the clock is counted on by this process's own. */
const CLOCK_MS = 5000;
/** Rows of an answer: what a row of the history holds may be large. */
const PAGE = 500;
const RECONNECT_MS = 1_000;
/** DDL may flush tables and wait for other nodes. */
const DDL_TIMEOUT_MS = 60_000;

/** A node of the driver, which shuts down the pool of connections to it. */
interface Leaving {
  shutdown(waiting: boolean): unknown;
}

/** `max_mutation_size` where nothing else is said of it, and for a user who may not read the settings of a node. */
const MUTATION_KIB = 16 * 1024;

export const NOW = 'SELECT toTimestamp(now()) AS now FROM system.local';

/** Connects, and refuses a keyspace that is not there. Throws `driver_missing` or what the cluster says. */
export async function openSession(place: Place, settings: Settings): Promise<Session> {
  const cassandra = await loadDriver(driver, settings.root);
  const {
    Client: DriverClient,
    types: driven,
    policies,
  } = 'default' in cassandra
    ? (cassandra as unknown as { readonly default: typeof import('cassandra-driver') }).default
    : cassandra;
  const client = new DriverClient({
    ...clientOptions(place, settings, driven),
    // The driver's own waits grow to minutes, and a client that is closed keeps the process until the last one is over.
    policies: { reconnection: new policies.reconnection.ConstantReconnectionPolicy(RECONNECT_MS) },
  });
  // Unheard it would end the process; whoever asks next is told.
  client.on('error', () => undefined);
  const connecting = client.connect();
  try {
    await within(settings.connectTimeoutMs, connecting);
    const { rows } = await client.execute('SELECT release_version FROM system.local', [], { prepare: false });
    const version = String(rows[0]?.release_version);
    if (Number(version.split('.')[0]) < 4) throw tooOld(version);
    await useKeyspace(client, place);
    return sessionOver(client, place, driven, version);
  } catch (error) {
    await hangUp(client);
    // One that is given up goes on until the driver's own patience ends.
    const later = () => hangUp(client);
    void connecting.then(later, later);
    throw unchanged(refusal(error));
  }
}

/** `shutdown` leaves a client alone that could not connect, and with it the sockets and timers it made on the way. */
async function hangUp(client: Client): Promise<void> {
  await client.shutdown().catch(() => undefined);
  const { controlConnection } = client as unknown as {
    readonly controlConnection?: { shutdown(): void; readonly connection?: { close(): void } };
  };
  controlConnection?.shutdown();
  controlConnection?.connection?.close();
}

function clientOptions(place: Place, settings: Settings, { consistencies }: Driven): ClientOptions {
  return {
    contactPoints: [...place.contactPoints],
    localDataCenter: place.datacenter,
    ...(place.user !== undefined && { credentials: { username: place.user, password: place.password ?? '' } }),
    ...(place.tls && { sslOptions: {} }),
    // Agreement is ours to wait for: the driver answers OK without it.
    protocolOptions: { maxSchemaAgreementWaitSeconds: 0 },
    isMetadataSyncEnabled: false,
    // Heartbeats outlive their connections and keep the process; a question that is not answered ends by its own time.
    pooling: { heartBeatInterval: 0 },
    encoding: { useBigIntAsLong: true, useBigIntAsVarint: true },
    queryOptions: { consistency: consistencies.localQuorum, serialConsistency: consistencies.serial, prepare: true },
    socketOptions: { connectTimeout: settings.connectTimeoutMs, readTimeout: settings.readTimeoutMs },
  };
}

function sessionOver(client: Client, place: Place, driven: Driven, version: string): Session {
  const { serial, quorum } = driven.consistencies;
  const gone = new Set<Leaving>();
  client.on('hostRemove', (host) => gone.add(host));
  const execute = async (cql: string, values: readonly unknown[], options: QueryOptions): Promise<types.ResultSet> => {
    const ask = () => client.execute(cql, [...values], options);
    try {
      return await (options.isIdempotent === true ? untilKnown(ask, isReadFailure) : ask());
    } catch (error) {
      throw refusal(error);
    }
  };
  const rows = async (cql: string, values: readonly unknown[], options: QueryOptions): Promise<readonly Row[]> =>
    ((await execute(cql, values, options)).rows ?? []) as unknown as readonly Row[];
  let most: number | undefined;
  let clock = { asked: Number.NEGATIVE_INFINITY, ahead: 0 };
  const read = (cql: string, host: NonNullable<QueryOptions['host']>) =>
    rows(cql, [], { host, prepare: false, isIdempotent: true });
  const page = async (
    cql: string,
    values: readonly unknown[],
    size: number,
    state?: string,
    reach: QueryOptions = {},
  ): Promise<PageOf> => {
    const options = {
      ...reach,
      isIdempotent: true,
      fetchSize: size,
      autoPage: false,
      ...(state !== undefined && { pageState: state }),
    };
    const found = await execute(cql, values, options);
    return {
      rows: found.rows as unknown as readonly Row[],
      ...(found.pageState !== null && found.pageState !== undefined && { state: found.pageState }),
    };
  };
  const all = async (cql: string, values: readonly unknown[], reach?: QueryOptions): Promise<readonly Row[]> => {
    const found: Row[] = [];
    for (let state: string | undefined; ; ) {
      const next = await page(cql, values, PAGE, state, reach);
      found.push(...next.rows);
      if (next.state === undefined) return found;
      state = next.state;
    }
  };
  return {
    keyspace: place.keyspace,
    datacenter: place.datacenter,
    types: driven,
    version,
    rows: (cql, values = []) => all(cql, values),
    widely: (cql, values) => all(cql, values, { consistency: quorum }),
    serially: (cql, values) => rows(cql, values, { isIdempotent: true, consistency: serial }),
    page: (cql, values, size, state) => page(cql, values, size, state),
    async write(cql, values) {
      await rows(cql, values, {});
    },
    transact: async (cql, values) => (await rows(cql, values, { consistency: quorum }))[0],
    async moment() {
      const before = performance.now();
      if (before - clock.asked > CLOCK_MS) {
        const [row] = await rows(NOW, [], { isIdempotent: true });
        clock = { asked: before, ahead: Number(row?.now) - (before + performance.now()) / 2 };
      }
      return new Date(Math.round(performance.now() + clock.ahead));
    },
    async mostBytes() {
      const cql = `SELECT value FROM system_views.settings WHERE name = 'max_mutation_size_in_kb'`;
      try {
        most ??= Number((await rows(cql, [], { isIdempotent: true }))[0]?.value ?? MUTATION_KIB) * 1024;
      } catch (error) {
        if (!isSvcError(error) || error.code !== 'permission_denied') throw error;
        most = MUTATION_KIB * 1024;
      }
      return most;
    },
    text: (cql) => rows(cql, [], { prepare: false, readTimeout: DDL_TIMEOUT_MS }),
    async everywhere(cql) {
      // To nodes of other data centers the driver opens no connection.
      const hosts = client.hosts.values().filter((host) => host.isUp() && host.datacenter === place.datacenter);
      const answers = hosts.map(async (host) => [host.address, await read(cql, host).catch(unanswered)] as const);
      return new Map(await Promise.all(answers));
    },
    async onOne(texts) {
      const [host] = client.getState().getConnectedHosts();
      if (!host) throw refusal(Object.assign(new Error('No node is connected.'), { name: 'NoHostAvailableError' }));
      return Promise.all(texts.map((cql) => read(cql, host)));
    },
    async close() {
      // A control connection that is just being made anew comes with nodes of its own.
      client.on('hostAdd', (host: Leaving) => host.shutdown(false));
      await client.shutdown().catch(() => undefined);
      // `shutdown` forgets nodes that the cluster no longer lists: their pools would go on trying.
      for (const host of gone) host.shutdown(false);
    },
  };
}

function unanswered(error: unknown): undefined {
  if (!isSvcError(error) || !['connection_failed', 'connection_lost'].includes(error.code)) throw error;
}

/** `connectTimeout` of the driver does not bound the handshake. */
async function within(timeoutMs: number, connecting: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(Object.assign(new Error(`Nothing answered within ${timeoutMs} ms.`), { code: 'ETIMEDOUT' })),
      timeoutMs,
    );
  });
  try {
    await Promise.race([connecting, late]);
  } finally {
    clearTimeout(timer);
    connecting.catch(() => undefined);
  }
}

async function useKeyspace(client: Client, { keyspace, datacenter }: Place): Promise<void> {
  const cql = 'SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?';
  const { rows } = await client.execute(cql, [keyspace]);
  if (rows.length > 0) {
    // The driver keeps to it in every session that it opens later.
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

function tooOld(version: string): SvcError {
  return new SvcError('not_supported', 'This Cassandra server is too old.', {
    why: `It has version ${version}; 4.0 is the oldest that svc knows.`,
  });
}
