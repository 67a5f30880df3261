import type { UpdateJob, UpdateResult } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { type Result, retryTransient, rowsOf, type Session } from '../../sql/session.ts';
import { float32Literal, type UpdateSyntax, updateParts } from '../../sql/update-sql.ts';
import { codeOf, isTransient, LOCK_NOT_AVAILABLE, toSvcError } from '../connection/errors.ts';
import { grammar, quoteIdentifier } from './grammar.ts';
import { literal, quoteLiteral } from './literal.ts';
import { columnType } from './types.ts';

/** Longer than for a schema change: waiting for a row does not block other sessions. */
const ROW_LOCK_TIMEOUT = '60s';

/** `undefined_function`: also the error of comparing a type without an equality operator, such as xml. */
const UNDEFINED_FUNCTION = '42883';

/** `schema` is quoted, with its dot. */
export async function runUpdate(
  session: Session,
  job: UpdateJob,
  schema: string,
  retries: number,
): Promise<UpdateResult> {
  const text = `SET LOCAL lock_timeout = '${ROW_LOCK_TIMEOUT}'; ${compileUpdate(job, schema)}`;
  const [row] = await sendUpdate(session, text, retries);
  const modified = Number(row?.modified);
  // Matches are counted on an older snapshot than the changes: other sessions may have changed rows in between.
  return { matched: Math.max(Number(row?.matched), modified), modified };
}

async function sendUpdate(session: Session, text: string, retries: number): Promise<Result['rows']> {
  const isDeadlock = (error: unknown) => isTransient(error) && codeOf(error) !== LOCK_NOT_AVAILABLE;
  try {
    return await retryTransient(() => rowsOf(session.exec, text), isDeadlock, retries);
  } catch (error) {
    if (codeOf(error) === UNDEFINED_FUNCTION) throw incomparableError(error as Error);
    throw isTransient(error) ? withNothingChanged(toSvcError(error)) : toSvcError(error);
  }
}

function incomparableError(error: Error): SvcError {
  return new SvcError('not_supported', 'A field has a PostgreSQL type whose values svc cannot compare.', {
    why: `${UNDEFINED_FUNCTION}: ${error.message}`,
    state: 'Nothing was changed.',
    next: ['Write the update as a raw statement in SQL.'],
    cause: error,
  });
}

/** One statement that returns the number of matching rows and of those whose values it changed. */
function compileUpdate(job: UpdateJob, schema: string): string {
  const table = `${schema}${quoteIdentifier(job.table)}`;
  const { matching, changing, assignments } = updateParts(job, SYNTAX);
  return `WITH changed AS (UPDATE ${table} SET ${assignments} WHERE (${matching}) AND ${changing} RETURNING 1) SELECT (SELECT count(*) FROM ${table} WHERE ${matching}) AS matched, (SELECT count(*) FROM changed) AS modified`;
}

const isText = ({ type }: Field): boolean => type === 'string' || type === 'text' || type === 'enum';

const SYNTAX: UpdateSyntax = {
  quoteIdentifier,
  now: grammar.now,
  // A cast to the column's length would truncate the string; without it, the assignment fails. A literal of a text or an
  // enum has no cast: the column may have another type that is read as text.
  typedLiteral(value, field) {
    const sql = literal(value, field);
    if (field.type === 'float') return float32Literal(sql);
    return field.type === 'string' ? `${sql}::text` : sql;
  },
  // The column may be of the type json, which has no equality operator.
  comparisonColumn: (field) =>
    field.type === 'json' ? `${quoteIdentifier(field.name)}::jsonb` : quoteIdentifier(field.name),
  concat(parts, field) {
    const texts = parts.map((part) =>
      'field' in part ? `${quoteIdentifier(part.field.name)}::text` : quoteLiteral(part.literal),
    );
    // Unlike ||, concat treats NULL as an empty string.
    return isText(field) ? `concat(${texts.join(', ')})` : `concat(${texts.join(', ')})::${columnType(field, '')}`;
  },
};
