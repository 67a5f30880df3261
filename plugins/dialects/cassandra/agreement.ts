import { setTimeout as wait } from 'node:timers/promises';
import { SvcError } from '../../../core/errors.ts';
import type { Session } from './session.ts';

const FIRST_POLL_MS = 10;
const LONGEST_POLL_MS = 250;

/**
 * Waits until every node has the same schema. A dead one never agrees. Throws `schema_disagreement` naming those that
 * do not; the driver, asked for the same, would answer OK.
 */
export async function agreed(session: Session, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 2, LONGEST_POLL_MS)) {
    const others = await disagreeing(session);
    if (others.length === 0) return;
    if (performance.now() + pause > deadline) throw disagreement(others, timeoutMs);
    await wait(pause);
  }
}

async function disagreeing(session: Session): Promise<string[]> {
  const [local = [], peers = []] = await session.onOne([
    'SELECT schema_version FROM system.local',
    'SELECT peer, rpc_address, schema_version FROM system.peers',
  ]);
  const ours = String(local[0]?.schema_version);
  return (
    peers
      // A node that was removed leaves a row without a version.
      .filter(({ schema_version: theirs }) => theirs !== null && theirs !== undefined && String(theirs) !== ours)
      .map(({ rpc_address: address, peer }) => String(address ?? peer))
  );
}

function disagreement(nodes: readonly string[], timeoutMs: number): SvcError {
  return new SvcError('schema_disagreement', 'The nodes of the Cassandra cluster do not agree on the schema.', {
    why: `After ${timeoutMs} ms another schema than the others have: ${nodes.join(', ')}. A node that is down never agrees.`,
    next: [
      `Look at ${nodes.length === 1 ? 'that node' : 'those nodes'}: nodetool status, nodetool describecluster`,
      'Bring it up again, or remove it from the cluster; then run the command again.',
    ],
    details: { nodes },
  });
}
