import type { Broker, Channel, Delivery } from '../../core/approval/channel.ts';
import type { Json } from '../../core/json.ts';
import { definePlugin } from '../../core/plugin.ts';

interface BrokerChannelOptions {
  readonly broker: Broker;
  /** The event's name, from `humanInLoop.approvalBroker.event`. */
  readonly event: string;
  /** Adds the request's token to the event, so that decisions can return through the broker. */
  readonly includeToken: boolean;
}

/** Publishes a request as the data of a CloudEvents 1.0 document. */
function brokerChannel({ broker, event, includeToken }: BrokerChannelOptions): Channel {
  return {
    name: 'broker',
    deliver: (delivery, signal) =>
      broker.publish(
        {
          name: event,
          id: delivery.requestId,
          body: cloudEvent(delivery, event, includeToken),
          expiresInMs: Math.max(1, delivery.expiresInMs),
        },
        signal,
      ),
  };
}

function cloudEvent(delivery: Delivery, event: string, includeToken: boolean): Json {
  const { requestId, executionId, agentTag, tool, parameters, reason, timestamp, timeout, product, env, token } =
    delivery;
  return {
    specversion: '1.0',
    id: requestId,
    source: `/svc/${encodeURIComponent(product)}/${encodeURIComponent(env)}`,
    type: event,
    subject: requestId,
    time: timestamp,
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
