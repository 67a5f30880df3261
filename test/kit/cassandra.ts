import { randomUUID } from 'node:crypto';
import { Client } from 'cassandra-driver';
import { find } from '../servers/find.ts';
import type { TestDatabase } from '../suites/test-database.ts';

const found = await find('cassandra');

/** Why no server is available; undefined if there is one. */
export const unavailable: string | undefined = 'missing' in found ? found.missing : undefined;

const points = 'url' in found ? [found.url.replace(/^.*:\/\//, '').replace(/\/.*$/, '')] : [];

export const DATACENTER = 'datacenter1';

export function clientOf(contactPoints: readonly string[], keyspace?: string, datacenter = DATACENTER): Client {
  return new Client({
    contactPoints: [...contactPoints],
    localDataCenter: datacenter,
    ...(keyspace !== undefined && { keyspace }),
    encoding: { useBigIntAsLong: true },
    isMetadataSyncEnabled: false,
    // Otherwise the second of two nodes may not know a new table yet.
    protocolOptions: { maxSchemaAgreementWaitSeconds: 30 },
  });
}

export interface FreshKeyspace extends TestDatabase {
  readonly keyspace: string;
  /** Runs CQL independently of the code under test. */
  query(cql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** Closes the client and keeps the keyspace, for a server that is removed as a whole. */
  close(): Promise<void>;
}

/** A new keyspace on the shared server or on the given nodes. */
export async function freshKeyspace(contactPoints: readonly string[] = points, replicas = 1): Promise<FreshKeyspace> {
  const keyspace = `svc_test_${randomUUID().replaceAll('-', '')}`;
  const client = clientOf(contactPoints);
  await client.execute(
    `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${DATACENTER}': ${replicas}}`,
  );
  await client.execute(`USE ${keyspace}`);
  return {
    keyspace,
    // The lock of a dead process expires soon.
    url: `cassandra://${contactPoints.join(',')}/${keyspace}?dc=${DATACENTER}&lease=5`,
    query: async (cql, values = []) =>
      (await client.execute(cql, [...values], { prepare: values.length > 0 })).rows as unknown as Record<
        string,
        unknown
      >[],
    close: () => client.shutdown(),
    async drop() {
      await client.execute(`DROP KEYSPACE IF EXISTS ${keyspace}`, [], { readTimeout: 60_000 });
      await client.shutdown();
    },
  };
}
