import type { BlockingSession, Segment, Statement } from '../dialect.ts';
import type { SvcError } from '../errors.ts';
import { CLOCK, ELAPSED, recordUpdate, recordWrite, type Writable } from '../records.ts';
import { serializeModel } from '../schema/model.ts';
import { version } from '../version.ts';
import type { History, HistoryRecord } from './history.ts';
import { type HistoryRow, historyTable, type Journal, osActor } from './history-table.ts';
import type { ReviewedPlan } from './plan-approver.ts';
import { type PlannedMigration, verifiableCollections } from './planned-migration.ts';
import { nameOfTag } from './tag.ts';
import type { Target } from './target.ts';

/** A locked database, its history, and the callbacks of the caller. */
export interface MigrationRun {
  readonly target: Target;
  readonly history: History;
  readonly epoch: number;
  readonly signal?: AbortSignal | undefined;
  readonly plan?: ReviewedPlan | undefined;
  /** A migration that was interrupted after so many statements is finished. */
  readonly onResumed?: ((planned: PlannedMigration, done: number) => void) | undefined;
  readonly onStarted?: ((planned: PlannedMigration) => void) | undefined;
  readonly onFinished?:
    | ((planned: PlannedMigration, record: HistoryRecord, statements: readonly string[]) => void)
    | undefined;
  /** Called before a plan is refused that is not the one that was approved. Runs after the lock, and returns the error. */
  readonly onStale?: ((askAgain: () => Promise<SvcError>) => void) | undefined;
  readonly onBlocked?: ((sessions: readonly BlockingSession[]) => void) | undefined;
  /** The text sent for a statement, if it differs from the planned text. */
  readonly sentText: Map<Statement, string>;
}

/** The texts that a migration sent to the database. */
export const sentStatements = (
  { sentText }: Pick<MigrationRun, 'sentText'>,
  { statements }: PlannedMigration,
): string[] => statements.map((statement) => sentText.get(statement) ?? statement.text);

/** Columns to write; the others keep their values. */
export type HistoryUpdate = Pick<Writable<HistoryRow>, 'tag' | 'status'> & Partial<Writable<HistoryRow>>;

/** A segment, and the history update that commits with it. */
export interface JournaledSegment {
  readonly planned: PlannedMigration;
  readonly segment: Segment;
  /** Absent for a statement outside a transaction: the segments before and after it update the history. */
  readonly update?: HistoryUpdate;
  /** Index of the segment's first statement in the migration. */
  readonly firstStatement: number;
  /** Set on the first segment of each step: a run can stop before it. */
  readonly startsAt?: RunPosition;
}

/** Where a run continues: the index of the migration in the plan, and the index of its next step. */
export interface RunPosition {
  readonly migration: number;
  readonly step: number;
}

export interface Batch {
  readonly segments: readonly JournaledSegment[];
  /** Where the run continues after the batch. */
  readonly end: RunPosition;
}

/**
 * The next segments of a run, at most `maxSteps` steps. A transactional step commits together with its history update.
 * Any other statement goes between two updates, "started" and "done"; the "done" of one is the "started" of the next. So
 * an atomic migration is one segment, and a single statement outside a transaction is three.
 */
export function nextBatch(
  run: MigrationRun,
  planned: readonly PlannedMigration[],
  from: RunPosition,
  maxSteps: number,
): Batch {
  const segments: JournaledSegment[] = [];
  let { migration, step } = from;
  let seq = run.history.lastSeq;
  let stepsLeft = maxSteps;
  for (let current = planned[migration]; current && stepsLeft > 0; current = planned[migration]) {
    const { steps } = current;
    const writer = new JournalWriter(run, current, step, () => ++seq);
    do {
      const currentStep = steps[step];
      const firstStatement = statementsBeforeStep(current, step);
      let startsAt: RunPosition | undefined = { migration, step };
      const add = (segment: Segment, update?: HistoryUpdate): void => {
        segments.push({
          planned: current,
          segment,
          firstStatement,
          ...(update && { update }),
          ...(startsAt && { startsAt }),
        });
        startsAt = undefined;
      };
      const addUpdate = (update: HistoryUpdate, statements: Segment['statements'] = []): void =>
        add({ transactional: true, statements, writes: [writer.write(update)] }, update);
      step += 1;
      stepsLeft -= 1;
      const isLast = step >= steps.length;
      if (currentStep?.transactional === false) {
        addUpdate(writer.progress(step - 1, true));
        add({ transactional: false, statements: currentStep.statements, writes: [] });
        // It is verified before the next batch records it as done.
        if (verifiableCollections(current, step - 1, run.target.dialect.name).length > 0)
          return { segments, end: { migration, step } };
        // With transactional DDL such a statement is rare and slow, so the run checks for an interruption after it.
        if (run.target.dialect.capabilities.transactionalDdl) stepsLeft = 0;
        if (isLast) addUpdate(writer.completion());
        else if (stepsLeft === 0 || steps[step]?.transactional) addUpdate(writer.progress(step, false));
      } else {
        addUpdate(isLast ? writer.completion() : writer.progress(step, false), currentStep?.statements);
      }
    } while (step < steps.length && stepsLeft > 0);
    if (step < steps.length) break;
    migration += 1;
    step = 0;
  }
  return { segments, end: { migration, step } };
}

/** What a journal says of the approval under which a migration runs. */
export const approvalOf = ({ plan }: Pick<MigrationRun, 'plan'>): Pick<Journal, 'approval'> =>
  plan?.approval ? { approval: plan.approval.requestId } : {};

