import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuid } from 'uuid';
import { isSvcError, messageWithNext } from '../errors.ts';
import type { Json } from '../json.ts';
import { allRows } from '../records.ts';
import { frozenClone, truncatedText } from '../tool/safe-json.ts';
import { deliveriesOf } from './audit.ts';
import { isDeliveryFailed, type Notice, storableReceipt } from './channel.ts';
import { maskedParameters, toApprovalRecord, toApprovalRequest } from './public-view.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';
import type { ApprovalRow, DeliveryRow } from './schema.ts';
import type { ActiveAnnouncement, ApprovalService, RequestRow } from './service.ts';
import { MAX_TIMEOUT_MS } from './timer-queue.ts';

/** A request to announce, with the data that its delivery is built from. */
export interface Announcement {
  readonly request: ApprovalRequest;
  /** Digest of the call; a callback token is valid for this call only. */
  readonly digest: string;
  /** The names of masked parameters. */
  readonly masked: readonly string[];
  /** The tool's definition at the time of the call. */
  definition(): ReturnType<ApprovalService['getToolDefinition']>;
  /** Milliseconds until the deadline, by the store's clock. */
  expiresInMs(): Promise<number>;
}

/** A channel configured for one agent. */
export interface DeliveryRoute {
  /** Its name in the audit, unique for the agent. */
  readonly channel: string;
  /** Resolves to a receipt for `onDecided`, not yet validated. */
  deliver(announcement: Announcement, signal: AbortSignal): Promise<unknown>;
  /** As `deliver`. Without it, a notice delivers the request again. */
  notify?(announcement: Announcement, notice: Notice, signal: AbortSignal, receipts: readonly Json[]): Promise<unknown>;
  onDecided?(record: ApprovalRecord, signal: AbortSignal, receipts: readonly Json[]): Promise<void>;
}

/** Reason with which a caller that leaves aborts an announcement: attempts that have not begun are made once. */
export const LEAVING = 'leaving';

const ATTEMPT_TIMEOUT_MS = 15_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
/** How long the delivery of a notice is retried. */
export const NOTICE_WINDOW_MS = 120_000;

/**
 * Announces a request to the taps, then to every channel concurrently. An existing request is delivered again only to
 * channels without a recorded delivery: at least once, because a crash may lose the record. Stops when `signal` aborts;
 * another caller that waits for the request then continues.
 */
