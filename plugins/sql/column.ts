import { SvcError } from '../../core/errors.ts';
import { isExpression } from '../../core/schema/default.ts';
import type { Field } from '../../core/schema/model.ts';
import type { Grammar } from './grammar.ts';
import { checkIdentifier, enumCheckName, primaryKeyName, uniqueName } from './names.ts';

/** `"name" type NOT NULL DEFAULT …`, without the constraints that follow from its flags. */
export function columnDefinition(grammar: Grammar, field: Field, table: string): string {
  checkIdentifier(grammar, field.name, 'field');
  const value = defaultText(grammar, field, table);
  return [
    grammar.quote(field.name),
    grammar.columnType(field, table),
    field.required ? 'NOT NULL' : grammar.nullable,
    field.autoGenerate ? (grammar.generated(field) ?? '') : '',
    value === undefined ? '' : `DEFAULT ${value}`,
    grammar.columnCheck(field, table),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

/** Throws `field_invalid` for an expression that would be more than one. */
export function defaultText(grammar: Grammar, field: Field, table: string): string | undefined {
  const { default: value, type } = field;
  if (value === undefined) return undefined;
  if (isExpression(value)) {
    const why = grammar.expressionProblem(value.$expression);
    if (why === undefined) return `(${value.$expression})`;
    throw new SvcError('field_invalid', `The default of "${table}.${field.name}" is not one expression.`, {
      why,
      next: ['Write one expression of SQL; for more than that there is raw.'],
    });
  }
  if (value === 'now' && (type === 'date' || type === 'time' || type === 'datetime' || type === 'timestamp')) {
    return grammar.now(type);
  }
  return grammar.defaultLiteral(value, field);
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
