import { v7 as uuid } from 'uuid';
import type { Adapter } from '../database/adapter.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { CLOCK, type RecordWrite, recordWrite, type Writable } from '../records.ts';
import { actor } from './actor.ts';
import { drift, withoutForeign } from './drift.ts';
import { resolutions } from './half-done.ts';
import { audit, type HistoryRow, history } from './history.ts';
import { modelOf } from './ledger.ts';
import type { Migration } from './migration.ts';
import { unknownTag } from './planning.ts';
import type { Defined } from './reconcile.ts';
import { resume } from './resume.ts';
import { retold } from './retelling.ts';
import { type SessionOptions, underBareLock } from './session.ts';
import { touches } from './touches.ts';

export const RESOLUTIONS = ['retry', 'applied', 'rolled-back', 'failed', 'forget'] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

export interface ResolveReport {
  readonly tag: string;
  readonly action: Resolution;
  readonly status: HistoryRow['status'] | 'forgotten';
}

export interface ResolveOptions extends SessionOptions {
  /** What the files say now: an edited one is not what `retry` would run, or `applied` record. */
  readonly defined?: readonly Defined[];
}

/**
 * A person's decision about a migration that stopped half-way, kept in `_svc_audit`: `retry` runs the rest,
 * `applied` and `rolled-back` record what was done by hand, `failed` marks it, `forget` takes it out of the history.
 * `rolled-back` is also said of one that is applied, where the catalog shows that it was undone by hand.
 */
export function resolve(
  adapter: Adapter,
  tag: string,
  action: Resolution,
  options: ResolveOptions = {},
): Promise<ResolveReport> {
  return underBareLock(adapter, options, async (run) => {
    const stored = await adapter.connection.records(history).get(tag);
    if (!stored) throw unknownTag(tag, 'The history has no row of that tag.');
    const { record, version } = stored;
    refuseNeedless(record, action);
    if (action === 'retry' || action === 'applied') refuseEdited(record, options.defined);
    if (action === 'retry' && !record.journal) throw nothingLeft(record);
    if (record.status === 'completed') {
      const completed = await run.ledger.migrations(adapter.connection);
      const migrations = completed.map(({ migration }) => migration);
      refuseNeeded(tag, action, migrations);
      if (action === 'rolled-back') await refuseStanding(adapter, record, migrations);
    }
    if (action === 'retry') {
      const { failure } = await adapter.connection.run(
        [{ transactional: true, statements: [], writes: [auditWrite(record, action)] }],
        run.epoch,
      );
      if (failure) throw failure.error;
      await resume(run, { row: record, version }, true);
      return { tag, action, status: run.ledger.entries.get(tag)?.row.status ?? 'completed' };
    }
    const next = action === 'forget' ? undefined : decided(record, action, run.epoch);
    const writes = [auditWrite(record, action)];
    if (next) writes.push(recordWrite(history, next, version));
    const outcome = await adapter.connection.run([{ transactional: true, statements: [], writes }], run.epoch);
    if (outcome.failure) throw outcome.failure.error;
    if (!next && (await adapter.connection.records(history).remove(tag, version)) === 'stale') throw movedOn(tag);
    return { tag, action, status: (next?.status as HistoryRow['status'] | undefined) ?? 'forgotten' };
  });
}

function movedOn(tag: string): SvcError {
  return new SvcError('lock_lost', `The migration "${tag}" is not forgotten: its row has moved on.`, {
    why: 'Another process has written it since it was read under the lock.',
    state: 'The row is as that process left it; the audit has the decision.',
    next: ['svc db migrate status'],
  });
}

function refuseNeedless(row: HistoryRow, action: Resolution): void {
  const open = row.status === 'failed' || row.status === 'applying';
  if (open || action === 'forget' || action === 'failed') return;
  if (action === 'rolled-back' && row.status === 'completed') return;
  throw new SvcError('check_failed', `The migration "${row.tag}" needs no decision.`, {
    why: `Its status is ${row.status}.`,
    state: 'Nothing was changed.',
    next: ['svc db migrate status'],
  });
}

