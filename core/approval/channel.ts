import type { Json } from '../json.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';

/** What a channel is given: the request as its reader may see it, and the way back. @experimental */
export interface Delivery extends ApprovalRequest {
  readonly product: string;
  readonly env: string;
  /** Milliseconds that were left until `timeout` when this attempt began, by the store's clock: a process's may differ. */
  readonly expiresInMs: number;
  /** What the tool's definition says to the reviewer. */
  readonly description?: string;
  /** Where a decision is posted (SPEC 4.1), its token in it: whoever has it can decide. Absent without `approvals.callbackBase`. */
  readonly callbackUrl?: string;
  /** The token alone, for decisions that come back another way. */
  readonly token?: string;
}

/** A way to a human. Channels are a registry and not taps: each outcome counts, and none holds up another. @experimental */
export interface Channel {
  readonly name: string;
  /**
   * One attempt; throws when the request did not arrive. It is repeated with growing pauses until the request expires
   * or is decided, unless the error is a `DeliveryFailed` that says otherwise.
   */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<void>;
  /** A request that was delivered is decided, by whomever: one attempt, never repeated. */
  decided?(record: ApprovalRecord, signal: AbortSignal): Promise<void>;
}

/** @experimental */
export type ChannelFactory = (options: Readonly<Record<string, unknown>>) => Channel;

/** Says what is to become of a delivery that failed. @experimental */
export class DeliveryFailed extends Error {
  /** False: trying again is no use. */
  readonly retry: boolean;
  /** Milliseconds that the receiver wants to be left alone; never tried sooner. */
  readonly afterMs: number;

  constructor(
    message: string,
    { retry = true, afterMs = 0 }: { readonly retry?: boolean; readonly afterMs?: number } = {},
  ) {
    super(message);
    this.name = 'DeliveryFailed';
    this.retry = retry;
    // A header that is no number must not become a pause that never comes, or that is none.
    this.afterMs = Number.isFinite(afterMs) ? Math.max(0, afterMs) : 0;
  }
}

/** @experimental */
export interface BrokerEvent {
  /** The routing key, topic or subject. */
  readonly name: string;
  /** The same for every attempt to publish the event. */
  readonly id: string;
  readonly body: Json;
  /** Milliseconds after which nobody needs it any more. */
  readonly expiresInMs: number;
}

/** A message broker. It connects when it is first used, and again when the connection was lost. @experimental */
export interface Broker {
  /** Resolves when the broker has the event for good; throws when that is not known. */
  publish(event: BrokerEvent, signal: AbortSignal): Promise<void>;
  /** Hands on each message of a queue, as JSON or as the text it is; one that `take` throws on is put aside as a dead letter. */
  consume?(queue: string, take: (body: unknown) => Promise<void>): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** @experimental */
export type BrokerFactory = (options: Readonly<Record<string, unknown>>) => Broker;
