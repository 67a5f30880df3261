import { abortReason, detachKind } from '../approval/call.ts';
import { describeError, isSvcError, SvcError } from '../errors.ts';
import { truncatedText } from '../tool/safe-json.ts';
import type { AgentRuntime } from './agent-runtime.ts';
import { callTools } from './call-tools.ts';
import type { RunError } from './execution-record.ts';
import { executionLostError, type LeasedExecution } from './leased-execution.ts';
import { requestModelTurn } from './model-turn.ts';
import { type Run, type RunOutcome, runOutcome } from './run.ts';
import { withSpan } from './telemetry.ts';

/** The abort reason of a run that exceeds the time limit of its agent. */
export class RunTimeout extends Error {
  override readonly name = 'RunTimeout';

  constructor(durationMs: number) {
    super(`The run exceeded its time limit of ${durationMs} ms.`);
  }
}

export const isRunTimeout = (reason: unknown): reason is RunTimeout =>
  reason instanceof Error && reason.name === 'RunTimeout';

/**
 * Alternates model turns and tool calls, from the last stored step to the end. Throws `execution_lost` and store
 * errors; the stored execution is then unchanged, and its next owner resumes it.
 */
export function runLoop(agent: AgentRuntime, execution: LeasedExecution, run: Run): Promise<RunOutcome> {
  const { tag } = agent.definition;
  return withSpan(`invoke_agent ${tag}`, { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': tag }, () =>
    loop(agent, execution, run),
  );
}

async function loop(agent: AgentRuntime, execution: LeasedExecution, run: Run): Promise<RunOutcome> {
  const { state } = execution;
  const { model } = agent.definition.model;
  const signal = run.startAttempt();
  execution.onCancelRequested((reason) => run.abort(reason));
  await execution.assertLease();
  // Calls of a stored step may have been started by an earlier owner.
  let resumed = true;
  for (;;) {
    const step = state.steps.at(-1);
    if (step) {
      try {
        await callTools(agent, execution, run, step, { signal, resumed });
      } catch (error) {
        // The gate detached because the signal was aborted.
        if (isSvcError(error) && error.code === 'interrupted') return stop(execution, signal);
        throw error;
      }
      // A cancelled request may mean that the execution was cancelled as well. A write detects that.
      if (!signal.aborted && step.calls.some(({ outcome }) => outcome?.status === 'cancelled')) await execution.save();
      if (signal.aborted) return stop(execution, signal);
      if (step.calls.length === 0) return finish(execution, 'completed');
    }
    resumed = false;
    if (signal.aborted) return stop(execution, signal);
    if (state.steps.length >= state.limits.steps) {
      return fail(execution, {
        code: 'run_too_long',
        message: `The model reached its limit of ${state.limits.steps} turns.`,
      });
    }
    await execution.assertLease();
    try {
      const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': model };
      const next = await withSpan(`chat ${model}`, attributes, () =>
        requestModelTurn(agent.model, agent.definition, state, signal, (text) => run.emit({ type: 'text', text })),
      );
      state.steps.push(next);
    } catch (error) {
      if (signal.aborted) return stop(execution, signal);
      return fail(execution, modelError(error));
    }
    // A turn without calls is the last one. It is stored together with the outcome.
    if ((state.steps.at(-1)?.calls.length ?? 0) > 0) await execution.save();
  }
}

/** Ends an aborted run: cancelled, over its time limit, or detached. A detached execution is left as it is stored. */
async function stop(execution: LeasedExecution, signal: AbortSignal): Promise<RunOutcome> {
  const reason: unknown = signal.reason;
  const kind = detachKind(signal);
  // Only this attempt was aborted. The next one resumes from the stored steps.
  if (!signal.aborted || kind === 'temporary') throw executionLostError(execution.executionId);
  if (kind === 'final') {
    throw new SvcError('interrupted', 'The client was closed during the run.', {
      state: `The execution ${execution.executionId} is stored up to its last step.`,
      next: [`svc.agents.resume('${execution.executionId}')`],
    });
  }
  if (isRunTimeout(reason)) return fail(execution, { code: 'run_too_long', message: reason.message });
  execution.state.reason = abortReason(signal);
  return finish(execution, 'cancelled');
}

function fail(execution: LeasedExecution, error: RunError): Promise<RunOutcome> {
  execution.state.error = error;
  return finish(execution, 'failed');
}

async function finish(execution: LeasedExecution, status: RunOutcome['status']): Promise<RunOutcome> {
  return runOutcome(await execution.finish(status), execution.state);
}

function modelError(error: unknown): RunError {
  if (!isSvcError(error)) return { code: 'model_failed', message: truncatedText(error) };
  return { code: error.code, message: truncatedText(describeError(error)) };
}
