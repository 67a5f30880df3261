import type { RequestRow } from '../../core/approval/service.ts';
import { SvcError } from '../../core/errors.ts';
import { commandOfPlan, type PlanDescription, type WaitingRequest } from '../../core/migration/plan-approver.ts';

export function pending(plan: PlanDescription, { requestId, expiresAt, url }: WaitingRequest): SvcError {
  const { database, environment, losses } = plan;
  return new SvcError(
    'approval_pending',
    `The plan for ${database} (${environment}) waits for approval: ${requestId}`,
    {
      ...(losses.length > 0 && { why: losses.slice(0, 3).join('; ') }),
      state: `Nothing was changed. The request is open until ${expiresAt}.`,
      next: [
        `${url ?? `svc approvals show ${requestId}`}    for those who decide`,
        commandOfPlan(plan) === undefined
          ? 'Make the same change again once it is approved.'
          : 'Run the command again once it is approved, or wait for the decision: --wait 30m',
      ],
      details: { requestId, expiresAt, ...(url !== undefined && { url }) },
    },
  );
}

export function rejected({ record: { requestId, body } }: RequestRow): SvcError {
  const { by = '', reason } = body.decision ?? {};
  return new SvcError('approval_rejected', `The plan was rejected by ${by}: ${requestId}`, {
    ...(reason !== undefined && { why: reason }),
    state: 'Nothing was changed.',
    next: [
      commandOfPlan(body.parameters) === undefined
        ? 'Change what the program does: the same change is requested again only after another migration.'
        : 'Change the migration. Or ask again, for the same plan: --ask-again',
    ],
    details: { requestId },
  });
}

/** The request of a run that waited for it. */
export function withdrawn({ record: { requestId, body } }: RequestRow): SvcError {
  const reason = body.decision?.reason;
  return new SvcError('approval_stale', `The request of the plan was withdrawn: ${requestId}`, {
    ...(reason !== undefined && { why: reason }),
    state: 'Nothing was changed.',
    next: ['Run the command again: it makes a new plan, and requests its approval.'],
    details: { requestId },
  });
}

/** Of a plan that nobody requests again while another one may be decided. */
export function replacedBy({ record: { requestId } }: RequestRow): SvcError {
  return new SvcError('approval_stale', `Another plan was requested in place of this one: ${requestId}`, {
    why: 'Its migrations are not those of this folder.',
    state: 'Nothing was changed. This plan is requested again once that one was decided and has run, or has expired.',
    next: [`svc approvals show ${requestId}    for those who decide`, 'Deploy the migrations of that plan.'],
    details: { requestId },
  });
}

export function notApproved(why: string): SvcError {
  return new SvcError('approval_stale', 'The plan is not approved.', {
    why,
    state: 'Nothing was changed.',
    next: ['Run the command again: it requests approval.'],
  });
}

export function tooLarge(): SvcError {
  return new SvcError('migration_too_large', 'The plan is too large for a request of approval.', {
    why: 'Those who decide read every statement, and a request has at most 256 KiB.',
    state: 'Nothing was changed.',
    next: ['Run it in parts: svc db migrate --to <tag>'],
  });
}
