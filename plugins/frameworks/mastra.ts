import { isPlainObject } from '../../core/json.ts';
import { endOf, notCompleted, runGuarded, withNoteLine } from './call-end.ts';
import { assertTimeout, guardTool, unusable, withoutId } from './guard-tool.ts';
import { type ApprovalOptions, executionIdOf, type FrameworkGate, type PendingApproval } from './shared.ts';

export type { ApprovalOptions, FrameworkGate, PendingApproval, RequestedCall } from './shared.ts';

/** The part of a tool's execution context from which an `executionId` can be derived. @experimental */
export interface MastraCall {
  readonly agent?: { readonly threadId?: string; readonly resourceId?: string };
  readonly requestContext?: unknown;
}

/** @experimental */
export interface MastraOptions extends ApprovalOptions<MastraCall> {
  /**
   * `hold`, the default: `execute` waits for the decision. `suspend`: the run is suspended; resume its call with
   * `resumeStream({}, { runId, toolCallId })` once the request is decided, in any process.
   */
  readonly wait?: 'hold' | 'suspend';
}

interface MastraTool {
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly background?: { readonly enabled?: boolean; readonly timeoutMs?: number };
  readonly execute?: (input: unknown, context: CallContext) => Promise<unknown>;
  readonly toModelOutput?: (output: unknown) => unknown;
}

interface CallContext extends MastraCall {
  readonly abortSignal?: AbortSignal;
  readonly agent?: MastraCall['agent'] & {
    readonly toolCallId?: string;
    readonly resumeData?: unknown;
    suspend(payload: PendingApproval): Promise<void>;
  };
}

/** How long Mastra lets a tool run in the background, unless it or the agent says otherwise. */
const DEFAULT_BACKGROUND_MS = 300_000;

/** In the result of an edited call whose tool has a `toModelOutput`. */
const NOTE = 'svcApprovalNote';

/**
 * The tools of a Mastra agent, by the names of the model, each of which waits for approval. Their types are unchanged. The
 * model reads why a call did not run as the result of the tool.
 * @example new Agent({ tools: { search, ...withApproval(gate, { refund }, { executionId: chatId }) }, … })
 * @experimental
 */
export function withApproval<T extends object>(gate: FrameworkGate, tools: T, options: MastraOptions): T {
  const wrapped = Object.entries(tools).map(([name, tool]) => [name, withGate(gate, name, tool, options)]);
  return Object.fromEntries(wrapped) as T;
}

function withGate(gate: FrameworkGate, name: string, tool: MastraTool, options: MastraOptions): object {
  const { execute, toModelOutput, description, inputSchema: schema, background } = tool;
  if (execute === undefined) throw unusable(name, 'it has no execute function: its provider or the client runs it');
  const timeoutMs = background?.enabled ? (background.timeoutMs ?? DEFAULT_BACKGROUND_MS) : undefined;
  if (options.wait !== 'suspend') assertTimeout(gate, name, 'background.timeoutMs', timeoutMs);
  const guarded = guardTool(gate, { name, description, schema }, options, 'output');
  const gated = async (input: unknown, context: CallContext) => {
    const { agent, abortSignal: signal } = context;
    if (agent?.toolCallId === undefined) throw withoutId(name);
    // A call that is resumed too early is suspended again.
    const wait = options.wait === 'suspend' ? { waitMs: 0 } : {};
    const result = await runGuarded(
      guarded,
      { parameters: input, executionId: executionIdOf(options, context), toolCallId: agent.toolCallId },
      { signal, onRequested: options.onRequested, ...wait },
      (parameters, abortSignal) => execute.call(tool, parameters, { ...context, abortSignal }),
    );
    const end = endOf(name, result);
    if ('pending' in end) return agent.suspend(end.pending);
    if ('refusal' in end) {
      // A function that reads results of the tool is not given a text in place of one.
      if (toModelOutput) throw notCompleted(result.outcome);
      return end.refusal;
    }
    if (end.note === undefined) return end.value;
    return toModelOutput ? withNoteKey(end.value, end.note) : withNoteLine(end.value, end.note);
  };
  const noted = async (output: unknown) => {
    const { [NOTE]: note, ...own } = Object(output) as { readonly [NOTE]?: string };
    if (note === undefined) return toModelOutput?.(output);
    return withNotePart(await toModelOutput?.('value' in own ? own.value : own), note);
  };
  // Mastra's own tools are objects of a class.
  return Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, {
    execute: gated,
    ...(toModelOutput && { toModelOutput: noted }),
  });
}

/** Mastra copies results, and stores them: the note of an edit is with the result until its tool has mapped it. */
function withNoteKey(value: unknown, note: string): object {
  return isPlainObject(value) && !('value' in value) ? { ...value, [NOTE]: note } : { value, [NOTE]: note };
}

/** The note as a part of what the model reads, in the forms that Mastra takes. */
function withNotePart(output: unknown, note: string): unknown {
  const { type, value } = Object(output) as { readonly type?: string; readonly value?: unknown };
  const part = { type: 'text', text: note };
  if (type === 'content' && Array.isArray(value)) return { type, value: [...value, part] };
  const text = type === 'text' || type === 'json' ? value : output;
  return { type: 'text', value: withNoteLine(text, note) };
}
