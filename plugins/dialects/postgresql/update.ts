import type { UpdateJob } from '../../../core/dialect.ts';
import type { Field } from '../../../core/schema/model.ts';
import { single } from '../../sql/single.ts';
import { type UpdateWords, updateParts } from '../../sql/update.ts';
import { grammar, quote } from './grammar.ts';
import { literal, text } from './literal.ts';
import { columnType } from './types.ts';

/** One statement: rows that matched, and those of them whose values it changed. */
export function updateText(job: UpdateJob, schema: string): string {
  const table = `${schema}${quote(job.table)}`;
  const { matching, changing, assignments } = updateParts(job, WORDS);
  return `WITH changed AS (UPDATE ${table} SET ${assignments} WHERE (${matching}) AND ${changing} RETURNING 1) SELECT (SELECT count(*) FROM ${table} WHERE ${matching}) AS matched, (SELECT count(*) FROM changed) AS modified`;
}

/** Types without an equality, as xml, come out as an operator that there is not. */
export const INCOMPARABLE = '42883';

const isText = ({ type }: Field): boolean => type === 'string' || type === 'text' || type === 'enum';

const WORDS: UpdateWords = {
  quote,
  now: grammar.now,
  // A text is not cast to its length, which would cut it: the assignment refuses it. What is read as an enum or a text
  // may be of any type of the server, which then is the literal's too.
  typed(value, field) {
    const written = literal(value, field);
    if (field.type === 'float') return single(written);
    return field.type === 'string' ? `${written}::text` : written;
  },
  // It may be a json, which is equal to nothing.
  compared: (field) => (field.type === 'json' ? `${quote(field.name)}::jsonb` : quote(field.name)),
  concat(parts, field) {
    const texts = parts.map((part) => ('field' in part ? `${quote(part.field.name)}::text` : text(part.literal)));
    // concat, unlike ||, takes NULL for nothing.
    return isText(field) ? `concat(${texts.join(', ')})` : `concat(${texts.join(', ')})::${columnType(field, '')}`;
  },
};
