import { setTimeout as wait } from 'node:timers/promises';
import { v7 as uuid } from 'uuid';
import { LONGEST_MS } from './alarm.ts';
import { deliveriesOf } from './audit.ts';
import { DeliveryFailed } from './channel.ts';
import type { ApprovalDesk, Row } from './desk.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';
import type { ApprovalRow } from './rows.ts';
import { frozen, recordOf, requestOf } from './view.ts';
import { keptWords } from './words.ts';

/** What is told, and what the way back is made of. */
export interface Announcement {
  readonly request: ApprovalRequest;
  /** What an approval is bound to. */
  readonly digest: string;
  /** What the tool's definition says to the reviewer. */
  describe(): Promise<string | undefined>;
  /** What is left to decide it. */
  expiresInMs(): Promise<number>;
}

/** A channel, made for one agent. */
export interface Route {
  /** Its name in the audit; an agent has each name once. */
  readonly channel: string;
  deliver(announcement: Announcement, signal: AbortSignal): Promise<void>;
  decided?(record: ApprovalRecord, signal: AbortSignal): Promise<void>;
}

const ATTEMPT_MS = 15_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Tells who is to decide: the taps, then every channel at once. A request that was found is told again only where
 * nothing says that it arrived: at least once, as a crash may come in between. Ends when `signal` does, and then
 * whoever still waits for the request goes on.
 */
export async function announce(
  desk: ApprovalDesk,
  { record }: Row,
  { routes, made, signal }: { readonly routes: readonly Route[]; readonly made: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { requestId } = record;
  const before = desk.announced.get(requestId);
  if (before && !before.aborted) return;
  desk.announced.set(requestId, signal);
  const request = frozen(requestOf(record));
  const { approvalRequested } = desk.kernel.hooks;
  if (!before) await desk.tell('A tap on approvalRequested', () => approvalRequested.promise(request));
  if (routes.length === 0) return;
  const reached = made && !before ? new Set<string>() : await alreadyReached(desk, requestId);
  const announcement: Announcement = {
    request,
    digest: record.body.digest,
    describe: async () => (await desk.definition(record.body.toolDigest))?.description,
    expiresInMs: async () => Math.max(0, record.expiresAt.getTime() - (await desk.clock.now())),
  };
  const missing = routes.filter(({ channel }) => !reached.has(channel));
  await Promise.all(missing.map((route) => deliver(desk, route, announcement, record.expiresAt.getTime(), signal)));
}

/** Tells the channels that a request was decided. Nobody waits for it. */
export async function announceDecided(desk: ApprovalDesk, row: ApprovalRow, routes: readonly Route[]): Promise<void> {
  const record = frozen(recordOf(row));
  await Promise.all(
    routes.map(async ({ channel, decided }) => {
      if (!decided) return;
      await attempt((signal) => decided(record, signal), desk.closing).catch((error) =>
        desk.warn(`The channel ${channel} was not told that ${record.requestId} is decided: ${auditWords(error)}`),
      );
    }),
  );
}

/** Tries until it arrived, the request is over, or trying again is no use. Every attempt is recorded. */
async function deliver(
  desk: ApprovalDesk,
  route: Route,
  announcement: Announcement,
  deadline: number,
  signal: AbortSignal,
): Promise<void> {
  const { requestId } = announcement.request;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      // An attempt that is on its way when the request is decided ends as it ends: the audit says how.
      await attempt((patience) => route.deliver(announcement, patience), desk.closing);
      return await note(desk, requestId, route.channel, null);
    } catch (error) {
      if (desk.closing.aborted) return;
      const { retry, afterMs } = error instanceof DeliveryFailed ? error : { retry: true, afterMs: 0 };
      await note(desk, requestId, route.channel, auditWords(error));
      if (signal.aborted) return;
      // Jitter: receivers that come back are not met by everybody at once.
      const next = Math.max(afterMs, pause * (0.5 + Math.random() / 2));
      if (!retry || desk.clock.until(deadline) <= next) {
        desk.warn(`The channel ${route.channel} did not deliver ${requestId}: ${auditWords(error)}`);
        return;
      }
      await pauseFor(next, signal);
      if (signal.aborted) return;
    }
  }
}

/** Ends early when the signal aborts, and never otherwise: a receiver is not asked before it wants to be. */
async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= LONGEST_MS) {
    await wait(Math.min(left, LONGEST_MS), undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** A channel that never answers is left alone after a while, whether it listens to its signal or not. */
async function attempt(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
  const late = AbortSignal.timeout(ATTEMPT_MS);
  const either = AbortSignal.any([signal, late]);
  let end = () => {};
  const over = new Promise<never>((_, reject) => {
    end = () => reject(late.aborted ? new Error(`no answer within ${ATTEMPT_MS} ms`) : signal.reason);
    if (either.aborted) end();
    else either.addEventListener('abort', end, { once: true });
  });
  over.catch(() => undefined);
  try {
    await Promise.race([work(either), over]);
  } finally {
    either.removeEventListener('abort', end);
  }
}

async function note(desk: ApprovalDesk, requestId: string, channel: string, error: string | null): Promise<void> {
  try {
    await desk.deliveries.insert({
      id: `del_${uuid()}`,
      requestId,
      channel,
      at: new Date(await desk.clock.now()),
      delivered: error === null,
      error,
    });
  } catch (failure) {
    desk.warn(`A delivery of ${requestId} by ${channel} is missing in the audit: ${auditWords(failure)}`);
  }
}

async function alreadyReached(desk: ApprovalDesk, requestId: string): Promise<ReadonlySet<string>> {
  const reached = new Set<string>();
  try {
    for await (const { channel, delivered } of deliveriesOf(desk, requestId)) if (delivered) reached.add(channel);
  } catch {
    // Told twice is better than not at all.
  }
  return reached;
}

/** Characters of an error in the audit. */
const LONGEST_ERROR = 500;

function auditWords(error: unknown): string {
  return keptWords(error, LONGEST_ERROR);
}
