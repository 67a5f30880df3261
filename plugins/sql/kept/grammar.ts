import type { RecordColumn, RecordValue } from '../../../core/records.ts';
import type { UpdateWords } from '../update.ts';
import { type RecordGrammar, readValue } from '../value.ts';
import { type KeptWords, literal, quote, text, typeText } from './words.ts';

export type KeptGrammar = RecordGrammar & UpdateWords;

/** How records and updates are written with these words. `elapsed` has to be put in for each write. */
export function keptGrammar(words: KeptWords): KeptGrammar {
  const { clock } = words;
  return {
    elapsed: '0',
    quote,
    literal,
    read,
    clock,
    columnType: (field) => typeText(words, field),
    typed: literal,
    now: (type) => `(${words.now[type] ?? clock})`,
    concat: (parts) =>
      `concat(${parts.map((part) => ('field' in part ? quote(part.field.name) : text(part.literal))).join(', ')})`,
  };
}

function read(value: unknown, column: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  if (column.type === 'json') return JSON.parse(String(value)) as RecordValue;
  return column.type === 'boolean' ? Number(value) !== 0 : readValue(value, column);
}
