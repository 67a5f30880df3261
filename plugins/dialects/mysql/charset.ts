import type { Segment, Statement } from '../../../core/dialect.ts';
import { isUsers } from '../../sql/text.ts';

/**
 * Segments whose tables can hold every text: those of a database in utf8mb4 have its collation, those of another one
 * say it. Compiling does not know the database.
 */
export function holdingEveryText(
  charset: string,
  collation: string,
): (segments: readonly Segment[]) => readonly Segment[] {
  if (charset === 'utf8mb4') return (segments) => segments;
  const tail = ` DEFAULT CHARACTER SET utf8mb4 COLLATE ${collation}`;
  const told = (statement: Statement): Statement =>
    isCreated(statement) ? { ...statement, run: [...(statement.run as string[]), tail] } : statement;
  return (segments) => segments.map((segment) => ({ ...segment, statements: segment.statements.map(told) }));
}

const isCreated = ({ run, text }: Statement): boolean =>
  Array.isArray(run) && !isUsers(run) && /^CREATE (TEMPORARY )?TABLE /.test(text);
