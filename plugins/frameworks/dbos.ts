import { SvcError } from '../../core/errors.ts';
import { type DurableTool, finalErrorOf, type StepCall, type StepOutcome, stepOutcome } from './durable.ts';
import { ANY_TIME_MS, type RequestedCall } from './shared.ts';

export type { DurableTool, StepCall, StepOutcome } from './durable.ts';
export type { RequestedCall } from './shared.ts';

/** The part of `DBOS` that the step uses. @experimental */
export interface DbosWorkflow {
  readonly workflowID: string | undefined;
  readonly stepStatus: { readonly cancelSignal?: AbortSignal | undefined } | undefined;
  runStep<T>(step: () => Promise<T>, config: StepConfig): Promise<T>;
}

interface StepConfig {
  readonly name: string;
  readonly retriesAllowed: boolean;
  readonly maxAttempts: number;
  readonly intervalSeconds: number;
  readonly backoffRate: number;
  readonly shouldRetry: (error: unknown) => boolean;
}

/** @experimental */
export interface DbosOptions {
  /** Called with each new or repeated request that waits; not awaited. */
  readonly onRequested?: ((request: RequestedCall) => unknown) | undefined;
}

/** An outage of the store does not end the workflow. */
const RETRIES = { retriesAllowed: true, maxAttempts: Number.MAX_SAFE_INTEGER, intervalSeconds: 2, backoffRate: 1 };

/**
 * Runs a tool in a workflow of DBOS, once its call is approved: one step, which a restarted process continues with the same
 * request. The tool runs at most once. A rejection is returned as an outcome. Throws `value_invalid` outside of a workflow.
 * @example const { status } = await approvalStep(DBOS, refund, { toolCallId: 'refund', parameters: { orderId, amount } })
 * @experimental
 */
export async function approvalStep(
  dbos: DbosWorkflow,
  tool: DurableTool,
  call: StepCall,
  { onRequested }: DbosOptions = {},
): Promise<StepOutcome> {
  const { workflowID } = dbos;
  if (workflowID === undefined) {
    throw new SvcError('value_invalid', `The tool "${tool.tag}" is called outside of a workflow.`, {
      why: 'A call is named by its workflow.',
      state: 'The tool did not run.',
      next: ['Call approvalStep in a function that DBOS.registerWorkflow returned.'],
    });
  }
  const named = { ...call, executionId: `dbos:${workflowID}` };
  // A single step, begun before anything is awaited: DBOS numbers the steps of a workflow, and calls may be decided in any order.
  return dbos.runStep(
    async () => {
      // A cancelled workflow leaves its request, because it may be resumed.
      const signal = dbos.stepStatus?.cancelSignal;
      const outcome = await tool.run(named, { signal, waitMs: ANY_TIME_MS, onRequested });
      if (outcome.expiresAt !== undefined) throw signal?.reason;
      return stepOutcome(outcome);
    },
    { ...RETRIES, name: `approval of ${call.toolCallId}`, shouldRetry: (error) => finalErrorOf(error) === undefined },
  );
}
