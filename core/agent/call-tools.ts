import { kept } from '../approval/execute.ts';
import { type CallOutcome, failed, invalid, jsonResult, notRun, tooLargeFor } from '../approval/outcome.ts';
import { lettingGo } from '../approval/passage.ts';
import type { Parameters } from '../approval/request.ts';
import { SvcError } from '../errors.ts';
import type { Step, StepCall } from './execution.ts';
import type { HeldExecution } from './held-execution.ts';
import { storableJson } from './own-json.ts';
import type { Run } from './run.ts';
import type { RunnableAgent } from './runnable.ts';
import { shownParameters, shownResult } from './shown.ts';
import { toolSpan } from './span.ts';

/** Runs the calls of a turn, each as soon as it may; returns when all have a result, or none will get one any more. */
export async function callTools(
  agent: RunnableAgent,
  held: HeldExecution,
  run: Run,
  step: Step,
  { signal, resumed }: { readonly signal: AbortSignal; readonly resumed: boolean },
): Promise<void> {
  let first: { readonly error: unknown } | undefined;
  const open = step.calls.filter((call) => !call.outcome);
  const groupId = step.calls.length > 1 ? step.calls[0]?.requestId : undefined;
  const one = async (call: StepCall): Promise<void> => {
    const { tool } = call;
    // What had not begun when the run was stopped does not; what waits is cancelled, and what has ended is told.
    if (signal.aborted && !call.started && !(await agent.hasRequest(call.requestId))) return;
    run.emit({ type: 'tool_call', tool, parameters: shownParameters(call) });
    const outcome = await toolSpan({ tool, callId: call.id, agentTag: agent.definition.tag }, () =>
      outcomeOf(agent, held, run, call, { signal, resumed, groupId }),
    );
    const { changed, ...told } = plain(call, outcome);
    const { status, result } = kept(told, tool);
    call.outcome = { status, result, ...(changed !== undefined && { changed }) };
    // Of an approved call the gate has kept the result; this one is only here.
    if (call.started) await held.save();
    run.emit({ type: 'tool_result', ...shownResult(call, call.outcome) });
  };
  // Those that wait stop when the store fails one of them; none is left running unseen.
  await Promise.all(
    open.map((call) =>
      one(call).catch((error: unknown) => {
        first ??= { error };
        run.interrupt();
      }),
    ),
  );
  if (first) throw first.error;
}

async function outcomeOf(
  agent: RunnableAgent,
  held: HeldExecution,
  run: Run,
  call: StepCall,
  options: { readonly signal: AbortSignal; readonly resumed: boolean; readonly groupId: string | undefined },
): Promise<CallOutcome> {
  const { tool, parameters, requestId } = call;
  const { signal, resumed, groupId } = options;
  if (call.oversized) return tooLargeFor(tool);
  if (call.malformed !== undefined) {
    return invalid('invalid_parameters', `The parameters cannot be used: ${call.malformed}.`, tool);
  }
  if (call.started && !(await mayRunAgain(agent, call))) {
    return notRun('interrupted', { tool, parameters: parameters as Parameters });
  }
  let isAsked = false;
  const group = groupId === undefined ? {} : { groupId };
  return agent.gate.call(
    { tool, parameters, executionId: held.executionId, requestId, ...group },
    {
      signal,
      resumed,
      onRequested(request) {
        isAsked = true;
        run.emit({ type: 'approval_requested', request });
      },
      onDecided(record) {
        isAsked = true;
        run.emit({ type: 'approval_decided', record });
      },
      async beforeRun() {
        await held.hold();
        // Of an approved call the claim says that it began: nothing is written here that would meet a wish to cancel.
        if (isAsked) return held.look();
        if (signal.aborted) throw notBegun(held.executionId);
        // One that may be run again needs no trace.
        if (call.started || agent.definition.tools.get(tool)?.idempotent) return;
        call.started = true;
        await held.save();
        // A client that only closes waits for what is said to have begun.
        const isStopped = signal.aborted && lettingGo(signal) === undefined;
        if (held.state.cancel !== undefined || isStopped) throw notBegun(held.executionId);
      },
    },
  );
}

function notBegun(executionId: string): SvcError {
  return new SvcError('interrupted', 'The run was stopped before the call began.', {
    state: 'The tool did not run.',
    details: { executionId },
  });
}

/** What a handler gave without the gate storing it, as the execution can. */
function plain({ tool, parameters }: StepCall, outcome: CallOutcome): CallOutcome {
  if (outcome.requestId !== undefined) return outcome;
  const result = jsonResult(outcome.result);
  if (result !== undefined) return { ...outcome, result: storableJson(result) };
  return failed(new Error('It returned what is not JSON.'), { tool, parameters: parameters as Parameters });
}

/** A handler that had begun when its process died. The gate knows about those that were approved. */
async function mayRunAgain(agent: RunnableAgent, { tool, requestId }: StepCall): Promise<boolean> {
  return agent.definition.tools.get(tool)?.idempotent === true || agent.hasRequest(requestId);
}
