import type { ExecutionState, StepCall, Usage } from './execution.ts';
import type { RunOutcome, RunStep } from './run.ts';
import { shownParameters, shownResult } from './shown.ts';

/** How an execution ended, as its record tells it. */
export function outcomeOf(status: RunOutcome['status'], { steps, error, reason }: ExecutionState): RunOutcome {
  return {
    status,
    text: steps.at(-1)?.text ?? '',
    steps: steps.map(({ text, calls }) => ({ text, calls: calls.flatMap(resultOf) })),
    usage: steps.reduce(
      (sum: Usage, { usage }) => ({
        inputTokens: sum.inputTokens + usage.inputTokens,
        outputTokens: sum.outputTokens + usage.outputTokens,
      }),
      { inputTokens: 0, outputTokens: 0 },
    ),
    ...(error !== undefined && { error }),
    ...(reason !== undefined && { reason }),
  };
}

function resultOf(call: StepCall): RunStep['calls'] {
  const { outcome } = call;
  return outcome ? [{ ...shownResult(call, outcome), parameters: shownParameters(call) }] : [];
}
