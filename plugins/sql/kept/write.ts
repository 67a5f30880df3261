import type { Collection, Field, Index } from '../../../core/schema/model.ts';
import { constraintText } from '../compile.ts';
import { expressionProblem } from '../expression.ts';
import { defaultText, type KeptWords, quote, text, typeText } from './words.ts';

/** A constraint that a flag of the field stands for has no name, one of its own has: so each can be told when it is read. */
export function columnText(words: KeptWords, field: Field): string {
  const value = defaultText(words, field);
  const values = field.enumValues?.map(text).join(', ');
  return [
    `${quote(field.name)} ${typeText(words, field)}`,
    ...(field.required ? ['NOT NULL'] : []),
    ...(field.unique ? ['UNIQUE'] : []),
    ...(values === undefined ? [] : [`CHECK (${quote(field.name)} IN (${values}))`]),
    ...(value === undefined ? [] : [`DEFAULT (${value})`]),
  ].join(' ');
}

/** `CREATE TABLE`, in the form that `readKept` reads. */
export function tableText(words: KeptWords, { name, fields, constraints }: Collection, as = name): string {
  const keys = [...constraints.values()].flatMap((one) => (one.type === 'primaryKey' ? one.columns : []));
  const flagged = [...fields.values()].filter(({ primaryKey }) => primaryKey).map((field) => quote(field.name));
  const lines = [
    ...[...fields.values()].map((field) =>
      columnText(words, keys.includes(field.name) ? { ...field, required: true } : field),
    ),
    ...(flagged.length > 0 ? [`PRIMARY KEY (${flagged.join(', ')})`] : []),
    ...[...constraints.values()].map((constraint) => constraintText({ quote, expressionProblem }, constraint, '')),
  ];
  return `CREATE TABLE ${quote(as)} (\n  ${lines.join(',\n  ')}\n)`;
}

export function indexText(table: string, { name, columns, unique }: Index): string {
  const keys = columns.map((column) => `${quote(column.name)}${column.order === 'desc' ? ' DESC' : ''}`);
  return `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${quote(name)} ON ${quote(table)} (${keys.join(', ')})`;
}
