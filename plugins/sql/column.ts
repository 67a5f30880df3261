import { isExpression } from '../../core/schema/default.ts';
import type { Field } from '../../core/schema/model.ts';
import type { Grammar } from './grammar.ts';
import { checkIdentifier, enumCheckName, primaryKeyName, uniqueName } from './names.ts';

/** `"name" type NOT NULL DEFAULT …`, without the constraints that follow from its flags. */
export function columnDefinition(grammar: Grammar, field: Field, table: string): string {
  checkIdentifier(grammar, field.name, 'field');
  const value = defaultText(grammar, field);
  return [
    grammar.quote(field.name),
    grammar.columnType(field, table),
    field.required ? 'NOT NULL' : '',
    field.autoGenerate ? (grammar.generated(field) ?? '') : '',
    value === undefined ? '' : `DEFAULT ${value}`,
  ]
    .filter((part) => part !== '')
    .join(' ');
}

export function defaultText(grammar: Grammar, field: Field): string | undefined {
  const { default: value, type } = field;
  if (value === undefined) return undefined;
  if (isExpression(value)) return `(${value.$expression})`;
  if (value === 'now' && (type === 'date' || type === 'time' || type === 'datetime' || type === 'timestamp')) {
    return grammar.now(type);
  }
  return grammar.literal(value, field);
}

/** Table constraints that follow from the flags of one field. */
export function fieldConstraints(grammar: Grammar, field: Field, table: string): string[] {
  const { quote } = grammar;
  const check = grammar.enumCheck(field);
  return [
    ...(field.unique ? [`CONSTRAINT ${quote(uniqueName(table, field.name))} UNIQUE (${quote(field.name)})`] : []),
    ...(check === undefined ? [] : [`CONSTRAINT ${quote(enumCheckName(table, field.name))} CHECK (${check})`]),
  ];
}

export function primaryKey(grammar: Grammar, columns: readonly string[], table: string): string {
  return `CONSTRAINT ${grammar.quote(primaryKeyName(table))} PRIMARY KEY (${columns.map(grammar.quote).join(', ')})`;
}
