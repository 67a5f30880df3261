import type { UpdateJob } from '../../../../core/dialect.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { float32Literal, type UpdateSyntax, updateParts } from '../../sql/update-sql.ts';
import { grammar } from './grammar.ts';
import { jsonLiteral, literal, quoteLiteral } from './literal.ts';
import { qualified, quoteIdentifier } from './names.ts';
import { columnType } from './types.ts';

/**
 * One statement that returns the number of matching rows and of those whose values it changed. `schema` is quoted, with
 * its dot.
 */
export function updateSql(job: UpdateJob, schema: string): string {
  const table = qualified(job.table, schema);
  const { matching, changing, assignments } = updateParts(job, SYNTAX);
  return `WITH changed AS (UPDATE ${table} SET ${assignments} WHERE ${changing} RETURNING 1) SELECT (SELECT count(*) FROM ${table} WHERE ${matching}) AS matched, (SELECT count(*) FROM changed) AS modified`;
}

const isText = ({ type }: Field): boolean => type === 'string' || type === 'text' || type === 'enum';

const SYNTAX: UpdateSyntax = {
  quoteIdentifier,
  now: grammar.now,
  // A cast to the column's length would truncate the string; without it, the assignment fails. A literal of a text or an
  // enum has no cast: the column may have another type that is read as text.
  typedLiteral(value, field) {
    if (field.type === 'json' && value !== null) return `${jsonLiteral(value)}::jsonb`;
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
