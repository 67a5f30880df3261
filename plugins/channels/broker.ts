import type { Broker, Channel, Delivery, Notice } from '../../core/approval/channel.ts';
import type { Json } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';
import { noticeJson } from './notice.ts';

interface BrokerChannelOptions {
  readonly broker: Broker;
  /** The event's name, from `humanInLoop.approvalBroker.event`. */
  readonly event: string;
  /** Adds the request's token to the event, so that decisions can return through the broker. */
  readonly includeToken: boolean;
}

/** Publishes a request as the data of a CloudEvents 1.0 document. */
function brokerChannel({ broker, event, includeToken }: BrokerChannelOptions): Channel {
  const publish = (delivery: Delivery, signal: AbortSignal, notice?: Notice): Promise<void> => {
    const name = notice ? `${event}.${notice.kind}` : event;
    const id = notice?.id ?? delivery.requestId;
    const body = cloudEvent(delivery, { id, type: name, includeToken }, notice);
    return broker.publish({ name, id, body, expiresInMs: Math.max(1, delivery.expiresInMs) }, signal);
  };
  return {
    name: 'broker',
    deliver: (delivery, signal) => publish(delivery, signal),
    notify: (delivery, notice, signal) => publish(delivery, signal, notice),
  };
}

interface EventOptions extends Pick<BrokerChannelOptions, 'includeToken'> {
  readonly id: string;
  readonly type: string;
}

function cloudEvent(delivery: Delivery, { id, type, includeToken }: EventOptions, notice: Notice | undefined): Json {
  const { requestId, executionId, agentTag, tool, parameters, reason, timestamp, timeout, product, env, token } =
    delivery;
  return {
    specversion: '1.0',
    id,
    source: `/svc/${encodeURIComponent(product)}/${encodeURIComponent(env)}`,
    type,
    subject: requestId,
    time: notice?.at ?? timestamp,
    datacontenttype: 'application/json',
    data: {
      requestId,
      executionId,
      agentTag,
      tool,
      parameters,
      reason,
      timestamp,
      timeout,
      ...(includeToken && token !== undefined && { token }),
      ...(notice && { notice: noticeJson(notice) }),
    },
  };
}

export default definePlugin({
  name: 'broker',
  apply(kernel) {
    // Not validated: the options documented for the type 'broker'.
    kernel.channels.register('broker', (options) => brokerChannel(options as unknown as BrokerChannelOptions));
  },
});
