import { setTimeout as wait } from 'node:timers/promises';
import { announceDecision } from '../../core/approval/announce.ts';
import { LEASE_MS } from '../../core/approval/presence.ts';
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
  if (isPlanRequest({ agentTag, tool: body.tool })) {
    if (status === 'rejected') await announceDecision(service, row, await channelRoutes(runtime), signal);
  } else if (!(await service.presence.isAttended(row))) {
    await announceDecision(service, row, await channelRoutes(runtime), signal);
  } else if (status === 'approved' && !body.waiters?.includes(service.presence.id)) {
    void reportIfLost(runtime, service, row);
  }
}

/** A process that was killed seems to wait for a while. */
async function reportIfLost(runtime: Runtime, service: ApprovalService, { requestId }: ApprovalRow): Promise<void> {
  await wait(LEASE_MS, undefined, { ref: false, signal: AbortSignal.any([service.closing]) }).catch(() => undefined);
  if (service.closing.aborted) return;
  await service.report('The announcement', async (signal) => {
    const row = (await service.read(requestId))?.record;
    if (row?.body.run !== 'none' || row.body.outcome !== undefined || (await service.presence.isAttended(row))) return;
    await announceDecision(service, row, await channelRoutes(runtime), signal);
  });
}
