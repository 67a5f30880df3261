import { detachKind } from '../approval/call.ts';
import {
  type CallResult,
  failedOutcome,
  invalidOutcome,
  notRunOutcome,
  parametersTooLargeOutcome,
  storableOutcome,
} from '../approval/outcome.ts';
import { SvcError } from '../errors.ts';
import { isPlainObject } from '../json.ts';
import { maskSensitive } from '../tool/mask-sensitive.ts';
import { jsonResult, NOT_SERIALIZABLE } from '../tool/model-result.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import { storableJson } from '../tool/safe-json.ts';
import type { AgentRuntime } from './agent-runtime.ts';
import type { ExecutionStep, StepCall } from './execution-record.ts';
import type { LeasedExecution } from './leased-execution.ts';
import { type Run, redactParameters, redactResult, withForModel } from './run.ts';
import { withToolSpan } from './telemetry.ts';

interface StepOptions {
  readonly signal: AbortSignal;
  /** True if an earlier owner of the execution may have started the calls. */
  readonly resumed: boolean;
}

interface CallOfStep extends StepOptions {
  readonly groupId: string | undefined;
  readonly modelText: string;
}

const maskText = (text: string, { sensitive, parameters }: StepCall): string =>
  isPlainObject(parameters) ? maskSensitive(text, sensitive, parameters as ToolParameters) : text;

/** Runs the tool calls of a step concurrently, each as soon as it may. Returns when all have ended or the run stops. */
export async function callTools(
  agent: AgentRuntime,
  execution: LeasedExecution,
  run: Run,
  step: ExecutionStep,
  { signal, resumed }: StepOptions,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  const open = step.calls.filter((call) => !call.outcome);
  const groupId = step.calls.length > 1 ? step.calls[0]?.requestId : undefined;
  // The text is about all calls of the step.
  const modelText = step.calls.reduce(maskText, step.text);
  const complete = async (call: StepCall): Promise<void> => {
    const { tool } = call;
    // After a stop no new call starts. Calls that have started or have a request still get their outcome.
    if (signal.aborted && !call.started && !(await agent.hasRequest(call.requestId))) return;
    run.emit({ type: 'tool_call', tool, parameters: redactParameters(call) });
    const outcome = await withToolSpan({ tool, callId: call.id, agentTag: agent.definition.tag }, () =>
      callTool(agent, execution, run, call, { signal, resumed, groupId, modelText }),
    );
    const { changed, executedWith, ...ended } = withJsonResult(call, outcome);
    const { status, result } = storableOutcome(ended, tool);
    const change = { ...(changed && { changed }), ...(executedWith && { executedWith }) };
    call.outcome = { status, result, ...change };
    // The gate has stored the result of an approved call. The result of any other call is stored only here.
    if (call.started) await execution.save();
    run.emit(withForModel({ type: 'tool_result' as const, ...redactResult(call, call.outcome) }));
  };
  // If the store fails for one call, the others are interrupted and awaited.
  await Promise.all(
    open.map((call) =>
      complete(call).catch((error: unknown) => {
        failure ??= { error };
        run.interrupt();
      }),
    ),
  );
  if (failure) throw failure.error;
}

async function callTool(
  agent: AgentRuntime,
  execution: LeasedExecution,
  run: Run,
  call: StepCall,
  { signal, resumed, groupId, modelText }: CallOfStep,
): Promise<CallResult> {
  const { tool, parameters, requestId } = call;
  if (call.oversized) return parametersTooLargeOutcome(tool);
  if (call.malformed !== undefined) {
    return invalidOutcome('invalid_parameters', `The parameters cannot be used: ${call.malformed}.`, tool);
  }
  if (call.started && !(await canRunAgain(agent, call))) {
    return notRunOutcome('interrupted', { tool, parameters: parameters as ToolParameters });
  }
  let hasRequest = false;
  const { requester } = execution.state;
  const { provider, model } = agent.definition.model;
  const more = {
    ...(groupId !== undefined && { groupId }),
    ...(requester !== undefined && { requester }),
    model: `${provider}/${model}`,
    modelText,
  };
  return agent.gate.call(
    { tool, parameters, executionId: execution.executionId, requestId, ...more },
    {
      signal,
      resumed,
      onRequested(request) {
        hasRequest = true;
        run.emit({ type: 'approval_requested', request });
      },
      onDecided(record) {
        hasRequest = true;
        run.emit({ type: 'approval_decided', record });
      },
      async beforeRun() {
        await execution.assertLease();
        // The gate records the start of an approved call, so no write here would find a cancellation.
        if (hasRequest) return execution.refresh();
        if (signal.aborted) throw stoppedBeforeCallError(execution.executionId);
        // The start of a call that may run again need not be stored.
        if (call.started || agent.definition.tools.get(tool)?.idempotent) return;
        call.started = true;
        await execution.save();
        // A client that is only closing waits for calls that are stored as started.
        const isStopped = signal.aborted && detachKind(signal) === undefined;
        if (execution.state.cancel !== undefined || isStopped) throw stoppedBeforeCallError(execution.executionId);
      },
    },
  );
}

function stoppedBeforeCallError(executionId: string): SvcError {
  return new SvcError('interrupted', 'The run was stopped before the call began.', {
    state: 'The tool did not run.',
    details: { executionId },
  });
}

/** The outcome with its result as storable JSON. The gate has already converted the result of an approved call. */
function withJsonResult({ tool, parameters }: StepCall, outcome: CallResult): CallResult {
  if (outcome.requestId !== undefined) return outcome;
  const result = jsonResult(outcome.result);
  if (result !== undefined) return { ...outcome, result: storableJson(result) };
  return failedOutcome(new Error(NOT_SERIALIZABLE), { tool, parameters: parameters as ToolParameters });
}

/** Whether a call that had started when its process died may be passed to the gate, which tracks its own claims. */
async function canRunAgain(agent: AgentRuntime, { tool, requestId }: StepCall): Promise<boolean> {
  return agent.definition.tools.get(tool)?.idempotent === true || agent.hasRequest(requestId);
}
