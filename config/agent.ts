import type { CompiledAgent } from '../core/agent/define.ts';
import type { Executions } from '../core/agent/executions.ts';
import { Run } from '../core/agent/run.ts';
import type { RunnableAgent } from '../core/agent/runnable.ts';
import { newExecutionId } from '../core/approval/id.ts';
import { SvcError } from '../core/errors.ts';
import { onAbort } from '../core/on-abort.ts';
import { problemText, type Shape, shapeProblems } from '../core/schema/shape.ts';

/** @experimental */
export interface RunRequest {
  readonly prompt: string;
  /** Aborting cancels the run. */
  readonly signal?: AbortSignal;
}

/** What of an agent is ready once its configuration has been read and its store opened. */
export interface Ready {
  readonly agent: RunnableAgent;
  readonly executions: Executions;
}

/** A defined agent. @experimental */
export interface Agent {
  readonly tag: string;
  readonly name: string;
  /** Starts an execution and returns at once; what goes wrong is told by the run. Throws `run_invalid`. */
  run(request: RunRequest): Run;
}

/**
 * An agent as `define` gives it: usable at once. Awaited, it refuses what only the configuration can tell; else the
 * first run does.
 * @experimental
 */
export class DefinedAgent implements Agent, PromiseLike<Agent> {
  readonly tag: string;
  readonly name: string;
  readonly #check: () => Promise<unknown>;
  readonly #ready: () => Promise<Ready>;

  constructor({ tag, name }: CompiledAgent, check: () => Promise<unknown>, ready: () => Promise<Ready>) {
    this.tag = tag;
    this.name = name;
    this.#check = check;
    this.#ready = ready;
  }

  run(request: RunRequest): Run {
    const { prompt, signal } = checkRequest(request);
    const run = new Run(newExecutionId());
    const abort = (): void => run.abort(signal?.reason ?? 'The signal was aborted.');
    if (signal?.aborted) abort();
    const drop = signal && onAbort(signal, abort);
    if (drop) run.result.then(drop, drop);
    this.#ready().then(
      ({ executions, agent }) => executions.begin(agent, run, prompt),
      (error) => run.leave(error),
    );
    return run;
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting a definition is how its configuration is checked.
  then<A = Agent, B = never>(
    kept?: ((agent: Agent) => A | PromiseLike<A>) | null,
    refused?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const { tag, name } = this;
    const settled: Agent = { tag, name, run: (request) => this.run(request) };
    return this.#check()
      .then(() => settled)
      .then(kept, refused);
  }
}

const REQUEST: Shape = { properties: { prompt: 'string', signal: 'any' }, required: ['prompt'] };

function checkRequest(request: RunRequest): RunRequest {
  const problems = shapeProblems(request, REQUEST);
  if (problems.length === 0 && request.prompt.trim() === '') problems.push({ path: ['prompt'], text: 'is empty' });
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
