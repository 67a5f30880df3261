import type { Adapter } from '../database/adapter.ts';
import type { RunOutcome, Statement } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { CLOCK, ELAPSED, type Writable } from '../records.ts';
import { version } from '../version.ts';
import { actor } from './actor.ts';
import type { Change } from './course.ts';
import type { HistoryRow } from './history.ts';
import type { Ledger, LedgerEntry } from './ledger.ts';
import type { PlannedMigration } from './plan.ts';
import { nameOfTag } from './tag.ts';

/** A run under the lock: the history as it stands, and who is told of what. */
export interface Execution {
  readonly adapter: Adapter;
  readonly ledger: Ledger;
  readonly epoch: number;
  readonly signal?: AbortSignal | undefined;
  readonly started?: ((planned: PlannedMigration) => void) | undefined;
  readonly finished?: ((planned: PlannedMigration, entry: LedgerEntry, texts: readonly string[]) => void) | undefined;
  /** What was sent for statements with other words than their texts. */
  readonly sent: Map<Statement, string>;
}

/** What a migration sent to the database, for people. */
export const sentTexts = ({ sent }: Pick<Execution, 'sent'>, { statements }: PlannedMigration): string[] =>
  statements.map((statement) => sent.get(statement) ?? statement.text);

/** Puts what was committed into the ledger and tells who listens when the migration is through. */
export function note(
  run: Execution,
  { planned, change }: { readonly planned?: PlannedMigration; readonly change?: Change },
  engine: Readonly<Record<string, Date | number>>,
): LedgerEntry | undefined {
  if (!change) return undefined;
  const known = run.ledger.entries.get(change.tag as string);
  const { migration = known?.migration, ...changed } = { ...change, ...engine } as Partial<HistoryRow>;
  const row = { ...known?.row, ...changed } as LedgerEntry['row'];
  const entry: LedgerEntry = { row, version: (known?.version ?? 0) + 1, ...(migration && { migration }) };
  run.ledger.set(entry);
  if (planned && row.status !== 'applying') run.finished?.(planned, entry, sentTexts(run, planned));
  return entry;
}

/** What was found on the way up stays for the way back. */
export type RowAfter = Omit<Writable<HistoryRow>, 'found'> & Partial<Pick<HistoryRow, 'found'>>;

/** The row once the migration is through. */
export function rowAfter(planned: PlannedMigration, ledger: Ledger, seq: number, epoch: number): RowAfter {
  const up = planned.direction === 'up';
  const previous = ledger.entries.get(planned.tag)?.row;
  return {
    tag: planned.tag,
    seq: up ? seq : (previous?.seq ?? seq),
    // A migration by hand may leave its name to the tag.
    name: planned.migration.name ?? nameOfTag(planned.tag),
    origin: planned.origin,
    status: up ? 'completed' : 'rolled_back',
    applied_at: up ? CLOCK : (previous?.applied_at ?? null),
    rolled_back_at: up ? null : CLOCK,
    duration_ms: ELAPSED,
    checksum: planned.checksum,
    migration: planned.migration,
    step: up ? planned.statements.length : 0,
    steps: planned.statements.length,
    error: null,
    sdk_version: version,
    applied_by: actor(),
    epoch,
    journal: null,
    started: false,
    ...(up && { found: planned.found ?? null }),
  };
}

/** The state that a failure leaves where the next run takes the rest of the work over. */
export const GOES_ON = 'The journal knows where it stopped; the next run goes on from there.';

export const CHANGE_ROWS = 'Change the rows that stand in the way.';

/** Rows do not fit what was there before: what a file says that is applied is not changed any more for their sake. */
export function isOutgrown({ direction }: PlannedMigration, { code }: SvcError): boolean {
  return direction === 'down' && code === 'data_violates';
}

function wayOut({ tag }: PlannedMigration): readonly string[] {
  return [
    `${CHANGE_ROWS} Then run the command again.`,
    `Or do by hand what it was to do, with values for those rows, then: svc db migrate resolve ${tag} --rolled-back`,
  ];
}

/** What failed, with the engine's words, the statement and the state that was left. */
export function failure(
  planned: PlannedMigration,
  failed: NonNullable<RunOutcome['failure']>,
  state: string,
  offset = 0,
): SvcError {
  const { error, statement } = failed;
  const index = statement === undefined ? undefined : offset + statement;
  const text = index === undefined ? undefined : planned.statements[index]?.text;
  const again = `Correct "${planned.tag}" or what stands in its way, then run the command again.`;
  const facts = {
    state,
    where:
      index === undefined ? planned.tag : `${planned.tag}, step ${index + 1} of ${planned.statements.length}: ${text}`,
    details: {
      tag: planned.tag,
      ...(index !== undefined && { step: index + 1, steps: planned.statements.length, statement: text }),
    },
  };
  if (isSvcError(error)) {
    return error.with({ ...facts, next: error.next.length === 0 ? [again] : remedies(planned, error) });
  }
  return new SvcError('migration_failed', `The migration "${planned.tag}" failed.`, {
    why: error instanceof Error ? error.message : String(error),
    next: [again],
    cause: error,
    ...facts,
  });
}

/** What is said of rows is to be said in the file that met them: a migration behind it comes too late. */
function remedies(planned: PlannedMigration, error: SvcError): readonly string[] {
  if (isOutgrown(planned, error)) return wayOut(planned);
  const { tag, origin, direction } = planned;
  const { code, next } = error;
  if (code !== 'data_violates' || origin !== 'file' || direction === 'down') return next;
  return [
    ...next,
    `Do so in "${tag}" or before it: until it is applied it may be edited, or deleted and generated anew.`,
  ];
}
