import type { Json } from '../json.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';

/** A request as a channel delivers it: sensitive parameters are masked. @experimental */
export interface Delivery extends ApprovalRequest {
  readonly product: string;
  readonly env: string;
  /** Milliseconds until `timeout` at the start of this attempt, by the store's clock, which may differ from this process's. */
  readonly expiresInMs: number;
  /** The description from the tool's definition. */
  readonly description?: string;
  /** The URL to post a decision to. It contains the token, so its bearer can decide. Absent without `approvals.callbackBase`. */
  readonly callbackUrl?: string;
  /** The token alone, for decisions that are sent by other means. */
  readonly token?: string;
}

/** Delivers requests to reviewers. Channels run concurrently, and each delivery is recorded. @experimental */
export interface Channel {
  readonly name: string;
  /**
   * Makes one attempt and throws if it fails. Failed attempts are repeated with growing pauses until the request is
   * decided or expires; a `DeliveryFailed` error can change the pause or stop the retries.
   */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<void>;
  /** Reports the decision on a delivered request: one attempt, not retried. */
  onDecided?(record: ApprovalRecord, signal: AbortSignal): Promise<void>;
}

/** @experimental */
export type ChannelFactory = (options: Readonly<Record<string, unknown>>) => Channel;

/** A failed delivery, with how to retry it. @experimental */
export class DeliveryFailed extends Error {
  /** False if a retry cannot succeed. */
  readonly retry: boolean;
  /** The minimum pause before the next attempt, in milliseconds. */
  readonly afterMs: number;

  constructor(
    message: string,
    { retry = true, afterMs = 0 }: { readonly retry?: boolean; readonly afterMs?: number } = {},
  ) {
    super(message);
    this.name = 'DeliveryFailed';
    this.retry = retry;
    // An unparsable header must not produce NaN as the pause.
    this.afterMs = Number.isFinite(afterMs) ? Math.max(0, afterMs) : 0;
  }
}

/** @experimental */
export interface BrokerEvent {
  /** The routing key, topic or subject. */
  readonly name: string;
  /** The same for every attempt to publish this event. */
  readonly id: string;
  readonly body: Json;
  /** Milliseconds after which the broker may drop the event. */
  readonly expiresInMs: number;
}

/** A message broker that connects on first use and reconnects after a lost connection. @experimental */
export interface Broker {
  /** Resolves once the broker has stored the event; throws if that is not confirmed. */
  publish(event: BrokerEvent, signal: AbortSignal): Promise<void>;
  /**
   * Passes each message of a queue to `handle`, parsed as JSON or else as text. A message becomes a dead letter if
   * `handle` throws, and is redelivered if that is a `DeliveryFailed` with `retry`. Resolves to a function that stops.
   */
  consume?(queue: string, handle: (body: unknown) => Promise<void>): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** @experimental */
export type BrokerFactory = (options: Readonly<Record<string, unknown>>) => Broker;
