import type { Segment } from '../../core/dialect.ts';
import { SvcError } from '../../core/errors.ts';
import { type AnyRecordDefinition, CLOCK, ELAPSED, type RecordColumn, type RecordWrite } from '../../core/records.ts';
import type { RecordGrammar } from './value.ts';

/** Columns that the engine fills in, in the order of the definition. */
export function engineColumns({ record }: RecordWrite): string[] {
  return Object.keys(record).filter((column) => record[column] === CLOCK || record[column] === ELAPSED);
}

/** A migration is through with it: ELAPSED counts anew from the next segment on. */
export function writesElapsed({ writes }: Pick<Segment, 'writes'>): boolean {
  return writes.some(({ record }) => Object.values(record).includes(ELAPSED));
}

/** What the engine filled in, from a row that has it. */
export function writtenValues(
  grammar: RecordGrammar,
  write: RecordWrite,
  row: Readonly<Record<string, unknown>>,
): Record<string, Date | number> {
  return Object.fromEntries(
    engineColumns(write).map((name) => [
      name,
      grammar.read(row[name], columnOf(write.definition, name)) as Date | number,
    ]),
  );
}

export function writeLost(cause: unknown): SvcError {
  return new SvcError('lock_lost', 'The migration lock was lost: another process has moved on.', {
    why: 'The row to write is not the one that was read under the lock.',
    next: ['Run the command again.'],
    cause,
  });
}

export function columnOf(definition: AnyRecordDefinition, name: string): RecordColumn {
  const column = definition.columns[name];
  if (!column) throw new Error(`${definition.collection} has no column ${name}`);
  return column;
}
