import { assertDatabaseOwner, History, type HistorySummary, isRollback } from './history.ts';
import type { HistoryOrigin } from './history-table.ts';
import { historyOrderDifferences } from './order.ts';
import { type KeptEntry, listKept } from './purge.ts';
import { assertRowsUnchanged, type DefinedMigration, reconcile } from './reconcile.ts';
import type { Target } from './target.ts';

/**
 * An unfinished migration is `running` while a process holds the lock, and otherwise `interrupted`. One that is `contract`
 * waits for `svc db migrate contract`.
 */
type EntryState = 'completed' | 'pending' | 'contract' | 'running' | 'interrupted' | 'failed' | 'edited' | 'missing';

export interface StatusEntry {
  readonly tag: string;
  readonly state: EntryState;
  readonly origin?: HistoryOrigin;
  readonly file?: string;
  readonly appliedAt?: Date;
  readonly durationMs?: number;
  readonly step?: number;
  readonly steps?: number;
  readonly error?: string;
  /** The unfinished migration is being rolled back. */
  readonly rollingBack?: true;
}

export interface StatusReport {
  /** FAILED if any entry is interrupted, failed, edited or missing, or if `outOfOrder` is not empty. */
  readonly state: 'OK' | 'PENDING' | 'FAILED';
  /** How many migrations are defined; `completed`, `pending` and `contracts` count these too. */
  readonly total: number;
  readonly completed: number;
  readonly pending: number;
  /** How many wait for `svc db migrate contract`. */
  readonly contracts: number;
  /** The tag applied last, over the whole history. */
  readonly lastApplied?: string;
  /** Describes how the schema differs from the one that the same files produce in tag order. */
  readonly outOfOrder: readonly string[];
  /** What `--keep` keeps, the earliest first. */
  readonly kept: readonly KeptEntry[];
  /** Recorded migrations in the order of application, then pending ones in tag order. */
  readonly entries: readonly StatusEntry[];
}

/** Compares the database with the defined migrations. Takes no lock and writes nothing, not even on first use. */
export async function status(target: Target, defined: readonly DefinedMigration[]): Promise<StatusReport> {
  await assertDatabaseOwner(target);
  const { history, isLocked } = await readWithLockState(target.connection);
  const reconciled = reconcile(defined, history);
  await assertRowsUnchanged(target.connection, history, reconciled.edited);
  const edited = new Set(reconciled.edited.map(({ tag }) => tag));
  const missing = new Set(reconciled.missing.map(({ row }) => row.tag));
  const files = new Map(defined.flatMap(({ tag, file }) => (file === undefined ? [] : [[tag, file] as const])));
  const recorded: StatusEntry[] = [];
  for (const { row } of history.inOrder()) {
    if (row.status === 'rolled_back') continue;
    recorded.push(entryOf(row, stateOf(row, isLocked, edited, missing), files.get(row.tag)));
  }
  const recordedTags = new Set(recorded.map(({ tag }) => tag));
  const pending = reconciled.pending
    .filter(({ tag }) => !recordedTags.has(tag))
    .map(({ tag, file, migration }): StatusEntry => {
      const state = migration.contracts === undefined ? 'pending' : 'contract';
      return { tag, state, ...(file !== undefined && { file }) };
    });
  const contracts = pending.filter(({ state }) => state === 'contract').length;
  const isRunning = recorded.some(({ state }) => state === 'running');
  const outOfOrder = await historyOrderDifferences(target, history);
  const isFailed = outOfOrder.length > 0 || recorded.some(({ state }) => state !== 'completed' && state !== 'running');
  const last = history.completed().at(-1)?.row.tag;
  return {
    state: isFailed ? 'FAILED' : pending.length > contracts || isRunning ? 'PENDING' : 'OK',
    total: defined.length,
    completed: defined.length - reconciled.pending.length,
    pending: reconciled.pending.length - contracts,
    contracts,
    ...(last !== undefined && { lastApplied: last }),
    outOfOrder,
    kept: await listKept(target),
    entries: [...recorded, ...pending],
  };
}

interface HistoryState {
  readonly history: History;
  /** Migrations that are running, or that were interrupted or failed, in the order of application. */
  readonly unfinished: readonly StatusEntry[];
}

/** Reads the history. Takes no lock and writes nothing. */
export async function readHistoryState(target: Target): Promise<HistoryState> {
  await assertDatabaseOwner(target);
  const { history, isLocked } = await readWithLockState(target.connection);
  const none: ReadonlySet<string> = new Set();
  const rows = history.inOrder().filter(({ row }) => row.status === 'applying' || row.status === 'failed');
  return { history, unfinished: rows.map(({ row }) => entryOf(row, stateOf(row, isLocked, none, none), undefined)) };
}

async function readWithLockState(
  connection: Target['connection'],
): Promise<{ readonly history: History; readonly isLocked: boolean }> {
  const history = await History.read(connection);
  if (reconcile([], history).interrupted.length === 0) return { history, isLocked: false };
  if (await connection.isLocked()) return { history, isLocked: true };
  // The run may have finished after the first read.
  return { history: await History.read(connection), isLocked: false };
}

function stateOf(
  row: HistorySummary,
  isLocked: boolean,
  edited: ReadonlySet<string>,
  missing: ReadonlySet<string>,
): EntryState {
  if (row.status === 'applying') return isLocked ? 'running' : 'interrupted';
  if (row.status === 'failed') return 'failed';
  if (edited.has(row.tag)) return 'edited';
  return missing.has(row.tag) ? 'missing' : 'completed';
}

function entryOf(row: HistorySummary, state: EntryState, file: string | undefined): StatusEntry {
  const isUnfinished = state === 'running' || state === 'interrupted' || state === 'failed';
  return {
    tag: row.tag,
    state,
    origin: row.origin,
    step: row.step,
    steps: row.steps,
    ...(file !== undefined && { file }),
    ...(row.applied_at && { appliedAt: row.applied_at }),
    ...(row.duration_ms !== null && { durationMs: row.duration_ms }),
    ...(row.error !== null && { error: row.error }),
    ...(isUnfinished && isRollback(row) && { rollingBack: true }),
  };
}
