import type { Json } from '../json.ts';
import type { ApprovalRequest } from './request.ts';

/** A way to a human. Channels are a registry and not taps: each outcome counts, and none holds up another. */
export interface Channel {
  readonly name: string;
  deliver(request: ApprovalRequest, signal: AbortSignal): Promise<void>;
  start?(): Promise<void>;
  stop?(): Promise<void>;
}

export type ChannelFactory = (options: Readonly<Record<string, unknown>>) => Channel;

export interface BrokerEvent {
  readonly name: string;
  readonly id: string;
  readonly body: Json;
}

export interface Broker {
  publish(event: BrokerEvent, signal: AbortSignal): Promise<void>;
  consume?(queue: string, take: (body: unknown) => Promise<void>): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

export type BrokerFactory = (options: Readonly<Record<string, unknown>>) => Broker;
