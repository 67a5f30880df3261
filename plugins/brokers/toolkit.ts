/**
 * Building blocks for brokers outside this package.
 * @module @svc/sdk/broker
 */

export { SerialQueue } from '../shared/serial-queue.ts';
export { type PluginOptions, textOptions, urlOption } from '../shared/text-options.ts';
export { type BrokerDriver, type Received, reconnectingBroker, type Subscription } from './reconnecting.ts';
