import { lettingGo, reasonOf } from '../approval/passage.ts';
import { keptWords } from '../approval/words.ts';
import { isSvcError, SvcError, sentences } from '../errors.ts';
import { callTools } from './call-tools.ts';
import type { RunError, Step } from './execution.ts';
import { executionLost, type HeldExecution } from './held-execution.ts';
import { askModel } from './model-turn.ts';
import { outcomeOf } from './outcome.ts';
import type { Run, RunOutcome } from './run.ts';
import type { RunnableAgent } from './runnable.ts';
import { spanOf } from './span.ts';

/** Aborts a run that is over the time its agent allows. */
export class OverTime {
  readonly durationMs: number;

  constructor(durationMs: number) {
    this.durationMs = durationMs;
  }

  toString(): string {
    return `The run was over its time of ${this.durationMs} ms.`;
  }
}

/**
 * Model, tool calls, results, and again, from wherever the record says it stands. Throws `execution_lost`, and what
 * the store answers when it cannot be reached: then the record stays as it is, and whoever owns it next goes on.
 */
export function drive(agent: RunnableAgent, held: HeldExecution, run: Run, isResumed: boolean): Promise<RunOutcome> {
  const { tag, model } = agent.definition;
  return spanOf(`invoke_agent ${tag}`, { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': tag }, () =>
    drivenTo(agent, held, run, isResumed, model.model),
  );
}

async function drivenTo(
  agent: RunnableAgent,
  held: HeldExecution,
  run: Run,
  isResumed: boolean,
  model: string,
): Promise<RunOutcome> {
  const { state } = held;
  const signal = run.attempt();
  let resumed = isResumed;
  held.whenCancelled((reason) => run.abort(reason));
  await held.hold();
  for (;;) {
    if (state.steps.length > 0) {
      const step = state.steps[state.steps.length - 1] as Step;
      try {
        await callTools(agent, held, run, step, { signal, resumed });
      } catch (error) {
        // The gate let go because it was told to.
        if (isSvcError(error) && error.code === 'interrupted') return stopped(held, signal);
        throw error;
      }
      resumed = false;
      // Not by this run: whoever cancelled its requests may want it cancelled, which a write meets.
      if (!signal.aborted && step.calls.some(({ outcome }) => outcome?.status === 'cancelled')) await held.save();
      if (signal.aborted) return stopped(held, signal);
      if (step.calls.length === 0) return ended(held, 'completed');
    }
    if (signal.aborted) return stopped(held, signal);
    if (state.steps.length >= state.limits.steps) {
      return failed(held, { code: 'run_too_long', message: `The model took its ${state.limits.steps} turns.` });
    }
    await held.hold();
    try {
      const attributes = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': model };
      const step = await spanOf(`chat ${model}`, attributes, async () =>
        askModel(await agent.model(), agent.definition, state, signal, (text) => run.emit({ type: 'text', text })),
      );
      state.steps.push(step);
    } catch (error) {
      if (signal.aborted) return stopped(held, signal);
      return failed(held, modelError(error));
    }
    // A turn without calls is the last: it is stored together with the end.
    if ((state.steps.at(-1)?.calls.length ?? 0) > 0) await held.save();
  }
}

/** Cancelled by somebody, over its time, or let go of because the client closes: then nothing is written. */
async function stopped(held: HeldExecution, signal: AbortSignal): Promise<RunOutcome> {
  const reason: unknown = signal.reason;
  // Only this attempt was ended, and the next one finds what this one left: a run that is stopped too ends there.
  const left = lettingGo(signal);
  if (!signal.aborted || left === 'for now') throw executionLost(held.executionId);
  if (left === 'for good') {
    throw new SvcError('interrupted', 'The client was closed while the run was going on.', {
      state: `The execution ${held.executionId} is stored as far as it had come.`,
      next: [`svc.agents.resume('${held.executionId}')`],
    });
  }
  if (reason instanceof OverTime) return failed(held, { code: 'run_too_long', message: String(reason) });
  held.state.reason = reasonOf(signal);
  return ended(held, 'cancelled');
}

function failed(held: HeldExecution, error: RunError): Promise<RunOutcome> {
  held.state.error = error;
  return ended(held, 'failed');
}

async function ended(held: HeldExecution, status: RunOutcome['status']): Promise<RunOutcome> {
  return outcomeOf(await held.end(status), held.state);
}

function modelError(error: unknown): RunError {
  if (!isSvcError(error)) return { code: 'model_failed', message: keptWords(error) };
  return { code: error.code, message: keptWords(sentences(error)) };
}