export async function announceRequest(
  service: ApprovalService,
  { record }: RequestRow,
  {
    routes,
    isNew,
    signal,
  }: { readonly routes: readonly DeliveryRoute[]; readonly isNew: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { requestId } = record;
  const previous = service.announcements.get(requestId);
  if (previous && !previous.signal.aborted) return;
  const deliveries: ActiveAnnouncement['deliveries'] = new Map();
  service.announcements.set(requestId, { signal, deliveries });
  const request = frozenClone(toApprovalRequest(record));
  if (!previous) await service.notifyTaps('approvalRequested', service.hooks.approvalRequested, () => request);
  if (routes.length === 0) return;
  const delivered = isNew && !previous ? new Set<string>() : await deliveredChannels(service, requestId);
  const announcement = announcementOf(service, record, request);
  const until = record.expiresAt.getTime();
  for (const { channel, deliver } of routes) {
    if (delivered.has(channel)) continue;
    const send: Sending['send'] = (attemptSignal) => deliver(announcement, attemptSignal);
    deliveries.set(channel, deliverRepeatedly(service, { requestId, channel, send, until }, signal));
  }
  await Promise.all(deliveries.values());
}

/**
 * Notifies every channel concurrently of a request that still waits. A notice that is not new goes to the channels without a
 * recorded delivery since.
 */
export async function announceNotice(
  service: ApprovalService,
  record: ApprovalRow,
  notice: Notice,
  { routes, isNew }: { readonly routes: readonly DeliveryRoute[]; readonly isNew: boolean },
): Promise<void> {
  const { requestId } = record;
  const notified = isNew ? new Set<string>() : await deliveredChannels(service, requestId, notice.at);
  const announcement = announcementOf(service, record, frozenClone(toApprovalRequest(record)));
  const until = Math.min(record.expiresAt.getTime(), (await service.clock.now()) + NOTICE_WINDOW_MS);
  const isOver = async () => (await service.read(requestId))?.record.status !== 'waiting';
  await Promise.all(
    routes.map(async ({ channel, deliver, notify }) => {
      if (notified.has(channel)) return;
      const receipts = notify ? await receiptsOf(service, requestId, channel, undefined) : [];
      const send: Sending['send'] = (signal) =>
        notify ? notify(announcement, notice, signal, receipts) : deliver(announcement, signal);
      await deliverRepeatedly(service, { requestId, channel, send, until, isOver }, service.closing);
    }),
  );
}

function announcementOf(service: ApprovalService, row: ApprovalRow, request: ApprovalRequest): Announcement {
  const { body, expiresAt } = row;
  return {
    request,
    digest: body.digest,
    masked: maskedParameters(body),
    definition: () => service.getToolDefinition(body.toolDigest),
    expiresInMs: async () => Math.max(0, expiresAt.getTime() - (await service.clock.now())),
  };
}

/**
 * Reports a decision to the channels: one attempt each, with the receipts of its deliveries, until `ending` aborts. A
 * failure is recorded as a failed delivery is.
 */
export async function announceDecision(
  service: ApprovalService,
  row: ApprovalRow,
  routes: readonly DeliveryRoute[],
  ending: AbortSignal,
): Promise<void> {
  const { requestId } = row;
  const record = frozenClone(toApprovalRecord(row, false, await service.presence.unattendedSince(row)));
  const active = service.announcements.get(requestId);
  await Promise.all(
    routes.map(async ({ channel, onDecided }) => {
      if (!onDecided) return;
      try {
        // An attempt in progress may still send a message and return its receipt.
        const own = await active?.deliveries.get(channel);
        const receipts = await receiptsOf(service, requestId, channel, own);
        await withTimeout((signal) => onDecided(record, signal, receipts), ending);
      } catch (error) {
        const why = auditText(error);
        service.warn(`The channel ${channel} did not receive the decision on ${requestId}: ${why}`);
        const failed = { delivered: false, error: auditText(`The decision was not reported: ${why}`), receipt: null };
        await recordAttempt(service, { requestId, channel, ...failed });
      }
    }),
  );
}

/** What is sent to one channel. */
interface Sending {
  readonly requestId: string;
  readonly channel: string;
  send(signal: AbortSignal): Promise<unknown>;
  /** When it is given up, by the store's clock. */
  readonly until: number;
  /** Asked before an attempt is repeated. */
  isOver?(): Promise<boolean>;
}

const NOT_REPEATED = 'It is not tried again: the request waits for a decision made otherwise, until it expires.';

/** Retries until delivered, decided, too late or not retryable. Every attempt is recorded. Returns the one that succeeded. */
async function deliverRepeatedly(
  service: ApprovalService,
  { requestId, channel, send, until, isOver }: Sending,
  signal: AbortSignal,
): Promise<RecordedAttempt | undefined> {
  let pause = FIRST_RETRY_MS;
  for (let isFirst = true; !signal.aborted || (isFirst && signal.reason === LEAVING); isFirst = false) {
    try {
      // A decision does not abort an attempt in progress: its result is recorded in the audit.
      const returned = await withTimeout(send, service.closing);
      return await recordDelivery(service, requestId, channel, returned);
    } catch (error) {
      if (service.closing.aborted) return undefined;
      const { retry, afterMs } = isDeliveryFailed(error) ? error : { retry: true, afterMs: 0 };
      await recordAttempt(service, { requestId, channel, delivered: false, error: auditText(error), receipt: null });
      if (signal.aborted) return undefined;
      // Jitter: a receiver that recovers is not contacted by all senders at once.
      const pauseMs = Math.max(afterMs, pause * (0.5 + Math.random() / 2));
      const isLast = !retry || service.clock.msUntil(until) <= pauseMs;
      // A missing driver has to be known while the request still waits.
      if (isLast || (isFirst && isSvcError(error) && error.code === 'driver_missing')) {
        const after = isLast ? (retry ? 'No attempt is left.' : NOT_REPEATED) : 'Retrying.';
        const why = isSvcError(error) ? messageWithNext(error) : auditText(error);
        service.warn(`The channel ${channel} did not deliver ${requestId}: ${why.replace(/\.?$/, '.')} ${after}`);
      }
      if (isLast) return undefined;
      await pauseFor(pauseMs, signal);
      if (await isOver?.()) return undefined;
      pause = Math.min(pause * 2, MAX_RETRY_MS);
    }
  }
  return undefined;
}

/** Ends early only if the signal aborts, so that `Retry-After` is honoured. Longer pauses take several timers. */
async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= MAX_TIMEOUT_MS) {
    // Any number of pauses may end with one signal: a signal of its own for each, because listeners are limited.
    const own = AbortSignal.any([signal]);
    await wait(Math.min(left, MAX_TIMEOUT_MS), undefined, { signal: own, ref: false }).catch(() => undefined);
  }
}

