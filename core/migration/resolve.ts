import { v7 as uuid } from 'uuid';
import { isSvcError, SvcError } from '../errors.ts';
import { CLOCK, type RecordWrite, recordUpdate, recordWrite, type Writable } from '../records.ts';
import type { PlanPart } from './bound-plan.ts';
import { assertConfirmed } from './confirm-decision.ts';
import { correctMigration, editedError } from './correct.ts';
import { assertUnchanged } from './history-damage.ts';
import { auditTable, type HistoryRow, historyTable, osActor } from './history-table.ts';
import { approvalOf, recordCommitted } from './journal.ts';
import { type LockSessionOptions, withLockedHistory } from './lock-session.ts';
import type { Migration } from './migration.ts';
import { decideReviewed, reviewDecision } from './plan-approval.ts';
import type { AskOptions } from './plan-approver.ts';
import { type DefinedMigration, resolveCommands, unknownMigrationError } from './reconcile.ts';
import { resumeMigration } from './recover.ts';
import { type MigrationReplay, replayMigrations } from './replay.ts';
import type { Target } from './target.ts';

export const RESOLUTIONS = ['retry', 'applied', 'rolled-back', 'failed', 'forget'] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

export interface ResolveReport {
  readonly tag: string;
  readonly action: Resolution;
  readonly status: HistoryRow['status'] | 'forgotten';
}

interface ResolveOptions extends LockSessionOptions {
  /** The migration files: `applied` is rejected if the file was edited since, `retry` if a step that ran was. */
  readonly defined?: readonly DefinedMigration[];
  /** How to ask for approval, where the environment requires it. */
  readonly ask?: AskOptions;
}

/**
 * Applies a person's decision about a migration that stopped halfway and stores it in `_svc_audit`. `retry` runs
 * the rest, as corrected in its file, `applied` and `rolled-back` record what was done by hand, `failed` marks an
 * interrupted migration, `forget` removes any migration from the history. `rolled-back` also accepts a completed
 * migration. Throws `drift` if the catalog contradicts `applied` or `rolled-back`.
 */
export async function resolveMigration(
  target: Target,
  tag: string,
  action: Resolution,
  options: ResolveOptions = {},
): Promise<ResolveReport> {
  const { connection } = target;
  /** The migration to decide about, and what is left to run of it. */
  const read = async () => {
    const stored = await connection.records(historyTable).get(tag);
    if (!stored) throw unknownMigrationError(tag, 'It is not in the history.');
    const { record, version } = stored;
    assertNeedsDecision(record, action);
    const edited = editedFile(record, options.defined);
    if (edited && (action === 'applied' || action === 'retry')) assertUnchanged(record, record.migration);
    if (edited && action === 'applied') throw editedError(record, edited);
    if (action === 'retry' && !record.journal) throw nothingToRetryError(record);
    return { record, version, edited, part: partOf(record, action, edited) };
  };
  const plan = await reviewDecision(target, `resolve --${action}`, read, options.ask);
  return withLockedHistory(target, { ...options, plan }, async (run) => {
    const { record, version, edited, part } = await read();
    if (record.status === 'completed') {
      const migrations = (await run.history.completedMigrations(connection)).map(({ migration }) => migration);
      assertNotRequired(tag, action, migrations, target.dialect.name);
    }
    const createdByHand =
      action === 'applied' || action === 'rolled-back'
        ? await assertConfirmed(target, record, action, await run.history.completedMigrations(connection))
        : [];
    const write = async (writes: readonly RecordWrite[]): Promise<void> => {
      const { failure } = await connection.run([{ transactional: true, statements: [], writes }], run.epoch);
      if (failure) throw failure.error;
    };
    const audit = auditWrite(record, action);
    return decideReviewed(run, part, async () => {
      switch (action) {
        case 'retry':
          if (edited) {
            await resumeMigration(run, await correctMigration(run, record, version, edited, audit), true);
          } else {
            const journal = record.journal && { ...record.journal, ...approvalOf(run) };
            const update = { tag, status: record.status, journal };
            await write([audit, recordUpdate(historyTable, update, version)]);
            recordCommitted(run, { update }, {});
            await resumeMigration(run, { row: record, version: version + 1 }, true);
          }
          return { tag, action, status: run.history.records.get(tag)?.row.status ?? 'completed' };
        case 'forget':
          await write([audit]);
          if ((await connection.records(historyTable).remove(tag, version)) === 'stale') throw rowChangedError(tag);
          return { tag, action, status: 'forgotten' };
        default: {
          if (createdByHand.length > 0) await connection.adopt?.(createdByHand, run.epoch);
          const row = resolvedRow(record, action, run.epoch);
          await write([audit, recordWrite(historyTable, row, version)]);
          return { tag, action, status: row.status as HistoryRow['status'] };
        }
      }
    });
  });
}

