import { createHmac } from 'node:crypto';
import type { Channel, Delivery, Notice } from '../../core/approval/channel.ts';
import { SvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';
import { noticeJson } from './notice.ts';
import { post } from './post.ts';

interface WebhookOptions {
  readonly url: string;
  /** `whsec_…`. Each secret signs; the first is the current one. */
  readonly secrets: readonly string[];
  /** Adds `context` to the body: reason, tool description, product and env. */
  readonly context: boolean;
}

/** Posts requests, signed by Standard Webhooks 1.0.0. Redirects are not followed, and response bodies are not read. */
function webhook({ url, secrets, context }: WebhookOptions): Channel {
  const keys = decodeSecrets(secrets);
  const send = async (delivery: Delivery, signal: AbortSignal, notice?: Notice): Promise<void> => {
    const body = JSON.stringify(bodyOf(delivery, context, notice));
    const headers = {
      'content-type': 'application/json',
      'svc-product': encodeURIComponent(delivery.product),
      'svc-env': encodeURIComponent(delivery.env),
      ...signatureHeaders(keys, notice?.id ?? delivery.requestId, Math.floor(Date.now() / 1000), body),
    };
    const response = await post(url, body, { headers, signal });
    // The body may be endless.
    void response.body?.cancel().catch(() => undefined);
  };
  return {
    name: 'webhook',
    deliver: (delivery, signal) => send(delivery, signal),
    notify: (delivery, notice, signal) => send(delivery, signal, notice),
  };
}

function bodyOf(delivery: Delivery, context: boolean, notice: Notice | undefined): Json {
  const { requestId, executionId, agentTag, tool, parameters, timestamp, timeout, callbackUrl } = delivery;
  const { reason, description, product, env } = delivery;
  return {
    type: notice ? `approval_${notice.kind}` : 'approval_request',
    requestId,
    executionId,
    agentTag,
    tool,
    parameters,
    timestamp,
    expiresAt: timeout,
    callbackUrl: callbackUrl ?? null,
    ...(context && { context: { reason, toolDescription: description ?? null, product, env } }),
    ...(notice && { notice: noticeJson(notice) }),
  };
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