/** Rejects on a timeout or abort even if the channel ignores its signal. */
async function withTimeout<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  const timeout = AbortSignal.timeout(ATTEMPT_TIMEOUT_MS);
  const either = AbortSignal.any([signal, timeout]);
  let end = () => {};
  const aborted = new Promise<never>((_, reject) => {
    end = () => reject(timeout.aborted ? new Error(`no response within ${ATTEMPT_TIMEOUT_MS} ms`) : signal.reason);
    if (either.aborted) end();
    else either.addEventListener('abort', end, { once: true });
  });
  aborted.catch(() => undefined);
  try {
    return await Promise.race([work(either), aborted]);
  } finally {
    either.removeEventListener('abort', end);
  }
}

/** The message was sent, so a receipt that cannot be stored is reported and does not repeat the delivery. */
async function recordDelivery(
  service: ApprovalService,
  requestId: string,
  channel: string,
  returned: unknown,
): Promise<RecordedAttempt> {
  const stored = storableReceipt(returned);
  if ('receipt' in stored) {
    const receipt = stored.receipt === null ? null : { value: stored.receipt };
    return recordAttempt(service, { requestId, channel, delivered: true, error: null, receipt });
  }
  const error = auditText(`Its receipt cannot be stored: ${stored.why}.`);
  service.warn(`The channel ${channel} delivered ${requestId}. ${error}`);
  return recordAttempt(service, { requestId, channel, delivered: true, error, receipt: null });
}

type RecordedAttempt = Omit<DeliveryRow, 'at'>;

async function recordAttempt(service: ApprovalService, attempt: Omit<RecordedAttempt, 'id'>): Promise<RecordedAttempt> {
  const { requestId, channel } = attempt;
  const recorded = { ...attempt, id: `del_${uuid()}` };
  try {
    await service.deliveries.insert({ ...recorded, at: new Date(await service.clock.now()) });
  } catch (failure) {
    service.warn(`A delivery of ${requestId} by ${channel} could not be added to the audit: ${auditText(failure)}`);
  }
  return recorded;
}

/** The channels that have the request, or something about it since a moment. */
async function deliveredChannels(
  service: ApprovalService,
  requestId: string,
  since = '',
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  try {
    for await (const { channel, delivered, at } of deliveriesOf(service, requestId)) {
      if (delivered && at >= since) found.add(channel);
    }
  } catch {
    // A duplicate delivery is better than none.
  }
  return found;
}

/** Includes `own`, the delivery by this process, even if the index does not list it yet or it could not be recorded. */
async function receiptsOf(
  service: ApprovalService,
  requestId: string,
  channel: string,
  own: Pick<DeliveryRow, 'id' | 'receipt'> | undefined,
): Promise<readonly Json[]> {
  const found = new Map<string, Json>();
  for await (const { record } of allRows(service.deliveries, 'byRequest', { equals: { requestId }, limit: 1000 })) {
    if (record.channel === channel && record.receipt) found.set(record.id, record.receipt.value);
  }
  if (own?.receipt) found.set(own.id, own.receipt.value);
  return [...found.values()];
}

/** The longest error in the audit, in characters. */
const MAX_ERROR_LENGTH = 500;

/** With the code of the cause: `fetch failed (ECONNREFUSED)`. */
function auditText(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  // Any other text may contain what must not be stored.
  const suffix = /^[A-Z][A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : '';
  return `${truncatedText(error, MAX_ERROR_LENGTH - suffix.length)}${suffix}`;
}
