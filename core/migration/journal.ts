import type { RunOutcome, Segment, Statement } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { type RecordWrite, recordWrite, type Writable } from '../records.ts';
import { type Execution, failure, historyWrite, noteWritten, rowAfter } from './execution.ts';
import { type HistoryRow, history, type JournalRow, journal } from './history.ts';
import type { LedgerEntry } from './ledger.ts';
import { outcomeOf } from './outcome.ts';
import type { PlannedMigration } from './plan.ts';

/** A migration that cannot commit as one: every step is journaled before and after, so that the next run can go on. */
export async function runJournaled(run: Execution, planned: PlannedMigration): Promise<void> {
  const { connection } = run.adapter;
  const known = run.ledger.entries.get(planned.tag);
  const previous = known && (await connection.records(history).get(planned.tag));
  const leftover = await connection.records(journal).get(planned.tag);
  const row: JournalRow = {
    tag: planned.tag,
    direction: planned.direction,
    steps: planned.steps,
    done: 0,
    started: false,
  };
  const seq = planned.direction === 'up' ? run.ledger.lastSeq + 1 : 0;
  const progress = new Progress(run, planned, row, leftover?.version ?? 0);
  await progress.begin(rowAfter(planned, run.ledger, seq, run.epoch), previous?.record);
  await progress.forward();
}

/**
 * Goes on with a migration whose process died: the compiled steps of the journal, from the one of which nobody
 * knows whether it took effect. The catalog decides that; where it cannot, a person does.
 */
export async function resume(run: Execution, entry: LedgerEntry, retry = false): Promise<void> {
  const { connection } = run.adapter;
  const tag = entry.row.tag;
  const [stored, record] = await Promise.all([
    connection.records(journal).get(tag),
    connection.records(history).get(tag),
  ]);
  if (!stored || !record) throw halfDone(entry);
  const { migration, origin, checksum } = record.record;
  const { direction, steps } = stored.record;
  const planned: PlannedMigration = {
    tag,
    origin,
    direction,
    migration,
    checksum,
    steps,
    statements: steps.flatMap((step) => step.statements),
  };
  const progress = new Progress(run, planned, stored.record, stored.version);
  progress.take(rowAfter(planned, run.ledger, entry.row.seq, run.epoch));
  const step = steps[stored.record.done];
  if (step && stored.record.started) {
    const outcome = await outcomeOf(run, planned, step);
    if (outcome === 'done') await progress.skip();
    else if (outcome === 'unknown' && !retry)
      throw await progress.fail('It is not known whether the step took effect.');
    else for (const statement of step.statements) await repair(run, statement);
  }
  await progress.forward();
}

async function repair({ adapter, epoch }: Execution, statement: Statement): Promise<void> {
  if (statement.repair === undefined) return;
  const mended: Statement = { ...statement, text: `repair of ${statement.text}`, run: statement.repair };
  const { failure: failed } = await adapter.connection.run(
    [{ transactional: false, statements: [mended], writes: [] }],
    epoch,
  );
  if (failed) throw failed.error;
}

/** A migration that stopped half-way and is not to be touched before a person has looked. */
export function halfDone({ row }: LedgerEntry): SvcError {
  return new SvcError('migration_half_done', `The migration "${row.tag}" stopped half-way.`, {
    ...(row.error !== null && { why: row.error }),
    state: `${row.step} of ${row.steps} steps are committed.`,
    next: [
      `svc db migrate resolve ${row.tag} --retry        run the rest`,
      `svc db migrate resolve ${row.tag} --applied      the rest was done by hand`,
      `svc db migrate resolve ${row.tag} --rolled-back  the steps were undone by hand`,
    ],
    details: { tag: row.tag, step: row.step, steps: row.steps },
  });
}

/** Where a journaled migration stands: the journal's row, the history's row, and the versions of both. */
class Progress {
  readonly #run: Execution;
  readonly #planned: PlannedMigration;
  readonly #clock = performance.now();
  #journal: JournalRow;
  #journalVersion: number;
  #row: Writable<HistoryRow> | undefined;
  #previous: HistoryRow | undefined;

