import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../../../core/errors.ts';
import { isObjectUnknown, retryDuringSchemaLag } from './schema-lag.ts';
import type { Session } from './session.ts';

const FIRST_POLL_MS = 10;
const MAX_POLL_MS = 250;

/**
 * Waits until all nodes have the same schema version. Throws `schema_disagreement` with the nodes that differ, such as a
 * node that is down; the driver's own wait would not report them.
 */
export async function waitForSchemaAgreement(session: Session, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, MAX_POLL_MS)) {
    const others = await disagreeingNodes(session);
    if (others.length === 0) return;
    if (performance.now() + pause > deadline) throw disagreementError(others, timeoutMs);
    await wait(pause);
  }
}

async function disagreeingNodes(session: Session): Promise<string[]> {
  const [local = [], peers = []] = await session.onOneNode([
    'SELECT schema_version FROM system.local',
    'SELECT peer, rpc_address, schema_version FROM system.peers',
  ]);
  const localVersion = String(local[0]?.schema_version);
  return (
    peers
      // A removed node leaves a row without a version.
      .filter(
        ({ schema_version: version }) => version !== null && version !== undefined && String(version) !== localVersion,
      )
      .map(({ rpc_address: address, peer }) => String(address ?? peer))
  );
}

function disagreementError(nodes: readonly string[], timeoutMs: number): SvcError {
  return new SvcError('schema_disagreement', 'The nodes of the Cassandra cluster do not agree on the schema.', {
    why: `After ${timeoutMs} ms these nodes still have another schema version: ${nodes.join(', ')}. A node that is down cannot agree.`,
    next: [
      `Check ${nodes.length === 1 ? 'that node' : 'those nodes'}: nodetool status, nodetool describecluster`,
      'Start the node again or remove it from the cluster, then run the command again.',
    ],
    details: { nodes },
  });
}

/** The types of a table's columns by name; empty if the table does not exist. */
export async function readColumns(session: Session, table: string): Promise<ReadonlyMap<string, string>> {
  const rows = await session.rows(
    'SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?',
    [session.keyspace, table],
  );
  return new Map(rows.map((row) => [String(row.column_name), String(row.type)]));
}

/** The tables and views among these names that exist. */
export async function existingTables(session: Session, tables: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await session.rows(
    'SELECT table_name FROM system_schema.columns WHERE keyspace_name = ? AND table_name IN ?',
    [session.keyspace, tables],
  );
  return new Set(rows.map((row) => String(row.table_name)));
}

/**
 * Runs a query, or `otherwise` if the table or all of these columns are missing. Retries while the catalog contains them but
 * the node does not know them yet, as when another process creates them at the same time.
 */
export async function ifMissing<T>(
  session: Session,
  table: string,
  columns: readonly string[],
  query: () => Promise<T>,
  otherwise: () => Promise<T>,
): Promise<T> {
  let isMissing = false;
  // The error code does not identify what is missing, so the catalog is read.
  const isLag = async (error: unknown): Promise<boolean> => {
    if (!isObjectUnknown(error)) return false;
    const existing = await readColumns(session, table);
    isMissing = !columns.some((name) => existing.has(name));
    return !isMissing;
  };
  try {
    return await retryDuringSchemaLag(query, isLag);
  } catch (error) {
    if (isMissing) return otherwise();
    throw error;
  }
}
