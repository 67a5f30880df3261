import type { Segment } from '../dialect.ts';
import { recordChange, recordWrite, type Writable } from '../records.ts';
import { plainModel } from '../schema/plain.ts';
import { type Execution, type RowAfter, rowAfter } from './execution.ts';
import { type HistoryRow, history } from './history.ts';
import type { PlannedMigration } from './plan.ts';

/** What a write makes of a row: columns that it leaves out stay as they are. */
export type Change = Pick<Writable<HistoryRow>, 'tag' | 'status'> & Partial<Writable<HistoryRow>>;

/** A segment, and what the history says once it is committed. */
export interface Stage {
  readonly planned: PlannedMigration;
  readonly segment: Segment;
  /** Absent for a statement outside a transaction: the stages before and behind it journal it. */
  readonly change?: Change;
  /** Index of the segment's first statement in the migration. */
  readonly offset: number;
  /** The step that begins with it: a run can end before. */
  readonly begins?: Position;
}

/** Up to where planned migrations are through: the migration at that index, and its step. */
export interface Position {
  readonly migration: number;
  readonly step: number;
}

/**
 * The next stages, `most` steps of them. A step that can be in a transaction commits together with what the history
 * says behind it; one that cannot stands between "it starts" and "it is done", and where another follows, the two
 * writes are one. So a migration that is one transaction takes a single stage, and a single statement outside of one
 * takes three.
 */
export function nextStages(
  run: Execution,
  planned: readonly PlannedMigration[],
  from: Position,
  most: number,
): { readonly stages: readonly Stage[]; readonly end: Position } {
  const stages: Stage[] = [];
  let { migration, step } = from;
  let seq = run.ledger.lastSeq;
  let left = most;
  for (let one = planned[migration]; one && left > 0; one = planned[migration]) {
    const { steps } = one;
    const writing = new Writing(run, one, step, () => ++seq);
    do {
      const current = steps[step];
      const offset = statementsBefore(one, step);
      let begins: Position | undefined = { migration, step };
      const stage = (segment: Segment, change?: Change): void => {
        stages.push({ planned: one, segment, offset, ...(change && { change }), ...(begins && { begins }) });
        begins = undefined;
      };
      const write = (change: Change, statements: Segment['statements'] = []): void =>
        stage({ transactional: true, statements, writes: [writing.write(change)] }, change);
      step += 1;
      left -= 1;
      const through = step >= steps.length;
      if (current?.transactional === false) {
        write(writing.underway(step - 1, true));
        stage({ transactional: false, statements: current.statements, writes: [] });
        // Where that is the exception it takes its time, and an interruption is to be heard behind it.
        if (run.adapter.dialect.capabilities.transactionalDdl) left = 0;
        if (through) write(writing.through());
        else if (left === 0 || steps[step]?.transactional) write(writing.underway(step, false));
      } else {
        write(through ? writing.through() : writing.underway(step, false), current?.statements);
      }
    } while (step < steps.length && left > 0);
    if (step < steps.length) break;
    migration += 1;
    step = 0;
  }
  return { stages, end: { migration, step } };
}

/** Writes down that a migration has come to this step, where a run ended before it. */
export function pauseAt(run: Execution, planned: PlannedMigration, step: number): Stage {
  const writing = new Writing(run, planned, step, () => run.ledger.lastSeq + 1);
  const change = writing.underway(step, false);
  const segment = { transactional: true, statements: [], writes: [writing.write(change)] };
  return { planned, segment, change, offset: statementsBefore(planned, step) };
}

/** The writes of one migration: the first makes the row whole, those behind it change it. */
class Writing {
  readonly #run: Execution;
  readonly #planned: PlannedMigration;
  readonly #after: RowAfter;
  #version: number;
  /** The next write makes the row whole. */
  #whole: boolean;
  /** This run made it whole. */
  #own = false;

  constructor(run: Execution, planned: PlannedMigration, step: number, nextSeq: () => number) {
    const known = run.ledger.entries.get(planned.tag);
    const resumed = known?.row.status === 'applying' || known?.row.status === 'failed';
    const seq = resumed || (known && planned.direction === 'down') ? known.row.seq : nextSeq();
    this.#run = run;
    this.#planned = planned;
    this.#after = rowAfter(planned, run.ledger, seq, run.epoch);
    this.#version = known?.version ?? 0;
    this.#whole = step === 0;
  }

  /** So many steps are done, and the next is `started` or not. */
  underway(done: number, started: boolean): Change {
    const step = statementsBefore(this.#planned, done);
    const { tag, direction, steps, before } = this.#planned;
    if (!this.#whole) return { tag, status: 'applying', step, started, error: null, epoch: this.#run.epoch };
    const known = this.#run.ledger.entries.get(tag)?.row;
    return {
      ...this.#after,
      status: 'applying',
      step,
      started,
      journal: { direction, steps, ...(before && { before: plainModel(before) }) },
      applied_at: known?.applied_at ?? null,
      rolled_back_at: known?.rolled_back_at ?? null,
      duration_ms: known?.duration_ms ?? null,
    };
  }

  through(): Change {
    if (this.#whole) return this.#after;
    const { migration: _migration, found: _found, ...rest } = this.#after;
    if (!this.#own) return rest;
    const { tag, status, applied_at, rolled_back_at, duration_ms, step, error, epoch, journal, started } = rest;
    return { tag, status, applied_at, rolled_back_at, duration_ms, step, error, epoch, journal, started };
  }

  write(change: Change): Segment['writes'][number] {
    const version = this.#version;
    this.#version += 1;
    this.#own ||= this.#whole;
    this.#whole = false;
    if (version > 0) return recordChange(history, change, version);
    return recordWrite(history, change as Writable<HistoryRow>);
  }
}

export function statementsBefore({ steps }: Pick<PlannedMigration, 'steps'>, step: number): number {
  return steps.slice(0, step).reduce((sum, { statements }) => sum + statements.length, 0);
}
