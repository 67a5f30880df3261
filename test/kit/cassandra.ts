import { randomUUID } from 'node:crypto';
import { Client } from 'cassandra-driver';
import { find } from '../servers/find.ts';
import type { Fresh } from './fresh.ts';

const found = await find('cassandra');

/** Why no server can be used here, or nothing where one answers. */
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
    // Of two nodes the one that is asked next may not know yet what the other one made.
    protocolOptions: { maxSchemaAgreementWaitSeconds: 30 },
  });
}

export interface FreshKeyspace extends Fresh {
  readonly keyspace: string;
  /** Beside whatever is under test. */
  query(cql: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** Where the whole server goes, the keyspace goes with it. */
  close(): Promise<void>;
}

/** A keyspace of its own on the server, or on the nodes that are given, so that files can run side by side. */
export async function freshKeyspace(contactPoints: readonly string[] = points, replicas = 1): Promise<FreshKeyspace> {
  const keyspace = `svc_test_${randomUUID().replaceAll('-', '')}`;
  const client = clientOf(contactPoints);
  await client.execute(
    `CREATE KEYSPACE ${keyspace} WITH replication = {'class': 'NetworkTopologyStrategy', '${DATACENTER}': ${replicas}}`,
  );
  await client.execute(`USE ${keyspace}`);
  return {
    keyspace,
    // A dead owner's lock is free soon.
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
