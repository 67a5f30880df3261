import type { Broker, Channel, Delivery } from '../../../core/approval/channel.ts';
import type { Json } from '../../../core/json.ts';

export interface BrokerChannelOptions {
  readonly broker: Broker;
  /** The name of the event: `humanInLoop.approvalBroker.event`. */
  readonly event: string;
  /** The event carries the request's token: decisions may come back through the broker. */
  readonly answers: boolean;
}

/** Publishes the request of SPEC 2.4 as the data of a CloudEvents 1.0 document. */
export function brokerChannel({ broker, event, answers }: BrokerChannelOptions): Channel {
  return {
    name: 'broker',
    deliver: (delivery, signal) =>
      broker.publish(
        {
          name: event,
          id: delivery.requestId,
          body: cloudEvent(delivery, event, answers),
          expiresInMs: Math.max(1, delivery.expiresInMs),
        },
        signal,
      ),
  };
}

function cloudEvent(delivery: Delivery, event: string, answers: boolean): Json {
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
      ...(answers && token !== undefined && { token }),
    },
  };
}