/** What a decision runs: the rest of the migration, as in its file if that was edited, or nothing. */
function partOf(
  { tag, origin, checksum, migration, journal, step }: HistoryRow,
  action: Resolution,
  edited: DefinedMigration | undefined,
): PlanPart {
  const direction = journal?.direction ?? 'up';
  const left = journal?.steps.flatMap(({ statements }) => statements).slice(step) ?? [];
  const corrected = edited?.migration[direction].map((operation) => ({ text: JSON.stringify(operation) }));
  const texts = action === 'retry' ? (corrected ?? left) : [];
  const statements = texts.map(({ text }) => ({ text }));
  return { tag, direction, origin, checksum: edited?.checksum ?? checksum, migration, statements };
}

function rowChangedError(tag: string): SvcError {
  return new SvcError('lock_lost', `The migration "${tag}" was not removed from the history: its row has changed.`, {
    why: 'Another process wrote it after it was read under the lock.',
    state: 'The row is unchanged; the decision is in _svc_audit.',
    next: ['svc db migrate status'],
  });
}

function assertNeedsDecision({ tag, status }: HistoryRow, action: Resolution): void {
  if (status === 'failed' || status === 'applying' || action === 'forget') return;
  if (action === 'rolled-back' && status === 'completed') return;
  throw new SvcError('check_failed', `The migration "${tag}" needs no decision.`, {
    why: `Its status is ${status}.`,
    state: 'Nothing was changed.',
    next: ['svc db migrate status'],
  });
}

/** A migration without a journal is one whose row was written by hand. */
function nothingToRetryError({ tag, step, steps, origin }: HistoryRow): SvcError {
  return new SvcError('check_failed', `"${tag}" has no steps left to run.`, {
    why: 'It is marked as failed, and it has no journal to continue from.',
    state: `Nothing was changed; ${step} of ${steps} of its steps are committed.`,
    next: resolveCommands({ tag, step: steps, steps, origin }, false),
    details: { tag },
  });
}

/** Throws if another migration depends on this one: without it the history would not produce the schema. */
function assertNotRequired(tag: string, action: Resolution, completed: readonly Migration[], dialect: string): void {
  const others = completed.filter((migration) => migration.tag !== tag);
  const needed = dependentOf(others, completed, dialect);
  if (!needed) return;
  throw new SvcError('not_reversible_now', `"${tag}" must stay in the history: "${needed.dependent}" depends on it.`, {
    why: needed.why,
    state: 'Nothing was changed.',
    next: [`Resolve that one first: svc db migrate resolve ${needed.dependent} --${action}`],
    details: { tag, dependent: needed.dependent },
  });
}

interface Dependent {
  readonly dependent: string;
  readonly why: string;
}

/** The migration that cannot be replayed, or changes a table that no migration creates, only without the removed one. */
function dependentOf(
  others: readonly Migration[],
  completed: readonly Migration[],
  dialect: string,
): Dependent | undefined {
  const all = replayed(completed, dialect);
  if (isSvcError(all)) return undefined;
  const rest = replayed(others, dialect);
  if (isSvcError(rest)) {
    const why = [`${rest.where}: ${rest.message}`, rest.why].filter(Boolean).join(' ');
    return { dependent: String(rest.details.tag), why };
  }
  const orphan = [...rest.everUnmanaged].find((name) => !all.everUnmanaged.has(name));
  if (orphan === undefined) return undefined;
  const dependent = others.find((_, index) =>
    replayMigrations(others.slice(0, index + 1), dialect).everUnmanaged.has(orphan),
  );
  return dependent && { dependent: dependent.tag, why: `Without it no migration creates the table "${orphan}".` };
}

/** The replay, or why these migrations cannot be replayed. */
function replayed(migrations: readonly Migration[], dialect: string): MigrationReplay | SvcError {
  try {
    return replayMigrations(migrations, dialect);
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
}

function editedFile(row: HistoryRow, defined: readonly DefinedMigration[] = []): DefinedMigration | undefined {
  return defined.find(({ tag, checksum }) => tag === row.tag && checksum !== row.checksum);
}

const NO_JOURNAL = { journal: null, started: false } as const;

function resolvedRow(
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
        // Without a journal it never ran: a null from baseline must stay, because it prevents a rollback.
        duration_ms: row.journal ? (row.duration_ms ?? 0) : row.duration_ms,
        rolled_back_at: null,
        step: row.steps,
        error: null,
        epoch,
        ...NO_JOURNAL,
      };
    case 'rolled-back':
      return { ...row, status: 'rolled_back', rolled_back_at: CLOCK, step: 0, error: null, epoch, ...NO_JOURNAL };
    case 'failed':
      return { ...row, status: 'failed', error: row.error ?? 'Marked as failed by a person.', epoch };
  }
}

export function auditWrite(row: Pick<HistoryRow, 'tag'>, action: string): RecordWrite {
  return recordWrite(auditTable, { id: uuid(), at: CLOCK, tag: row.tag, action, actor: osActor(), before: row });
}
