import type { Segment, Statement } from '../../../core/dialect.ts';
import { isUsers } from '../../sql/text.ts';

/**
 * The end of a table's definition with which it can hold every text: one of a database in utf8mb4 has its collation,
 * one of another says it.
 */
export function everyText(charset: string, collation: string): string {
  return charset === 'utf8mb4' ? '' : ` DEFAULT CHARACTER SET utf8mb4 COLLATE ${collation}`;
}

/** Segments whose tables have that end. Compiling does not know the database. */
export function holdingEveryText(tail: string): (segments: readonly Segment[]) => readonly Segment[] {
  if (tail === '') return (segments) => segments;
  const told = (statement: Statement): Statement =>
    isCreated(statement) ? { ...statement, run: [...(statement.run as string[]), tail] } : statement;
  return (segments) => segments.map((segment) => ({ ...segment, statements: segment.statements.map(told) }));
}

const isCreated = ({ run, text }: Statement): boolean =>
  Array.isArray(run) && !isUsers(run) && /^CREATE (TEMPORARY )?TABLE /.test(text);
