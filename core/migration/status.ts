import type { Adapter } from '../database/adapter.ts';
import { isWayBack } from './half-done.ts';
import type { Origin } from './history.ts';
import { checkOwner, Ledger, type LedgerRow } from './ledger.ts';
import { disorderOf } from './order.ts';
import { type Defined, reconcile } from './reconcile.ts';

/** `running`: it is not through, and a process holds the lock; `interrupted`: nobody does. */
export type EntryState = 'completed' | 'pending' | 'running' | 'interrupted' | 'failed' | 'edited' | 'missing';

export interface StatusEntry {
  readonly tag: string;
  readonly state: EntryState;
  readonly origin?: Origin;
  readonly file?: string;
  readonly appliedAt?: Date;
  readonly durationMs?: number;
  readonly step?: number;
  readonly steps?: number;
  readonly error?: string;
  /** Of one that is half-done: it is on its way back. */
  readonly back?: true;
}

export interface StatusReport {
  /** FAILED where anything but migrations that are pending or running needs attention. */
  readonly state: 'OK' | 'PENDING' | 'FAILED';
  /** Of what is defined, as `completed` and `pending` are. */
  readonly total: number;
  readonly completed: number;
  readonly pending: number;
  /** The tag applied last, over the whole history. */
  readonly lastApplied?: string;
  /** In words, what the order of application made otherwise than the order of the tags makes on an empty database. */
  readonly disorder: readonly string[];
  /** Applied ones in the order of application, then pending ones in tag order. */
  readonly entries: readonly StatusEntry[];
}

/** Where a database stands against what is defined. Takes no lock and writes nothing, not even on first use. */
export async function status(adapter: Adapter, defined: readonly Defined[]): Promise<StatusReport> {
  await checkOwner(adapter);
  const { ledger, busy } = await current(adapter);
  const standing = reconcile(defined, ledger);
  const edited = new Set(standing.edited.map(({ tag }) => tag));
  const missing = new Set(standing.missing.map(({ row }) => row.tag));
  const files = new Map(defined.flatMap(({ tag, file }) => (file === undefined ? [] : [[tag, file] as const])));
  const recorded: StatusEntry[] = [];
  for (const { row } of ledger.inOrder()) {
    if (row.status === 'rolled_back') continue;
    recorded.push(entryOf(row, stateOf(row, busy, edited, missing), files.get(row.tag)));
  }
  const known = new Set(recorded.map(({ tag }) => tag));
  const pending = standing.pending
    .filter(({ tag }) => !known.has(tag))
    .map(({ tag, file }): StatusEntry => ({ tag, state: 'pending', ...(file !== undefined && { file }) }));
  const completed = defined.length - standing.pending.length;
  const running = recorded.some(({ state }) => state === 'running');
  const disorder = await disorderOf(adapter, ledger);
  const trouble = disorder.length > 0 || recorded.some(({ state }) => state !== 'completed' && state !== 'running');
  const last = ledger.completed().at(-1)?.row.tag;
  return {
    state: trouble ? 'FAILED' : pending.length > 0 || running ? 'PENDING' : 'OK',
    total: defined.length,
    completed,
    pending: standing.pending.length,
    ...(last !== undefined && { lastApplied: last }),
    disorder,
    entries: [...recorded, ...pending],
  };
}

/** The history, and whether a process is at what it says is not through. */
async function current({ connection }: Adapter): Promise<{ readonly ledger: Ledger; readonly busy: boolean }> {
  const ledger = await Ledger.read(connection);
  if (reconcile([], ledger).interrupted.length === 0) return { ledger, busy: false };
  // One that has let go in between has come to an end, which is written down by now.
  return (await connection.isLocked())
    ? { ledger, busy: true }
    : { ledger: await Ledger.read(connection), busy: false };
}

function stateOf(row: LedgerRow, busy: boolean, edited: ReadonlySet<string>, missing: ReadonlySet<string>): EntryState {
  if (row.status === 'applying') return busy ? 'running' : 'interrupted';
  if (row.status === 'failed') return 'failed';
  if (edited.has(row.tag)) return 'edited';
  return missing.has(row.tag) ? 'missing' : 'completed';
}

function entryOf(row: LedgerRow, state: EntryState, file: string | undefined): StatusEntry {
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
    ...((state === 'running' || state === 'interrupted' || state === 'failed') && isWayBack(row) && { back: true }),
  };
}