/** A migration that a person marked, and that had come to its end. */
function nothingLeft({ tag, step, steps }: HistoryRow): SvcError {
  return new SvcError('check_failed', `Nothing of "${tag}" is left to run.`, {
    why: 'It was marked as failed by a person, and no journal says how it would go on.',
    state: `Nothing was changed; ${step} of ${steps} of its steps are committed.`,
    next: resolutions({ tag, step: steps, steps }, false),
    details: { tag },
  });
}

/** Without it the history could not be read on, by any command. */
function refuseNeeded(tag: string, action: Resolution, completed: readonly Migration[]): void {
  const [before, after] = [completed, completed.filter((one) => one.tag !== tag)].map(unfollowed);
  if (before || !after) return;
  const { tag: needing } = after.details;
  throw new SvcError('not_reversible_now', `"${tag}" stays in the history: "${needing}" builds on it.`, {
    why: [`${after.where}: ${after.message}`, after.why].filter(Boolean).join(' '),
    state: 'Nothing was changed.',
    next: [`That one first: svc db migrate resolve ${needing} --${action}`],
    details: { tag, needing },
  });
}

/** Why migrations cannot have been applied one after the other. */
function unfollowed(migrations: readonly Migration[]): SvcError | undefined {
  try {
    retold(migrations);
    return undefined;
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
}

/** What was undone by hand is undone in the catalog: all of it that a model shows. */
async function refuseStanding(
  { connection }: Adapter,
  { tag, migration, found: there }: HistoryRow,
  completed: readonly Migration[],
): Promise<void> {
  const names = new Set([...migration.up, ...migration.down].flatMap(touches));
  for (const name of there ?? []) names.delete(name);
  if (names.size === 0) return;
  const { foreign } = retold(completed);
  const model = await modelOf(
    completed.filter((one) => one.tag !== tag),
    connection,
  );
  const isKnown = ([name]: readonly [string, unknown]): boolean => model.has(name) || !foreign.has(name);
  const catalog = new Map([...(await connection.introspect([...names]))].filter(isKnown));
  const expected = new Map([...model].filter(([name]) => names.has(name)));
  const differences = await drift(connection, expected, withoutForeign(catalog, model));
  if (differences.length === 0) return;
  throw new SvcError('drift', `The database is not what it would be without "${tag}".`, {
    why: differences.join('; '),
    state: 'Nothing was changed.',
    next: [
      'svc db migrate rollback    takes back what was applied last',
      'Or undo by hand what is named, then decide again.',
    ],
    details: { tag, differences },
  });
}

function refuseEdited(row: HistoryRow, defined: readonly Defined[] = []): void {
  const found = defined.find(({ tag }) => tag === row.tag);
  if (!found || found.checksum === row.checksum) return;
  throw new SvcError('migration_edited', `The migration "${row.tag}" was edited after it began.`, {
    why: 'What goes on is what was recorded then, not what the file says now.',
    state: `Nothing was changed; ${row.step} of ${row.steps} of its steps are committed.`,
    next: [
      'Restore the file from version control, and decide again.',
      `Or undo its steps by hand: svc db migrate resolve ${row.tag} --rolled-back    the edited file is applied anew then`,
    ],
    ...(found.file !== undefined && { where: found.file }),
    details: { tag: row.tag },
  });
}

/** Nothing is left to go on with. */
const ended = { journal: null, started: false };

function decided(
  row: HistoryRow,
  action: Exclude<Resolution, 'retry' | 'forget'>,
  epoch: number,
): Writable<HistoryRow> {
  switch (action) {
    case 'applied':
      return {
        ...row,
        status: 'completed',
        applied_at: CLOCK,
        // What baseline recorded stays what never ran.
        duration_ms: row.journal ? (row.duration_ms ?? 0) : row.duration_ms,
        rolled_back_at: null,
        step: row.steps,
        error: null,
        epoch,
        ...ended,
      };
    case 'rolled-back':
      return { ...row, status: 'rolled_back', rolled_back_at: CLOCK, step: 0, error: null, epoch, ...ended };
    case 'failed':
      return { ...row, status: 'failed', error: row.error ?? 'Marked as failed by a person.', epoch };
  }
}

export function auditWrite(row: Pick<HistoryRow, 'tag'>, action: string): RecordWrite {
  return recordWrite(audit, { id: uuid(), at: CLOCK, tag: row.tag, action, actor: actor(), before: row });
}