  constructor(run: Execution, planned: PlannedMigration, row: JournalRow, version: number) {
    this.#run = run;
    this.#planned = planned;
    this.#journal = row;
    this.#journalVersion = version;
  }

  /** Both rows before the first statement: from here on a crash is resumed. */
  async begin(row: Writable<HistoryRow>, previous: HistoryRow | undefined): Promise<void> {
    this.#row = row;
    this.#previous = previous;
    const applying = this.#unfinished('applying', null);
    const outcome = await this.#send([
      {
        transactional: true,
        statements: [],
        writes: [this.#journalWrite(this.#journal), this.#historyWrite(applying)],
      },
    ]);
    if (outcome.failure) throw failure(this.#planned, outcome.failure, 'Nothing of it was run.');
    this.#journalVersion += 1;
    this.#noteRow(applying);
  }

  /** The rows are there already. */
  take(row: Writable<HistoryRow>): void {
    this.#row = row;
  }

  async forward(): Promise<void> {
    const { steps } = this.#planned;
    while (this.#journal.done < steps.length) {
      if (this.#run.signal?.aborted) {
        const { tag } = this.#planned;
        throw new SvcError('interrupted', 'The run was interrupted.', {
          state: `${this.#statementsDone()} of ${this.#planned.statements.length} steps of "${tag}" are committed and journaled; the lock is released.`,
          next: ['svc db migrate    goes on with the next step'],
        });
      }
      await this.#step();
    }
    await this.#finish();
  }

