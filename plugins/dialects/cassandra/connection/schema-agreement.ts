import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../../../core/errors.ts';
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
