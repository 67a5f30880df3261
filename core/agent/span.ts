import { createRequire } from 'node:module';
import type { CallOutcome } from '../approval/outcome.ts';

type Api = typeof import('@opentelemetry/api');
type Attributes = Readonly<Record<string, string>>;

/** Undefined until it was looked for, null where it is not installed. */
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

/** A call of a tool, by the conventions for generative AI: what it was given and what it gave are not told. */
export function toolSpan(
  { tool, callId, agentTag }: { readonly tool: string; readonly callId: string | undefined; readonly agentTag: string },
  work: () => Promise<CallOutcome>,
): Promise<CallOutcome> {
  if (!telemetry()) return work();
  return spanOf(
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
      ...(status !== 'completed' && { 'error.type': status }),
    }),
  );
}

/**
 * Does the work inside a span, as its active one, where OpenTelemetry is installed and set up. One that is not sampled
 * counts too: without it, those below would begin traces of their own.
 */
export function spanOf<T>(
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
  after?: (value: T) => Attributes,
): Promise<T> {
  const otel = telemetry();
  const span = otel?.trace.getTracer('@svc/sdk').startSpan(name, { attributes });
  if (!otel || !span || !otel.isSpanContextValid(span.spanContext())) return work();
  return otel.context.with(otel.trace.setSpan(otel.context.active(), span), async () => {
    try {
      const value = await work();
      if (after) span.setAttributes(after(value));
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
