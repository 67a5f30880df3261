import { SvcError } from '../errors.ts';
import { allRows } from '../records.ts';
import { callKey } from '../tool/call-digest.ts';
import { chainProblems } from './event-chain.ts';
import { everyRequest } from './list-approvals.ts';
import { toApprovalRecord } from './public-view.ts';
import { type ApprovalEvent, idRange, isCreatedIn } from './request.ts';
import type { ApprovalRow } from './schema.ts';
import { type SealCheck, SealedAudit, type SealSource } from './seal/sealed-audit.ts';
import type { Sealer } from './seal/sealer.ts';
import type { ApprovalService, RequestRow } from './service.ts';
import { hasLapsed } from './state.ts';
import type { StoreClock } from './store-clock.ts';

/** One line of the audit: an event of a request or a delivery attempt. @experimental */
export interface AuditEntry extends Omit<ApprovalEvent, 'type'> {
  readonly requestId: string;
  readonly executionId: string;
  readonly agentTag: string;
  readonly tool: string;
  readonly type: ApprovalEvent['type'] | 'delivered' | 'not_delivered';
  /**
   * With `requested`: parameters (sensitive ones masked), reason and deadline, the digest of the tool, the version of the rule,
   * the model, and what it wrote before the call. With a decision: its reason and changes.
   */
  readonly details?: object;
}

/** An attempt to deliver a request to a channel, or a failure to report its decision. @experimental */
export interface DeliveryAttempt {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly channel: string;
  readonly delivered: boolean;
  readonly error?: string;
}

/** Every event and delivery: grouped by request, by status and then by creation time. */
export async function* auditTrail(
  service: ApprovalService,
  { since, before }: { readonly since?: Date; readonly before?: Date } = {},
): AsyncGenerator<AuditEntry> {
  // A request that is decided during the export appears again under its new status: only new entries follow.
  const exported = new Map<string, ExportedCounts>();
  for await (const row of allRequests(service, since, before)) {
    const { requestId } = row.record;
    const counts = yield* auditEntries(service, row, exported.get(requestId));
    if (isOpen(row)) exported.set(requestId, counts);
  }
}

/** How many entries of a request were exported. */
interface ExportedCounts {
  readonly events: number;
  readonly deliveries: number;
}

/** The events and deliveries of a request, oldest first; `before`: how many of each to leave out. */
export async function* auditEntries(
  service: ApprovalService,
  { record }: RequestRow,
  before: ExportedCounts = { events: 0, deliveries: 0 },
): AsyncGenerator<AuditEntry, ExportedCounts> {
  const { requestId, executionId, agentTag, tool, ...rest } = toApprovalRecord(record);
  const common = { requestId, executionId, agentTag, tool };
  const { parameters, reason, timeout, decisionReason, modifiedParams, model, toolDigest, rule } = rest;
  const { modelText } = record.body;
  const requested = {
    parameters,
    reason,
    timeout,
    toolDigest,
    ...(model !== undefined && { model }),
    ...(modelText !== undefined && { modelText }),
    ...(rule && { rule: rule.version }),
  };
  for (const event of rest.events.slice(before.events)) {
    const isDecision = event.type === 'approved' || event.type === 'rejected' || event.type === 'cancelled';
    const details =
      event.type === 'requested'
        ? requested
        : isDecision && (decisionReason !== undefined || modifiedParams)
          ? {
              ...(decisionReason !== undefined && { reason: decisionReason }),
              ...(modifiedParams && { modifiedParams }),
            }
          : undefined;
    yield { ...common, ...event, ...(details && { details }) };
  }
  let deliveries = 0;
  for await (const { at, channel, delivered, error } of deliveriesOf(service, requestId)) {
    deliveries += 1;
    if (deliveries <= before.deliveries) continue;
    const type = delivered ? 'delivered' : 'not_delivered';
    yield { ...common, type, at, as: channel, ...(error !== undefined && { details: { error } }) };
  }
  return { events: rest.events.length, deliveries };
}

/** A request whose stored events do not fit together. @experimental */
export interface AuditProblem {
  readonly requestId: string;
  readonly problems: readonly string[];
}

/** @experimental */
export interface AuditCheck {
  /** How many requests were read. */
  readonly checked: number;
  readonly broken: readonly AuditProblem[];
  /** Absent if the store is not compared with seals. */
  readonly seals?: SealCheck;
}

interface AuditRange {
  readonly since?: Date;
  readonly before?: Date;
}

/** Checks the events of every request, and compares them with seals. */
export async function verifyAudit(
  service: ApprovalService,
  { since, before }: AuditRange = {},
  source?: SealSource,
): Promise<AuditCheck> {
  // Before the requests: what is sealed then is in the store later.
  const sealed = source && (await SealedAudit.read(source));
  const broken: AuditProblem[] = [];
  const checked = new Set<string>();
  for await (const { record } of allRequests(service, since, before)) {
    const { requestId } = record;
    // One that is decided in the meantime appears again under its new status.
    if (checked.has(requestId)) continue;
    checked.add(requestId);
    const problems = problemsOf(record, sealed);
    if (problems.length > 0) broken.push({ requestId, problems });
  }
  if (sealed) {
    const { from = '', to = '~' } = idRange('apr', since, before);
    const missing = sealed.missing().filter((requestId) => requestId >= from && requestId <= to);
    // `prune` may have sealed a removal in the meantime.
    const later = missing.length > 0 ? await SealedAudit.read(source) : sealed;
    for (const requestId of missing) {
      if (later.wasRemoved(requestId)) continue;
      const found = await service.read(requestId);
      // What the list left out was created at another time, or is in none of its states any more.
      const problems = found
        ? problemsOf(found.record, sealed)
        : ['The request was removed, and not by svc approvals prune.'];
      if (problems.length > 0) broken.push({ requestId, problems });
    }
  }
  // By the time of their creation, so that the first one comes first.
  broken.sort((one, other) => (one.requestId < other.requestId ? -1 : 1));
  return { checked: checked.size, broken, ...(sealed && { seals: sealed.check }) };
}

