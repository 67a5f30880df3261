import { SvcError } from '../../../core/errors.ts';
import { isExpression } from '../../../core/schema/literal.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { Grammar } from './grammar.ts';
import { assertIdentifier, enumCheckName, primaryKeyName, uniqueName } from './names.ts';

/** `"name" type NOT NULL DEFAULT …`, without the constraints of its flags. */
export function columnDefinition(grammar: Grammar, field: Field, table: string): string {
  assertIdentifier(grammar, field.name, 'field');
  const value = defaultExpression(grammar, field, table);
  const generated = field.autoGenerate || field.native !== undefined ? (grammar.generated(field) ?? '') : '';
  // Some engines read NULL and NOT NULL only after an expression.
  const nullable = /^GENERATED ALWAYS AS \(/i.test(generated) ? '' : grammar.nullable;
  const nullability = field.required ? 'NOT NULL' : nullable;
  const defaultClause = value === undefined ? '' : `DEFAULT ${value}`;
  const rules = nullable === grammar.nullable ? [nullability, generated] : [generated, nullability];
  return [
    grammar.quoteIdentifier(field.name),
    grammar.columnType(field, table),
    ...(grammar.defaultFirst ? [defaultClause, ...rules.toReversed()] : [...rules, defaultClause]),
    grammar.columnComment?.(field, table) ?? '',
    grammar.columnCheck(field, table),
  ]
    .filter((part) => part !== '')
    .join(' ');
}

/** The default as SQL; undefined without one. Throws `field_invalid` for text that is not a single expression. */
export function defaultExpression(grammar: Grammar, field: Field, table: string): string | undefined {
  const { default: value, type } = field;
  if (value === undefined) return undefined;
  if (isExpression(value)) {
    const why = grammar.expressionProblem(value.$expression);
    if (why === undefined) return `(${value.$expression})`;
    throw new SvcError('field_invalid', `The default of "${table}.${field.name}" is not a single expression.`, {
      why,
      next: ['Write a single SQL expression, or use a raw migration.'],
    });
  }
  if (value === 'now' && (type === 'date' || type === 'time' || type === 'datetime' || type === 'timestamp')) {
    return grammar.now(field);
  }
  return grammar.defaultLiteral(value, field);
}

/** The table constraints of the flags of a field. */
export function fieldConstraints(grammar: Grammar, field: Field, table: string): string[] {
  const { quoteIdentifier } = grammar;
  const check = grammar.enumCheck(field);
  return [
    ...(field.unique
      ? [
          `CONSTRAINT ${quoteIdentifier(uniqueName(table, field.name, grammar.names))} UNIQUE (${quoteIdentifier(field.name)})`,
        ]
      : []),
    ...(check === undefined
      ? []
      : [`CONSTRAINT ${quoteIdentifier(enumCheckName(table, field.name, grammar.names))} CHECK (${check})`]),
  ];
}

/** `CONSTRAINT … PRIMARY KEY (…)` with the derived name of the table. `columns` are unquoted names. */
export function primaryKeyConstraint(grammar: Grammar, columns: readonly string[], table: string): string {
  return `CONSTRAINT ${grammar.quoteIdentifier(primaryKeyName(table, grammar.names))} PRIMARY KEY (${columns.map(grammar.quoteIdentifier).join(', ')})`;
}
