import { createRequire } from 'node:module';
import type { CallOutcome } from '../approval/outcome.ts';

type Api = typeof import('@opentelemetry/api');
type Attributes = Readonly<Record<string, string>>;

/** Undefined before the first lookup, null if the package is not installed. */
// per copy: the package is the same one.
let api: Api | null | undefined;

function telemetry(): Api | null {
  if (api !== undefined) return api;
  try {
    api = createRequire(import.meta.filename)('@opentelemetry/api') as Api;
  } catch {
    api = null;
  }
  return api;
}

/** A call that was left has no outcome yet. */
const NO_ERROR: ReadonlySet<string> = new Set(['completed', 'waiting', 'decided', 'running']);

/** Runs a tool call in a span that follows OpenTelemetry's GenAI conventions. Records no parameters or results. */
export function withToolSpan<T extends Pick<CallOutcome, 'status' | 'requestId'>>(
  { tool, callId, agentTag }: { readonly tool: string; readonly callId: string | undefined; readonly agentTag: string },
  work: () => Promise<T>,
): Promise<T> {
  if (!telemetry()) return work();
  return withSpan(
    `execute_tool ${tool}`,
    {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool,
      ...(callId !== undefined && { 'gen_ai.tool.call.id': callId }),
      'gen_ai.agent.name': agentTag,
    },
    work,
    ({ status, requestId }) => ({
      'svc.approval.outcome': status,
      ...(requestId !== undefined && { 'svc.approval.request_id': requestId }),
      ...(!NO_ERROR.has(status) && { 'error.type': status }),
    }),
  );
}

/**
 * Runs the work in an active span if OpenTelemetry is installed and set up. A span that is not sampled is active as
 * well; otherwise its children would start new traces.
 */
export function withSpan<T>(
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
  resultAttributes?: (value: T) => Attributes,
): Promise<T> {
  const otel = telemetry();
  const span = otel?.trace.getTracer('@svc/sdk').startSpan(name, { attributes });
  if (!otel || !span || !otel.isSpanContextValid(span.spanContext())) return work();
  return otel.context.with(otel.trace.setSpan(otel.context.active(), span), async () => {
    try {
      const value = await work();
      if (resultAttributes) span.setAttributes(resultAttributes(value));
      return value;
    } catch (error) {
      span.setAttribute('error.type', error instanceof Error ? error.name : 'error');
      span.setStatus({ code: otel.SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}
