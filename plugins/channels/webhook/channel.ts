import { type Channel, type Delivery, DeliveryFailed } from '../../../core/approval/channel.ts';
import type { Json } from '../../../core/json.ts';
import { keysOf, signed } from './signature.ts';

export interface WebhookOptions {
  readonly url: string;
  /** `whsec_…`; the first is the current one. */
  readonly secrets: readonly string[];
  /** Adds `context` to the body: reason, tool description, product, env. */
  readonly context: boolean;
}

/** Answers that may be others later; the rest of what is no 2xx stays what it is. */
const PASSING = new Set([408, 425, 429]);
/** Milliseconds; whoever asks for more is asked again then. */
const LONGEST_RETRY_AFTER = 3_600_000;

/** Posts SPEC 2.5, signed as Standard Webhooks has it. Redirects are not followed, and no answer's body is read. */
export function webhook({ url, secrets, context }: WebhookOptions): Channel {
  const keys = keysOf(secrets);
  return {
    name: 'webhook',
    async deliver(delivery, signal) {
      const body = JSON.stringify(bodyOf(delivery, context));
      const headers = signed(keys, delivery.requestId, Math.floor(Date.now() / 1000), body);
      const response = await post(
        url,
        { 'content-type': 'application/json', 'user-agent': 'svc', ...headers },
        body,
        signal,
      );
      // It may be endless.
      void response.body?.cancel().catch(() => undefined);
      if (response.ok) return;
      throw failure(response);
    },
  };
}

function bodyOf(delivery: Delivery, context: boolean): Json {
  const { requestId, executionId, agentTag, tool, parameters, timestamp, timeout, callbackUrl } = delivery;
  const { reason, description, product, env } = delivery;
  return {
    type: 'approval_request',
    requestId,
    executionId,
    agentTag,
    tool,
    parameters,
    timestamp,
    expiresAt: timeout,
    callbackUrl: callbackUrl ?? null,
    ...(context && { context: { reason, toolDescription: description ?? null, product, env } }),
  };
}

async function post(
  url: string,
  headers: Record<string, string>,
  body: string,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' });
  } catch (error) {
    // fetch says no more than "fetch failed".
    const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } };
    throw new DeliveryFailed(cause?.code ?? cause?.message ?? (error as Error).message);
  }
}

function failure({ status, headers }: Response): DeliveryFailed {
  if (status >= 300 && status < 400) {
    return new DeliveryFailed(`answered ${status}: redirects are not followed`, { retry: false });
  }
  const retry = status >= 500 || PASSING.has(status);
  return new DeliveryFailed(`answered ${status}`, {
    retry,
    afterMs: retry ? retryAfter(headers.get('retry-after')) : 0,
  });
}

/** Seconds, or a date (RFC 9110, 10.2.3); 0 where it is neither. */
function retryAfter(value: string | null): number {
  if (value === null) return 0;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), LONGEST_RETRY_AFTER);
}