/** A segment that only records which step comes next, for a run that stops before it. */
export function checkpoint(run: MigrationRun, planned: PlannedMigration, step: number): JournaledSegment {
  const writer = new JournalWriter(run, planned, step, () => run.history.lastSeq + 1);
  const update = writer.progress(step, false);
  const segment = { transactional: true, statements: [], writes: [writer.write(update)] };
  return { planned, segment, update, firstStatement: statementsBeforeStep(planned, step) };
}

/** Builds the history updates of one migration: the first writes the whole row, the others only the changes. */
class JournalWriter {
  readonly #run: MigrationRun;
  readonly #planned: PlannedMigration;
  readonly #finalRow: FinalRow;
  #version: number;
  #isWholeRowNext: boolean;
  /** This run, and not an earlier one, wrote the whole row. */
  #hasWrittenWholeRow = false;

  constructor(run: MigrationRun, planned: PlannedMigration, step: number, nextSeq: () => number) {
    const known = run.history.records.get(planned.tag);
    const isResumed = known?.row.status === 'applying' || known?.row.status === 'failed';
    const seq = isResumed || (known && planned.direction === 'down') ? known.row.seq : nextSeq();
    this.#run = run;
    this.#planned = planned;
    this.#finalRow = finalRow(planned, run.history, seq, run.epoch);
    this.#version = known?.version ?? 0;
    this.#isWholeRowNext = step === 0;
  }

  /** This many steps are done; the next one is `started` or not. */
  progress(stepsDone: number, started: boolean): HistoryUpdate {
    const step = statementsBeforeStep(this.#planned, stepsDone);
    const { tag, direction, steps, ran, order, before } = this.#planned;
    if (!this.#isWholeRowNext) return { tag, status: 'applying', step, started, error: null, epoch: this.#run.epoch };
    const known = this.#run.history.records.get(tag)?.row;
    return {
      ...this.#finalRow,
      status: 'applying',
      step,
      started,
      journal: {
        ...{ direction, steps },
        ...(ran && { ran }),
        ...(order && { order }),
        ...approvalOf(this.#run),
        ...(before && { before: serializeModel(before) }),
      },
      applied_at: known?.applied_at ?? null,
      rolled_back_at: known?.rolled_back_at ?? null,
      duration_ms: known?.duration_ms ?? null,
    };
  }

  /** The migration is finished. */
  completion(): HistoryUpdate {
    if (this.#isWholeRowNext) return this.#finalRow;
    const { migration: _migration, found: _found, ...rest } = this.#finalRow;
    if (!this.#hasWrittenWholeRow) return rest;
    const { tag, status, applied_at, rolled_back_at, duration_ms, step, error, epoch, journal, started } = rest;
    return { tag, status, applied_at, rolled_back_at, duration_ms, step, error, epoch, journal, started };
  }

  write(update: HistoryUpdate): Segment['writes'][number] {
    const version = this.#version;
    this.#version += 1;
    this.#hasWrittenWholeRow ||= this.#isWholeRowNext;
    this.#isWholeRowNext = false;
    if (version > 0) return recordUpdate(historyTable, update, version);
    return recordWrite(historyTable, update as Writable<HistoryRow>);
  }
}

/** A rollback does not change `found`. */
type FinalRow = Omit<Writable<HistoryRow>, 'found'> & Partial<Pick<HistoryRow, 'found'>>;

/** The history row of a finished migration. */
function finalRow(planned: PlannedMigration, history: History, seq: number, epoch: number): FinalRow {
  const isUp = planned.direction === 'up';
  const previous = history.records.get(planned.tag)?.row;
  return {
    tag: planned.tag,
    seq: isUp ? seq : (previous?.seq ?? seq),
    // A migration written by hand may lack a name.
    name: planned.migration.name ?? nameOfTag(planned.tag),
    origin: planned.origin,
    status: isUp ? 'completed' : 'rolled_back',
    applied_at: isUp ? CLOCK : (previous?.applied_at ?? null),
    rolled_back_at: isUp ? null : CLOCK,
    duration_ms: ELAPSED,
    checksum: planned.checksum,
    migration: planned.migration,
    step: isUp ? planned.statements.length : 0,
    steps: planned.statements.length,
    error: null,
    sdk_version: version,
    applied_by: osActor(),
    epoch,
    journal: null,
    started: false,
    ...(isUp && { found: planned.preexisting ?? null }),
  };
}

/** How many statements come before this step. */
export function statementsBeforeStep({ steps }: Pick<PlannedMigration, 'steps'>, step: number): number {
  return steps.slice(0, step).reduce((sum, { statements }) => sum + statements.length, 0);
}

/** Applies a committed update to the history in memory, and reports the migration if it is finished. */
export function recordCommitted(
  run: MigrationRun,
  { planned, update }: { readonly planned?: PlannedMigration; readonly update?: HistoryUpdate },
  engineValues: Readonly<Record<string, Date | number>>,
): HistoryRecord | undefined {
  if (!update) return undefined;
  const known = run.history.records.get(update.tag as string);
  const { migration = known?.migration, ...columns } = { ...update, ...engineValues } as Partial<HistoryRow>;
  const row = { ...known?.row, ...columns } as HistoryRecord['row'];
  const record: HistoryRecord = { row, version: (known?.version ?? 0) + 1, ...(migration && { migration }) };
  run.history.set(record);
  if (planned && row.status !== 'applying') run.onFinished?.(planned, record, sentStatements(run, planned));
  return record;
}
