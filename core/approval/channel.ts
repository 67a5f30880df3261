import type { Json } from '../json.ts';
import { toSafeJson } from '../tool/safe-json.ts';
import { pathText } from '../validate-shape.ts';
import type { Presses } from './presses.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';
import type { RoleCount } from './rule.ts';

/** A request as a channel delivers it: sensitive parameters are masked. @experimental */
export interface Delivery extends ApprovalRequest {
  readonly product: string;
  readonly env: string;
  /** Milliseconds until `timeout` at the start of this attempt, by the store's clock, which may differ from this process's. */
  readonly expiresInMs: number;
  /**
   * The names of masked parameters, if there are any. A decision is then rejected unless it proves that they were
   * shown, so that buttons in a message cannot decide: link the page.
   */
  readonly masked?: readonly string[];
  /** The description from the tool's definition. */
  readonly description?: string;
  /** JSON Schema of the tool's parameters object, for a form that changes them. */
  readonly schema?: { readonly [keyword: string]: Json };
  /** The URL to post a decision to. It contains the token, so its bearer can decide. Absent without `approvals.callbackBase`. */
  readonly callbackUrl?: string;
  /** The token alone, for decisions that are sent by other means. */
  readonly token?: string;
  /**
   * Where the service sends pressed buttons, for one whose buttons carry the URL. Absent without `presses` of the channel or
   * `approvals.callbackBase`.
   */
  readonly pressUrl?: string;
}

/** A decision as a channel reports it: sensitive parameters are masked. @experimental */
export interface Decided extends ApprovalRecord {
  readonly product: string;
  readonly env: string;
}

/** What people are notified of: a request that still waits. @experimental */
export interface Notice {
  /** The same for every attempt. */
  readonly id: string;
  readonly kind: 'reminder' | 'escalation';
  /** ISO 8601, UTC. */
  readonly at: string;
  /** With `escalation`: the roles whose members may decide too from now on. */
  readonly to: readonly { readonly role: string; readonly members: readonly string[] }[];
  /** The approvals that the request lacks. */
  readonly missing: readonly RoleCount[];
}

/** Delivers requests to reviewers. Channels run concurrently, and each delivery is recorded. @experimental */
export interface Channel<Receipt extends Json = Json> {
  readonly name: string;
  /**
   * Makes one attempt and throws if it fails. Failed attempts are repeated with growing pauses until the request is
   * decided or expires; a `DeliveryFailed` error can change the pause or stop the retries. May return a receipt, such as
   * the id of the message: JSON of at most 4 KiB, stored with the delivery and passed to `onDecided`.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a channel without a receipt is an async function without return.
  deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt | void>;
  /**
   * Notifies people of a request that still waits, as the `remind` and `escalate` of its rule say. As `deliver`, but failed
   * attempts are repeated for two minutes; `receipts` as in `onDecided`. Without it, the request is delivered again.
   */
  notify?(
    delivery: Delivery,
    notice: Notice,
    signal: AbortSignal,
    receipts: readonly Receipt[],
    // biome-ignore lint/suspicious/noConfusingVoidType: as `deliver`.
  ): Promise<Receipt | void>;
  /**
   * Reports the decision: one attempt, not retried. `receipts`: what each recorded delivery of this channel returned,
   * oldest first. Usually one; several if a crash or a takeover repeated the delivery; none if nothing was returned.
   */
  onDecided?(record: Decided, signal: AbortSignal, receipts: readonly Receipt[]): Promise<void>;
  /**
   * How pressed buttons decide: `svc approvals serve`, and the handlers of `svc.approvals`, receive them at
   * `POST {callbackBase}/channels/<name of the entry in approvals.channels>`.
   */
  readonly presses?: Presses;
}

const MAX_RECEIPT_BYTES = 4096;

/** A receipt as it is stored, or why it cannot be, without quoting a value. Null: nothing was returned. */
export function storableReceipt(value: unknown): { readonly receipt: Json } | { readonly why: string } {
  const safe = toSafeJson(value ?? null);
  if (!('value' in safe)) return { why: `${safe.path.length === 0 ? 'it' : pathText(safe.path)} ${safe.why}` };
  const bytes = Buffer.byteLength(JSON.stringify(safe.value));
  return bytes > MAX_RECEIPT_BYTES
    ? { why: `it is ${bytes} bytes of JSON, more than ${MAX_RECEIPT_BYTES}` }
    : { receipt: safe.value };
}

/** @experimental */
export type ChannelFactory = (options: Readonly<Record<string, unknown>>) => Channel;

/** A failed delivery, with how to retry it. @experimental */
export class DeliveryFailed extends Error {
  override readonly name = 'DeliveryFailed';
  /** False if a retry cannot succeed. */
  readonly retry: boolean;
  /** The minimum pause before the next attempt, in milliseconds. */
  readonly afterMs: number;
  /** The HTTP status of the service; undefined without a response. */
  readonly status: number | undefined;

  constructor(
    message: string,
    {
      retry = true,
      afterMs = 0,
      status,
    }: { readonly retry?: boolean; readonly afterMs?: number; readonly status?: number | undefined } = {},
  ) {
    super(message);
    this.retry = retry;
    this.status = status;
    // An unparsable header must not produce NaN as the pause.
    this.afterMs = Number.isFinite(afterMs) ? Math.max(0, afterMs) : 0;
  }
}

/** Use instead of `instanceof`, which is false for the error of another copy of the SDK. @experimental */
export function isDeliveryFailed(error: unknown): error is DeliveryFailed {
  return error instanceof Error && error.name === 'DeliveryFailed' && 'retry' in error && 'afterMs' in error;
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
   * Passes the bytes of each message of a queue to `handle`, which decodes and parses them. A message becomes a dead
   * letter if `handle` throws, and is redelivered if that is a `DeliveryFailed` with `retry`. Resolves to a function that
   * stops.
   */
  consume?(queue: string, handle: (body: Uint8Array) => Promise<void>): Promise<() => Promise<void>>;
  /** Resolves once it is connected, and throws if it cannot be. Absent: `svc doctor` says that the connection is not checked. */
  check?(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** @experimental */
export type BrokerFactory = (options: Readonly<Record<string, unknown>>) => Broker;
