import { isRetryable } from '../../core/approval/backend.ts';
import { DeliveryFailed } from '../../core/approval/channel.ts';
import { decide, isDecisionRefusal } from '../../core/approval/decide.ts';
import { parseDecision } from '../../core/approval/parse-decision.ts';
import { callbackToken, isIssuedFor, tokensEqual } from '../../core/approval/token.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import { problemText, type Shape, shapeProblems } from '../../core/validate-shape.ts';
import type { Runtime } from '../load/runtime.ts';
import { type ApprovalRuntime, openApprovals } from './approval-runtime.ts';
import { requireCallbackKey, tokenClaims } from './callback/token.ts';

/** A decision in the queue, see docs/reference/approvals.md. */
interface BrokerDecision {
  readonly requestId: string;
  readonly token: string;
  readonly approved: boolean;
  readonly reason?: string | null;
  readonly modifiedParams?: ToolParameters | null;
}

const DECISION_SHAPE: Shape = {
  properties: {
    requestId: 'string',
    token: 'string',
    approved: 'boolean',
    reason: { nullable: 'string' },
    modifiedParams: { nullable: { map: 'json' } },
  },
  required: ['requestId', 'token', 'approved'],
};

const ACTOR = 'broker token, unverified';
const RETRY_DELAY_MS = 1_000;

/** The queue that receives the decisions of a product and environment. Dots in their names are escaped. */
export const decisionQueue = ({ product, env }: { readonly product: string; readonly env: string }): string =>
  ['svc.approvals.decisions', ...[product, env].map((name) => name.replaceAll('.', '%2E'))].join('.');

/**
 * Consumes decisions from the broker of `approvals.decisions`. Returns a stop function; undefined without such a broker.
 * Invalid messages go to the dead-letter queue, and `onDeadLetter` receives a sentence with the code of the error; during a
 * store outage a decision is retried.
 */
export async function consumeDecisions(
  runtime: Runtime,
  onDeadLetter: (sentence: string) => void = (sentence) => process.emitWarning(sentence, 'SvcWarning'),
): Promise<(() => Promise<void>) | undefined> {
  const { decisions } = runtime.config.approvals ?? {};
  if (!decisions) return undefined;
  const key = requireCallbackKey('approvals.decisions', runtime.config);
  const broker = await runtime.broker(decisions.broker);
  if (!broker.consume) {
    throw new SvcError('not_supported', `The broker "${decisions.broker}" cannot consume messages.`, {
      next: ['Use another broker for approvals.decisions, or the callback.'],
    });
  }
  const approvals = await openApprovals(runtime);
  const queue = decisionQueue(runtime);
  return broker.consume(queue, async (body) => {
    try {
      await applyDecision(approvals, key, body);
    } catch (error) {
      if (isDecisionRefusal(error) || !isRetryable(error)) {
        const code = isSvcError(error) ? error.code : 'bug';
        onDeadLetter(`A message in ${queue} was not accepted as a decision (${code}) and becomes a dead letter.`);
        throw error;
      }
      throw new DeliveryFailed('the approval store is not available', { afterMs: RETRY_DELAY_MS });
    }
  });
}

async function applyDecision({ service, owner }: ApprovalRuntime, key: string, body: Uint8Array): Promise<void> {
  const decision = parseDecision(body);
  const problems = shapeProblems(decision, DECISION_SHAPE);
  if (problems.length > 0) throw invalidDecision(problems.map(problemText).join(' '));
  const { requestId, token, approved, reason, modifiedParams } = decision as BrokerDecision;
  const row = isIssuedFor(key, token, { ...owner, requestId }) ? await service.read(requestId) : undefined;
  if (!row || !tokensEqual(token, callbackToken(key, tokenClaims(owner, row)))) {
    throw invalidDecision('No request has this id and this token.');
  }
  await decide(
    service,
    {
      signal: approved ? 'approve' : 'reject',
      payload: { requestId, reason, modifiedParams },
    },
    { actor: ACTOR },
    row,
  );
}

function invalidDecision(why: string): SvcError {
  return new SvcError('decision_invalid', 'A decision from the broker is not valid.', { why });
}
