import { setTimeout as wait } from 'node:timers/promises';
import { announceDecision } from '../../core/approval/announce.ts';
import type { ApprovalRow } from '../../core/approval/schema.ts';
import type { ApprovalService } from '../../core/approval/service.ts';
import { isPlanRequest } from '../../core/migration/plan-approver.ts';
import type { Runtime } from '../load/runtime.ts';
import { channelRoutes } from './delivery-routes.ts';

/**
 * Reports a decision that this process has stored to the channels of the configuration, if no process does that: one that
 * waits for the decision reports it, and the run of an approved plan.
 */
export async function reportDecision(
  runtime: Runtime,
  service: ApprovalService,
  row: ApprovalRow,
  signal: AbortSignal,
): Promise<void> {
  const { agentTag, status, body } = row;
  if (Object.keys(runtime.config.approvals?.channels ?? {}).length === 0) return;
  const announce = async () => announceDecision(service, row, await channelRoutes(runtime), signal);
  if (isPlanRequest({ agentTag, tool: body.tool })) {
    if (status === 'rejected') await announce();
    return;
  }
  // A request of an earlier version does not say which processes wait.
  if (!body.waiters || body.waiters.includes(service.presence.id)) return;
  const until = await service.presence.attendedUntil(row);
  if (until === undefined) await announce();
  else if (status === 'approved') void reportIfLost(runtime, service, row, until);
}

/** A process that was killed seems to wait for a while. */
async function reportIfLost(
  runtime: Runtime,
  service: ApprovalService,
  { requestId }: ApprovalRow,
  until: number,
): Promise<void> {
  const left = Math.max(0, service.clock.msUntil(until)) + 1_000;
  await wait(left, undefined, { ref: false, signal: AbortSignal.any([service.closing]) }).catch(() => undefined);
  if (service.closing.aborted) return;
  await service.report('The announcement', async (signal) => {
    const row = (await service.read(requestId))?.record;
    const isLost = row?.body.run === 'none' && row.body.outcome === undefined;
    if (!isLost || (await service.presence.attendedUntil(row)) !== undefined) return;
    await announceDecision(service, row, await channelRoutes(runtime), signal);
  });
}
