import type { Adapter } from '../database/adapter.ts';
import type { Origin } from './history.ts';
import { checkOwner, Ledger, type LedgerRow } from './ledger.ts';
import { type Defined, reconcile } from './reconcile.ts';

export type EntryState = 'completed' | 'pending' | 'interrupted' | 'failed' | 'edited' | 'missing';

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
}

export interface StatusReport {
  /** FAILED where anything but pending migrations needs attention. */
  readonly state: 'OK' | 'PENDING' | 'FAILED';
  /** Of what is defined, as `completed` and `pending` are. */
  readonly total: number;
  readonly completed: number;
  readonly pending: number;
  /** The tag applied last, over the whole history. */
  readonly lastApplied?: string;
  /** Applied ones in the order of application, then pending ones in tag order. */
  readonly entries: readonly StatusEntry[];
}

/** Where a database stands against what is defined. Takes no lock and writes nothing, not even on first use. */
export async function status(adapter: Adapter, defined: readonly Defined[]): Promise<StatusReport> {
  await checkOwner(adapter);
  const ledger = await Ledger.read(adapter.connection);
  const standing = reconcile(defined, ledger);
  const edited = new Set(standing.edited.map(({ tag }) => tag));
  const missing = new Set(standing.missing.map(({ row }) => row.tag));
  const files = new Map(defined.flatMap(({ tag, file }) => (file === undefined ? [] : [[tag, file] as const])));
  const recorded: StatusEntry[] = [];
  for (const { row } of ledger.inOrder()) {
    if (row.status === 'rolled_back') continue;
    recorded.push(entryOf(row, stateOf(row, edited, missing), files.get(row.tag)));
  }
  const known = new Set(recorded.map(({ tag }) => tag));
  const pending = standing.pending
    .filter(({ tag }) => !known.has(tag))
    .map(({ tag, file }): StatusEntry => ({ tag, state: 'pending', ...(file !== undefined && { file }) }));
  const completed = defined.length - standing.pending.length;
  const trouble = recorded.some(({ state }) => state !== 'completed');
  const last = ledger.completed().at(-1)?.row.tag;
  return {
    state: trouble ? 'FAILED' : pending.length > 0 ? 'PENDING' : 'OK',
    total: defined.length,
    completed,
    pending: standing.pending.length,
    ...(last !== undefined && { lastApplied: last }),
    entries: [...recorded, ...pending],
  };
}

function stateOf(row: LedgerRow, edited: ReadonlySet<string>, missing: ReadonlySet<string>): EntryState {
  if (row.status === 'applying') return 'interrupted';
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
  };
}
