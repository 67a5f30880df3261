import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuid } from 'uuid';
import { frozenClone, truncatedText } from '../tool/safe-json.ts';
import { deliveriesOf } from './audit.ts';
import { DeliveryFailed } from './channel.ts';
import { toApprovalRecord, toApprovalRequest } from './public-view.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';
import type { ApprovalRow } from './schema.ts';
import type { ApprovalService, RequestRow } from './service.ts';
import { MAX_TIMEOUT_MS } from './timer-queue.ts';

/** A request to announce, with the data that its delivery is built from. */
export interface Announcement {
  readonly request: ApprovalRequest;
  /** Digest of the call; a callback token is valid for this call only. */
  readonly digest: string;
  /** The description from the tool's definition. */
  describe(): Promise<string | undefined>;
  /** Milliseconds until the deadline, by the store's clock. */
  expiresInMs(): Promise<number>;
}

/** A channel configured for one agent. */
export interface DeliveryRoute {
  /** Its name in the audit, unique for the agent. */
  readonly channel: string;
  deliver(announcement: Announcement, signal: AbortSignal): Promise<void>;
  onDecided?(record: ApprovalRecord, signal: AbortSignal): Promise<void>;
}

const ATTEMPT_TIMEOUT_MS = 15_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

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
  if (previous && !previous.aborted) return;
  service.announcements.set(requestId, signal);
  const request = frozenClone(toApprovalRequest(record));
  const { approvalRequested } = service.hooks;
  if (!previous) await service.runListener('A tap on approvalRequested', () => approvalRequested.promise(request));
  if (routes.length === 0) return;
  const delivered = isNew && !previous ? new Set<string>() : await deliveredChannels(service, requestId);
  const announcement: Announcement = {
    request,
    digest: record.body.digest,
    describe: async () => (await service.getToolDefinition(record.body.toolDigest))?.description,
    expiresInMs: async () => Math.max(0, record.expiresAt.getTime() - (await service.clock.now())),
  };
  const missing = routes.filter(({ channel }) => !delivered.has(channel));
  await Promise.all(missing.map((route) => deliver(service, route, announcement, record.expiresAt.getTime(), signal)));
}

/** Reports a decision to the channels: one attempt each. */
export async function announceDecision(
  service: ApprovalService,
  row: ApprovalRow,
  routes: readonly DeliveryRoute[],
): Promise<void> {
  const record = frozenClone(toApprovalRecord(row));
  await Promise.all(
    routes.map(async ({ channel, onDecided }) => {
      if (!onDecided) return;
      await withTimeout((signal) => onDecided(record, signal), service.closing).catch((error) =>
        service.warn(`The channel ${channel} did not receive the decision on ${record.requestId}: ${auditText(error)}`),
      );
    }),
  );
}

/** Retries until delivered, decided, expired or not retryable. Every attempt is recorded. */
async function deliver(
  service: ApprovalService,
  route: DeliveryRoute,
  announcement: Announcement,
  deadline: number,
  signal: AbortSignal,
): Promise<void> {
  const { requestId } = announcement.request;
  for (let pause = FIRST_RETRY_MS; ; pause = Math.min(pause * 2, MAX_RETRY_MS)) {
    try {
      // A decision does not abort an attempt in progress: its result is recorded in the audit.
      await withTimeout((attemptSignal) => route.deliver(announcement, attemptSignal), service.closing);
      return await recordAttempt(service, requestId, route.channel, null);
    } catch (error) {
      if (service.closing.aborted) return;
      const { retry, afterMs } = error instanceof DeliveryFailed ? error : { retry: true, afterMs: 0 };
      await recordAttempt(service, requestId, route.channel, auditText(error));
      if (signal.aborted) return;
      // Jitter: a receiver that recovers is not contacted by all senders at once.
      const next = Math.max(afterMs, pause * (0.5 + Math.random() / 2));
      if (!retry || service.clock.msUntil(deadline) <= next) {
        service.warn(`The channel ${route.channel} did not deliver ${requestId}: ${auditText(error)}`);
        return;
      }
      await pauseFor(next, signal);
      if (signal.aborted) return;
    }
  }
}

/** Ends early only if the signal aborts, so that `Retry-After` is honoured. Longer pauses take several timers. */
async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= MAX_TIMEOUT_MS) {
    await wait(Math.min(left, MAX_TIMEOUT_MS), undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** Rejects on a timeout or abort even if the channel ignores its signal. */
async function withTimeout(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
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
    await Promise.race([work(either), aborted]);
  } finally {
    either.removeEventListener('abort', end);
  }
}

async function recordAttempt(
  service: ApprovalService,
  requestId: string,
  channel: string,
  error: string | null,
): Promise<void> {
  try {
    await service.deliveries.insert({
      id: `del_${uuid()}`,
      requestId,
      channel,
      at: new Date(await service.clock.now()),
      delivered: error === null,
      error,
    });
  } catch (failure) {
    service.warn(`A delivery of ${requestId} by ${channel} could not be added to the audit: ${auditText(failure)}`);
  }
}

async function deliveredChannels(service: ApprovalService, requestId: string): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  try {
    for await (const { channel, delivered } of deliveriesOf(service, requestId)) if (delivered) found.add(channel);
  } catch {
    // A duplicate delivery is better than none.
  }
  return found;
}

/** The longest error in the audit, in characters. */
const MAX_ERROR_LENGTH = 500;

function auditText(error: unknown): string {
  return truncatedText(error, MAX_ERROR_LENGTH);
}
