import { DeliveryFailed } from '../core/approval/channel.ts';
import { mayPass } from '../core/approval/home.ts';
import type { Parameters } from '../core/approval/request.ts';
import { decide, isDecisionRefusal } from '../core/approval/signal.ts';
import { callbackToken, sameToken } from '../core/approval/token.ts';
import { SvcError } from '../core/errors.ts';
import { problemText, type Shape, shapeProblems } from '../core/schema/shape.ts';
import { type ApprovalRuntime, loadApprovals } from './approval-runtime.ts';
import { factsOf } from './callback/handler.ts';
import { callbackKeyFor } from './callback-key.ts';
import type { Runtime } from './runtime.ts';

/** SPEC 2.6, with the request it decides and that request's token. */
interface BrokerDecision {
  readonly requestId: string;
  readonly token: string;
  readonly approved: boolean;
  readonly reason?: string;
  readonly modifiedParams?: Parameters;
}

const DECISION: Shape = {
  properties: {
    requestId: 'string',
    token: 'string',
    approved: 'boolean',
    reason: 'string',
    modifiedParams: { map: 'json' },
  },
  required: ['requestId', 'token', 'approved'],
};

const ACTOR = 'broker token, unverified';
const STORE_PAUSE_MS = 1_000;

/** The queue that decisions of a product and environment come back on. */
export const decisionQueue = ({ product, env }: { readonly product: string; readonly env: string }): string =>
  `svc.approvals.decisions.${product}.${env}`;

/**
 * Takes decisions from the broker that `approvals.decisions` names, until what it gives is called. What cannot be used
 * is put aside by the broker; while the store is out of reach or takes nothing a decision waits. Undefined where the
 * configuration says nothing of it.
 */
export async function takeDecisions(runtime: Runtime): Promise<(() => Promise<void>) | undefined> {
  const { decisions } = runtime.config.approvals ?? {};
  if (!decisions) return undefined;
  const key = callbackKeyFor('approvals.decisions', runtime.config);
  const broker = await runtime.broker(decisions.broker);
  if (!broker.consume) {
    throw new SvcError('not_supported', `The broker "${decisions.broker}" hands on no messages.`, {
      next: ['Use another broker for approvals.decisions, or the callback.'],
    });
  }
  const approvals = await loadApprovals(runtime);
  return broker.consume(decisionQueue(runtime), async (body) => {
    try {
      await take(approvals, key, body);
    } catch (error) {
      if (isDecisionRefusal(error) || !mayPass(error)) throw error;
      throw new DeliveryFailed('the store of the approvals cannot be used', { afterMs: STORE_PAUSE_MS });
    }
  });
}

async function take({ desk, owner }: ApprovalRuntime, key: string, body: unknown): Promise<void> {
  const problems = shapeProblems(body, DECISION);
  if (problems.length > 0) throw invalid(problems.map(problemText).join(' '));
  const { requestId, token, approved, reason, modifiedParams } = body as BrokerDecision;
  const row = await desk.read(requestId);
  if (!row || !sameToken(token, callbackToken(key, factsOf(owner, row)))) {
    throw invalid('No request has that id and that token.');
  }
  await decide(
    desk,
    {
      executionId: row.record.executionId,
      signal: approved ? 'approve' : 'reject',
      payload: { requestId, ...(reason !== undefined && { reason }), ...(modifiedParams && { modifiedParams }) },
    },
    { actor: ACTOR },
  );
}

function invalid(why: string): SvcError {
  return new SvcError('decision_invalid', 'A decision from the broker cannot be used.', { why });
}
