import type { Channel, Delivery, Notice } from '../../core/approval/channel.ts';
import type { Json } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';
import { invalidEndpoint, type SignedEndpoint, signatureHeaders, signedEndpoint } from '../shared/standard-webhooks.ts';
import { noticeJson } from './notice.ts';
import { post } from './post.ts';

/**
 * Posts requests, signed by Standard Webhooks 1.0.0. Redirects are not followed, and response bodies are not read. With
 * `context`, the body has the reason, the tool's description, the product and the environment too.
 */
function webhook({ url, keys }: SignedEndpoint, context: boolean): Channel {
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

export default definePlugin({
  name: 'webhook',
  apply(kernel) {
    kernel.channels.register('webhook', ({ context = false, ...options }) => {
      const endpoint = signedEndpoint(options, 'A channel', 'approvals.webhook.secrets or approvals.channels');
      if (typeof context !== 'boolean') throw invalidEndpoint('A channel', 'Its context is not true or false.');
      return webhook(endpoint, context);
    });
  },
});