const problemsOf = (row: ApprovalRow, sealed: SealedAudit | undefined): string[] => [
  ...chainProblems(row),
  ...(sealed?.problemsOf(row) ?? []),
];

function changedError(broken: readonly AuditProblem[], removed: number): SvcError {
  return new SvcError('audit_broken', 'Some requests were not removed, because they are not what was sealed.', {
    why: `Changed in the database: ${broken.length}, the first of them ${broken[0]?.requestId}.`,
    state: `Removed: ${removed} others.`,
    next: ['svc approvals verify    names what was changed'],
    details: { broken, removed },
  });
}

/** The delivery attempts of a request, oldest first. */
export async function* deliveriesOf(service: ApprovalService, requestId: string): AsyncGenerator<DeliveryAttempt> {
  for await (const { record } of allRows(service.deliveries, 'byRequest', { equals: { requestId }, limit: 1000 })) {
    const { at, channel, delivered, error } = record;
    yield { at: at.toISOString(), channel, delivered, ...(error !== null && { error }) };
  }
}

/** A seal says of this many requests at most that they are removed. */
const PRUNED_AT_ONCE = 500;

/**
 * Removes ended requests that were created more than `olderThanMs` ago, with their deliveries. Returns how many.
 * Keeps requests of running executions: without its request, a repeated call would be requested, and run, again. With
 * `seals`, throws `audit_broken` at the end if some were kept because they were changed.
 */
export async function pruneApprovals(
  service: ApprovalService,
  { olderThanMs }: { readonly olderThanMs: number },
  isRunning: (executionId: string) => Promise<boolean>,
  seals?: { readonly sealer: Pick<Sealer, 'sealRemoval'>; readonly source: SealSource },
): Promise<number> {
  const before = await pruneCutoff(service.clock, olderThanMs);
  const now = await service.clock.now();
  const sealed = seals && (await SealedAudit.read(seals.source));
  const [first] = sealed?.check.problems ?? [];
  if (first !== undefined) {
    throw new SvcError('audit_broken', 'The seals were changed.', {
      why: first,
      state: 'Nothing was removed.',
      next: ['svc approvals verify    names what was changed'],
    });
  }
  let removed = 0;
  const changed: AuditProblem[] = [];
  const removeAll = async (rows: readonly RequestRow[]) => {
    await seals?.sealer.sealRemoval(rows);
    for (const row of rows) {
      if ((await service.rows.remove(row.record.requestId, row.version)) !== 'removed') continue;
      removed += 1;
      await removeRelatedRows(service, row);
    }
  };
  let batch: RequestRow[] = [];
  for await (const row of allRequests(service, undefined, before)) {
    const { record } = row;
    if (isOpen(row) && !hasLapsed(record, now) && !(await isForgotten(service, record))) continue;
    if (await isRunning(record.executionId)) continue;
    const problems = sealed ? problemsOf(record, sealed) : [];
    if (problems.length > 0) {
      changed.push({ requestId: record.requestId, problems });
      continue;
    }
    batch.push(row);
    if (batch.length < PRUNED_AT_ONCE) continue;
    await removeAll(batch);
    batch = [];
  }
  if (batch.length > 0) await removeAll(batch);
  await service.presence.prune(before);
  // A seal that says that it was removed would hide that it was changed.
  if (changed.length > 0) throw changedError(changed, removed);
  return removed;
}

/** Records created before this moment may be removed. Throws `value_invalid`. */
export async function pruneCutoff(clock: StoreClock, olderThanMs: number): Promise<Date> {
  if (Number.isFinite(olderThanMs) && olderThanMs >= 0) return new Date((await clock.readNow()) - olderThanMs);
  throw new SvcError('value_invalid', 'prune needs olderThanMs as a number of milliseconds.', {
    state: 'Nothing was removed.',
  });
}

/** Whether the request may still be decided or run. */
function isOpen({ record: { status, body } }: RequestRow): boolean {
  return status === 'waiting' || (status === 'approved' && body.outcome === undefined);
}

/** Approved, not started, and never started: its process is gone, and no other can name the call to take it up. */
async function isForgotten(service: ApprovalService, row: ApprovalRow): Promise<boolean> {
  if (row.status !== 'approved' || row.body.toolCallId !== undefined) return false;
  return (await service.presence.unattendedSince(row)) !== undefined;
}

async function removeRelatedRows(service: ApprovalService, { record }: RequestRow): Promise<void> {
  const { requestId, executionId, body } = record;
  const notice = await service.notices.get(requestId);
  if (notice) await service.notices.remove(requestId, notice.version);
  if (body.toolCallId !== undefined) {
    const key = callKey(executionId, body.toolCallId);
    const found = await service.calls.get(key);
    if (found?.record.requestId === requestId) await service.calls.remove(key, found.version);
  }
  for (;;) {
    const { records } = await service.deliveries.page('byRequest', { equals: { requestId }, limit: 1000 });
    if (records.length === 0) return;
    for (const { record: delivery, version } of records) await service.deliveries.remove(delivery.id, version);
  }
}

async function* allRequests(service: ApprovalService, since?: Date, before?: Date): AsyncGenerator<RequestRow> {
  for await (const row of everyRequest(service, idRange('apr', since, before)))
    if (isCreatedIn(row.record.body.timestamp, since, before)) yield row;
}
