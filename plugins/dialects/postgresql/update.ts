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

const isText = ({ type }: Field): boolean => type === 'string' || type === 'text' || type === 'enum';

const WORDS: UpdateWords = {
  quote,
  now: grammar.now,
  // A text is not cast to its length, which would cut it: the assignment refuses it. An enum may be a type of the server.
  typed(value, field) {
    const written = literal(value, field);
    if (field.type === 'float') return single(written);
    return isText(field) && field.type !== 'enum' ? `${written}::text` : written;
  },
  concat(parts, field) {
    const texts = parts.map((part) => ('field' in part ? `${quote(part.field.name)}::text` : text(part.literal)));
    // concat, unlike ||, takes NULL for nothing.
    return isText(field) ? `concat(${texts.join(', ')})` : `concat(${texts.join(', ')})::${columnType(field, '')}`;
  },
};
