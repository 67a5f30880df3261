import type { Plugin } from '../../core/kernel.ts';
import { type DurableTool, finalErrorOf, type StepCall, type StepOutcome, stepOutcome } from './durable.ts';
import type { RequestedCall } from './shared.ts';
import type { TemporalActivity, TemporalWorkflow } from './temporal-types.ts';

// Workflows import this module, so it imports nothing else at run time.

export type { DurableTool, StepCall, StepOutcome } from './durable.ts';
export type { RequestedCall } from './shared.ts';
export type { TemporalActivity, TemporalWorkflow } from './temporal-types.ts';

/** @experimental */
export interface TemporalOptions {
  /** Milliseconds after which the request is read again at the latest, if no signal came. Default: an hour. */
  readonly checkMs?: number;
  /** Options of the activities. By default a tool may run for an hour, and a lost worker is noticed after 30 seconds. */
  readonly activity?: { readonly startToCloseTimeout?: number; readonly heartbeatTimeout?: number };
}

/** A call as the activities receive it. @experimental */
export interface TemporalCall extends StepCall {
  readonly tool: string;
  readonly executionId: string;
}

/** The activities of `approvalStep`. @experimental */
export interface ApprovalActivities {
  /** Runs the tool, if its call is approved or needs no approval. Milliseconds until the request expires, while it waits. */
  svcRun(call: TemporalCall): Promise<StepOutcome | number>;
  svcCancel(call: TemporalCall): Promise<void>;
}

const HOUR_MS = 3_600_000;
const FIRST_CHECK_MS = 15_000;
/** The clock of the engine may be ahead of the store's. */
const SHORTEST_CHECK_MS = 1_000;
const HEARTBEAT_TIMEOUT_MS = 30_000;
const HEARTBEAT_MS = 4_000;

const EXECUTION = /^temporal:(.+):([^:]+)$/s;
const signalOf = (toolCallId: string) => `svc:${toolCallId}`;

/**
 * Runs a tool in a workflow of Temporal, once its call is approved. Its request is the truth: a signal only says that it is
 * worth reading. The tool runs at most once. A rejection is returned as an outcome. A workflow that is cancelled cancels a
 * request that waits.
 * @example const { status } = await approvalStep(workflow, 'refund', { toolCallId: 'refund', parameters: { orderId, amount } })
 * @experimental
 */
export async function approvalStep(
  workflow: TemporalWorkflow,
  tool: string,
  call: StepCall,
  { checkMs = HOUR_MS, activity }: TemporalOptions = {},
): Promise<StepOutcome> {
  const { workflowId, runId } = workflow.workflowInfo();
  const named = { ...call, tool, executionId: `temporal:${workflowId}:${runId}` };
  const { svcRun, svcCancel } = workflow.proxyActivities({
    startToCloseTimeout: HOUR_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    ...activity,
  } as never) as ApprovalActivities;
  let isSignalled = false;
  workflow.setHandler(workflow.defineSignal(signalOf(call.toolCallId)) as never, () => {
    isSignalled = true;
  });
  try {
    for (let pause = Math.min(FIRST_CHECK_MS, checkMs); ; ) {
      isSignalled = false;
      const ended = await svcRun(named);
      if (typeof ended !== 'number') return ended;
      const until = Math.min(pause, Math.max(ended, SHORTEST_CHECK_MS));
      if (!(await workflow.condition(() => isSignalled, until))) pause = Math.min(pause * 2, checkMs);
    }
  } catch (error) {
    if (workflow.isCancellation(error)) await workflow.CancellationScope.nonCancellable(() => svcCancel(named));
    throw error;
  }
}

/**
 * The activities of `approvalStep`, for the worker. The first argument is `@temporalio/activity`.
 * @example Worker.create({ activities: { ...own, ...approvalActivities(activity, [refund]) }, … })
 * @experimental
 */
export function approvalActivities(
  { heartbeat, ApplicationFailure }: TemporalActivity,
  tools: readonly DurableTool[],
  { onRequested }: { readonly onRequested?: ((request: RequestedCall) => unknown) | undefined } = {},
): ApprovalActivities {
  const attempt = async <T>({ tool: tag }: TemporalCall, work: (tool: DurableTool) => Promise<T>): Promise<T> => {
    const timer = setInterval(() => heartbeat(), HEARTBEAT_MS);
    try {
      const tool = tools.find((one) => one.tag === tag);
      if (tool === undefined) throw new Error(`This worker has no tool "${tag}".`);
      return await work(tool);
    } catch (error) {
      const code = finalErrorOf(error);
      throw code === undefined ? error : ApplicationFailure.nonRetryable(String((error as Error).message), code);
    } finally {
      clearInterval(timer);
    }
  };
  return {
    svcRun: (call) =>
      attempt(call, async (tool) => {
        const outcome = await tool.run(call, { waitMs: 0, onRequested });
        return outcome.expiresAt === undefined ? stepOutcome(outcome) : Date.parse(outcome.expiresAt) - Date.now();
      }),
    svcCancel: (call) =>
      attempt(call, async (tool) => {
        if ((await tool.request(call))?.status !== 'waiting') return;
        await tool.run(call, { signal: AbortSignal.abort('The workflow was cancelled.') });
      }),
  };
}

/**
 * A plugin for the configuration of the processes that decide: it signals the workflow of a request once that is decided.
 * @example wakeUps((id, runId, signal) => client.workflow.getHandle(id, runId).signal(signal))
 * @experimental
 */
export function wakeUps(send: (workflowId: string, runId: string, signal: string) => Promise<unknown>): Plugin {
  const name = 'temporal-wake-ups';
  return {
    name,
    api: 1,
    apply: ({ hooks }) =>
      hooks.approvalDecided.tapPromise(name, async ({ executionId, toolCallId = '', status }) => {
        const [, workflowId, runId] = EXECUTION.exec(executionId) ?? [];
        if (workflowId === undefined || runId === undefined || status === 'cancelled') return;
        await send(workflowId, runId, signalOf(toolCallId));
      }),
  };
}
