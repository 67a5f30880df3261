import type { AgentRuntime } from '../../core/agent/agent-runtime.ts';
import type { CompiledAgent } from '../../core/agent/define.ts';
import type { ExecutionService } from '../../core/agent/execution-service.ts';
import { Run } from '../../core/agent/run.ts';
import { principalProblems } from '../../core/approval/principal.ts';
import { newExecutionId } from '../../core/approval/request.ts';
import { SvcError } from '../../core/errors.ts';
import { onAbort } from '../../core/on-abort.ts';
import { problemText, type Shape, shapeProblems } from '../../core/validate-shape.ts';

/** @experimental */
export interface RunRequest {
  readonly prompt: string;
  /** The id of the person who starts it: where a rule applies, that person cannot decide its tool calls. */
  readonly requester?: string | undefined;
  /** Aborting cancels the run. */
  readonly signal?: AbortSignal | undefined;
}

/** An agent whose configuration has been read and whose store is open. */
export interface ReadyAgent {
  readonly agent: AgentRuntime;
  readonly executions: ExecutionService;
}

/** A defined agent. @experimental */
export interface Agent {
  readonly tag: string;
  readonly name: string;
  /** Starts an execution and returns at once; the run reports later errors. Throws `run_invalid`. */
  run(request: RunRequest): Run;
}

/**
 * The return value of `define`, usable at once. Awaiting it checks the agent against the configuration; otherwise the
 * first run does.
 * @experimental
 */
export class DefinedAgent implements Agent, PromiseLike<Agent> {
  readonly tag: string;
  readonly name: string;
  readonly #check: () => Promise<unknown>;
  readonly #ready: () => Promise<ReadyAgent>;

  constructor({ tag, name }: CompiledAgent, check: () => Promise<unknown>, ready: () => Promise<ReadyAgent>) {
    this.tag = tag;
    this.name = name;
    this.#check = check;
    this.#ready = ready;
  }

  run(request: RunRequest): Run {
    const { prompt, requester, signal } = assertRunRequest(request);
    const run = new Run(newExecutionId());
    const abort = (): void => run.abort(signal?.reason ?? 'The signal was aborted.');
    if (signal?.aborted) abort();
    const removeListener = signal && onAbort(signal, abort);
    if (removeListener) run.result.then(removeListener, removeListener);
    this.#ready().then(
      ({ executions, agent }) => executions.start(agent, run, prompt, requester),
      (error) => run.detach(error),
    );
    return run;
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting a definition checks its configuration.
  then<A = Agent, B = never>(
    onFulfilled?: ((agent: Agent) => A | PromiseLike<A>) | null,
    onRejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const { tag, name } = this;
    const agent: Agent = { tag, name, run: (request) => this.run(request) };
    return this.#check()
      .then(() => agent)
      .then(onFulfilled, onRejected);
  }
}

const REQUEST_SHAPE: Shape = {
  properties: { prompt: 'string', requester: 'string', signal: 'any' },
  required: ['prompt'],
};

function assertRunRequest(request: RunRequest): RunRequest {
  const problems = shapeProblems(request, REQUEST_SHAPE);
  if (problems.length === 0 && request.prompt.trim() === '') problems.push({ path: ['prompt'], text: 'is empty' });
  if (problems.length === 0 && request.requester !== undefined)
    problems.push(
      ...principalProblems({ id: request.requester }, []).map(({ text }) => ({ path: ['requester'], text })),
    );
  if (problems.length === 0 && request.signal !== undefined && !(request.signal instanceof AbortSignal)) {
    problems.push({ path: ['signal'], text: 'is not an AbortSignal' });
  }
  if (problems.length === 0) return request;
  throw new SvcError('run_invalid', 'The run cannot be started.', {
    why: problems.map(problemText).join(' '),
    state: 'Nothing was started.',
    next: ["agent.run({ prompt: '…' })"],
  });
}
