import { createHmac } from 'node:crypto';
import { type Channel, type Delivery, DeliveryFailed } from '../../core/approval/channel.ts';
import { SvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';

interface WebhookOptions {
  readonly url: string;
  /** `whsec_…`. Each secret signs; the first is the current one. */
  readonly secrets: readonly string[];
  /** Adds `context` to the body: reason, tool description, product, env. */
  readonly context: boolean;
}

/** Client errors that a later attempt may avoid; any other 4xx status is final. */
const RETRYABLE_STATUS = new Set([408, 425, 429]);
/** Upper limit for `Retry-After`, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Posts requests, signed by Standard Webhooks 1.0.0. Redirects are not followed, and response bodies are not read. */
function webhook({ url, secrets, context }: WebhookOptions): Channel {
  const keys = decodeSecrets(secrets);
  return {
    name: 'webhook',
    async deliver(delivery, signal) {
      const body = JSON.stringify(bodyOf(delivery, context));
      const headers = signatureHeaders(keys, delivery.requestId, Math.floor(Date.now() / 1000), body);
      const response = await post(
        url,
        { 'content-type': 'application/json', 'user-agent': 'svc', ...headers },
        body,
        signal,
      );
      // The body may be endless.
      void response.body?.cancel().catch(() => undefined);
      if (response.ok) return;
      throw deliveryError(response);
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
    // The message of fetch is only "fetch failed".
    const { cause } = error as { readonly cause?: { readonly code?: string; readonly message?: string } };
    throw new DeliveryFailed(cause?.code ?? cause?.message ?? (error as Error).message);
  }
}

function deliveryError({ status, headers }: Response): DeliveryFailed {
  if (status >= 300 && status < 400) {
    return new DeliveryFailed(`answered ${status}: redirects are not followed`, { retry: false });
  }
  const retry = status >= 500 || RETRYABLE_STATUS.has(status);
  return new DeliveryFailed(`answered ${status}`, {
    retry,
    afterMs: retry ? retryAfterMs(headers.get('retry-after')) : 0,
  });
}

/** Milliseconds from seconds or a date (RFC 9110, section 10.2.3); 0 for any other value. */
function retryAfterMs(value: string | null): number {
  if (value === null) return 0;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), MAX_RETRY_AFTER_MS);
}

const SECRET_PREFIX = 'whsec_';
const MIN_SECRET_BYTES = 24;
const MAX_SECRET_BYTES = 64;

/** Decodes `whsec_` secrets. Throws `config_invalid`; the message never contains a secret. */
function decodeSecrets(secrets: readonly string[]): readonly Buffer[] {
  return secrets.map((secret, index) => {
    const text = secret.slice(SECRET_PREFIX.length);
    const key = Buffer.from(text, 'base64');
    const isBase64 = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
    if (
      secret.startsWith(SECRET_PREFIX) &&
      isBase64 &&
      key.length >= MIN_SECRET_BYTES &&
      key.length <= MAX_SECRET_BYTES
    )
      return key;
    throw new SvcError('config_invalid', 'A secret in approvals.webhook.secrets is invalid.', {
      why: `Secret ${index + 1} of its list is not ${SECRET_PREFIX} followed by ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} bytes in base64.`,
      next: [`echo ${SECRET_PREFIX}$(openssl rand -base64 32)    creates one`],
    });
  });
}

/**
 * The headers for one attempt: `id` is the same for all attempts, `seconds` is the time of this one. Every key signs, so
 * that keys can be rotated.
 */
function signatureHeaders(keys: readonly Buffer[], id: string, seconds: number, body: string): Record<string, string> {
  const text = `${id}.${seconds}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(text).digest('base64')}`);
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signatures.join(' ') };
}

export default definePlugin({
  name: 'webhook',
  apply(kernel) {
    // Not validated: the options documented for the type 'webhook'.
    kernel.channels.register('webhook', (options) => webhook(options as unknown as WebhookOptions));
  },
});
