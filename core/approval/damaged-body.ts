import { isPlainObject, type Json } from '../json.ts';
import type { RecordStore, Versioned } from '../records.ts';
import { APPROVAL_STATUSES } from './request.ts';
import type { ApprovalBody, ApprovalRow } from './schema.ts';

/**
 * The requests of a store, whatever was written there by other means: a body that cannot be one of a request is replaced
 * by a body that names the damage, can be rejected and expires, and never runs. One damaged row would otherwise end the
 * list and the search for overdue requests.
 */
export function withReadableBodies(store: RecordStore<ApprovalRow>): RecordStore<ApprovalRow> {
  return {
    insert: (record) => store.insert(record),
    replace: (key, version, record, guard) => store.replace(key, version, record, guard),
    remove: (key, version) => store.remove(key, version),
    async get(key) {
      const found = await store.get(key);
      return found && readable(found);
    },
    async page(index, query) {
      const page = await store.page(index, query);
      if (query.columns && !query.columns.includes('body')) return page;
      return { ...page, records: page.records.map(readable) };
    },
  };
}

function readable(row: Versioned<ApprovalRow>): Versioned<ApprovalRow> {
  const { record } = row;
  if (!isStatus(record.status)) return damaged({ ...row, record: { ...record, status: 'approved' } });
  return isReadable(record.body) ? row : damaged(row);
}

const damaged = (row: Versioned<ApprovalRow>): Versioned<ApprovalRow> => ({
  ...row,
  record: { ...row.record, body: damagedBody(row.record) },
});

const isStatus = (status: unknown): boolean => APPROVAL_STATUSES.some((one) => one === status);

const RUNS: ReadonlySet<unknown> = new Set(['none', 'claimed', 'unknown', 'done'] satisfies ApprovalBody['run'][]);
const TEXTS = ['tool', 'toolDigest', 'digest', 'reason', 'timestamp'] as const satisfies (keyof ApprovalBody)[];

/** Whether a body has all that is read without a check. Its digest binds the rest. */
function isReadable(body: unknown): boolean {
  if (!isPlainObject(body) || TEXTS.some((name) => typeof body[name] !== 'string')) return false;
  const { run, parameters, events, decision, claim, outcome, sensitive, waiters, votes, rules } = body;
  const { timeoutMs, validForMs = 0, salt = '', modelText = '' } = body;
  return (
    RUNS.has(run) &&
    isPlainObject(parameters) &&
    isDuration(timeoutMs) &&
    isDuration(validForMs) &&
    isText(salt) &&
    isText(modelText) &&
    events !== undefined &&
    isOptionalList(events, isPlainObject) &&
    isOptional(decision, ({ at, by }) => isMoment(at) && isText(by)) &&
    isOptional(claim, ({ token, leaseMs }) => isText(token) && isDuration(leaseMs)) &&
    isOptional(outcome, ({ status }) => isText(status)) &&
    (run !== 'claimed' || claim !== undefined) &&
    (run !== 'done' || outcome !== undefined) &&
    isOptional(rules, ({ list }) => list !== undefined && isOptionalList(list, isPlainObject)) &&
    isOptionalList(sensitive, isText) &&
    isOptionalList(waiters, isText) &&
    isOptionalList(votes, isVote)
  );
}

function isOptional(value: unknown, isValid: (value: Record<string, unknown>) => boolean): boolean {
  return value === undefined || (isPlainObject(value) && isValid(value));
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isMoment = (value: unknown): boolean => typeof value === 'string' && !Number.isNaN(Date.parse(value));

/** More than any setting allows, and far from the end of what a Date can hold. */
const MAX_DURATION_MS = 1e12;

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= MAX_DURATION_MS;
}

function isVote(value: unknown): boolean {
  return isPlainObject(value) && isPlainObject(value.principal) && typeof value.principal.id === 'string';
}

function isOptionalList(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return value === undefined || (Array.isArray(value) && value.every(isItem));
}

/** No tool has this digest, and no call has it either. */
const NO_DIGEST = 'damaged';

function damagedBody({ status, body, expiresAt }: ApprovalRow): ApprovalBody {
  return {
    tool: '(damaged)',
    toolDigest: NO_DIGEST,
    parameters: {},
    digest: NO_DIGEST,
    reason: 'The stored request is damaged. It can be rejected; it cannot run.',
    timestamp: expiresAt.toISOString(),
    timeoutMs: 0,
    // An approved call may have run, and so may one with a status that svc does not write.
    run: status === 'approved' ? 'unknown' : 'none',
    events: [],
    damaged: body as unknown as Json,
  };
}