  /** The step that was started turned out to be done. */
  async skip(): Promise<void> {
    const next = { ...this.#journal, done: this.#journal.done + 1, started: false };
    const outcome = await this.#send([{ transactional: true, statements: [], writes: [this.#journalWrite(next)] }]);
    if (outcome.failure) throw failure(this.#planned, outcome.failure, 'The journal could not be written.');
    this.#advance(next);
  }

  /** Marks the migration failed and gives the refusal that says so. */
  async fail(why: string): Promise<SvcError> {
    const index = this.#statementsDone();
    const text = this.#planned.statements[index]?.text ?? '';
    const failed = this.#unfinished(
      'failed',
      `step ${index + 1} of ${this.#planned.statements.length}: ${text}: ${why}`,
    );
    const outcome = await this.#send([{ transactional: true, statements: [], writes: [this.#historyWrite(failed)] }]);
    if (outcome.failure)
      throw failure(
        this.#planned,
        outcome.failure,
        'The failure could not be recorded; the next run goes on from the journal.',
      );
    this.#noteRow(failed);
    const entry = this.#run.ledger.entries.get(this.#planned.tag);
    return halfDone(entry as LedgerEntry);
  }

  async #step(): Promise<void> {
    const step = this.#planned.steps[this.#journal.done];
    if (!step) return;
    const started = { ...this.#journal, started: true };
    const next = { ...this.#journal, done: this.#journal.done + 1, started: false };
    const segments: Segment[] = step.transactional
      ? [{ transactional: true, statements: step.statements, writes: [this.#journalWrite(next)] }]
      : [
          { transactional: true, statements: [], writes: [this.#journalWrite(started)] },
          { transactional: false, statements: step.statements, writes: [] },
          { transactional: true, statements: [], writes: [this.#journalWrite(next, 1)] },
        ];
    const outcome = await this.#send(segments);
    if (!outcome.failure) return this.#advance(next, step.transactional ? 1 : 2);
    if (!step.transactional && outcome.committed > 0) this.#advance(started);
    throw await this.#failed(outcome.failure, outcome.committed);
  }

  /** A lost session says nothing of the step: the next run finds out. Everything else is recorded. */
  async #failed(failed: NonNullable<RunOutcome['failure']>, committed: number): Promise<SvcError> {
    const offset = this.#statementsDone();
    const lost =
      isSvcError(failed.error) && (failed.error.code === 'connection_lost' || failed.error.code === 'lock_lost');
    if (lost || (!this.#planned.steps[this.#journal.done]?.transactional && committed !== 1)) {
      return failure(
        this.#planned,
        failed,
        'The journal knows where it stopped; the next run goes on from there.',
        offset,
      );
    }
    if (await this.#isUntouched()) {
      await this.#forget();
      return failure(this.#planned, failed, 'Nothing of it stays.', offset);
    }
    const why = failed.error instanceof Error ? failed.error.message : String(failed.error);
    const refusal = await this.fail(isSvcError(failed.error) ? (failed.error.why ?? why) : why);
    return failure(this.#planned, { error: refusal, statement: failed.statement }, refusal.state ?? '', offset);
  }

  /** Nothing is committed, and the catalog shows nothing of the step that failed. */
  async #isUntouched(): Promise<boolean> {
    const { done, started, steps } = this.#journal;
    const [first] = steps;
    if (done > 0 || !first) return false;
    return !started || (await outcomeOf(this.#run, this.#planned, first)) === 'not done';
  }

  async #finish(): Promise<void> {
    const row = this.#completed();
    const outcome = await this.#send([{ transactional: true, statements: [], writes: [this.#historyWrite(row)] }]);
    if (outcome.failure)
      throw failure(this.#planned, outcome.failure, 'All steps are committed; the next run records it.');
    noteWritten(this.#run, this.#planned, row, outcome.written[0]?.[0] ?? {});
    await this.#run.adapter.connection.records(journal).remove(this.#planned.tag, this.#journalVersion);
  }

  /** Takes the rows away, as if the migration had not begun. */
  async #forget(): Promise<void> {
    const { connection } = this.#run.adapter;
    const { tag } = this.#planned;
    const version = this.#run.ledger.entries.get(tag)?.version ?? 0;
    if (this.#previous) {
      await connection.records(history).replace(tag, version, this.#previous, { epoch: this.#run.epoch });
      this.#noteRow(this.#previous);
    } else {
      await connection.records(history).remove(tag, version);
      this.#run.ledger.entries.delete(tag);
    }
    await connection.records(journal).remove(tag, this.#journalVersion);
  }

  #completed(): Writable<HistoryRow> {
    return { ...this.#need(), duration_ms: Math.round(performance.now() - this.#clock) };
  }

  #unfinished(status: 'applying' | 'failed', error: string | null): Writable<HistoryRow> {
    const known = this.#run.ledger.entries.get(this.#planned.tag)?.row;
    return {
      ...this.#need(),
      status,
      step: this.#statementsDone(),
      error,
      applied_at: known?.applied_at ?? null,
      rolled_back_at: known?.rolled_back_at ?? null,
      duration_ms: known?.duration_ms ?? null,
    };
  }

  #need(): Writable<HistoryRow> {
    if (!this.#row) throw new Error('progress was neither begun nor taken');
    return this.#row;
  }

  #statementsDone(): number {
    return this.#planned.steps.slice(0, this.#journal.done).reduce((sum, step) => sum + step.statements.length, 0);
  }

  #advance(row: JournalRow, versions = 1): void {
    this.#journal = row;
    this.#journalVersion += versions;
  }

  #noteRow(row: Writable<HistoryRow>): void {
    const { migration, ...light } = row as HistoryRow;
    const version = (this.#run.ledger.entries.get(light.tag)?.version ?? 0) + 1;
    this.#run.ledger.set({ row: light as LedgerEntry['row'], version, migration });
  }

  #journalWrite(record: JournalRow, ahead = 0): RecordWrite {
    const version = this.#journalVersion + ahead;
    return recordWrite(journal, record, version > 0 ? version : undefined);
  }

  #historyWrite(record: Writable<HistoryRow>): RecordWrite {
    return historyWrite(this.#run.ledger, record);
  }

  #send(segments: readonly Segment[]): Promise<RunOutcome> {
    return this.#run.adapter.connection.run(segments, this.#run.epoch);
  }
}
