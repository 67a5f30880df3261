import type { SvcError } from '../errors.ts';
import type { Collection, Constraint, Index } from './model.ts';

/** The property `native` in normal form, to be spread. Throws what `invalid` returns if it is empty. */
export function nativeText(
  written: string | undefined,
  invalid: (why: string) => SvcError,
): { readonly native?: string } {
  if (written === undefined) return {};
  const native = written.trim();
  if (native === '') throw invalid('"native" is empty.');
  return { native };
}

/** The fields an expression names outside string literals. Unquoted names match in any letter case. */
export function fieldsInExpression(expression: string, fields: Iterable<string>): string[] {
  const quoted = new Set<string>();
  const words = new Set<string>();
  for (const [token] of expression.matchAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|[\p{L}_][\p{L}\p{N}_$]*/gu)) {
    if (token.startsWith('"') || token.startsWith('`')) {
      const quote = token.charAt(0);
      quoted.add(token.slice(1, -1).replaceAll(quote + quote, quote));
    } else if (!token.startsWith("'")) {
      words.add(token.toLowerCase());
    }
  }
  return [...fields].filter((field) => quoted.has(field) || words.has(field.toLowerCase()));
}

/** The fields that the definition of an index in the engine's language reads. */
export const fieldsInTextOfIndex = ({ native, columns }: Index): readonly string[] =>
  native === undefined ? [] : columns.map(({ name }) => name);

/** The fields that an expression of a constraint reads. */
export function fieldsInTextOfConstraint(constraint: Constraint, fields: Iterable<string>): readonly string[] {
  if (constraint.type === 'check') return constraint.columns;
  return constraint.native === undefined ? [] : fieldsInExpression(constraint.native, fields);
}

/** What reads a field in a text, in words. */
export function textsReading({ constraints, indexes, fields }: Collection, field: string): string[] {
  return [
    ...[...constraints.values()]
      .filter((constraint) => fieldsInTextOfConstraint(constraint, [field]).includes(field))
      .map(({ type, name }) => `the ${type === 'check' ? 'check' : 'constraint'} "${name}"`),
    ...[...indexes.values()]
      .filter((index) => fieldsInTextOfIndex(index).includes(field))
      .map(({ name }) => `the index "${name}"`),
    ...computedFrom({ fields }, field).map((name) => `the field "${name}"`),
  ];
}

/** The fields whose native type has an expression that reads the field. */
export function computedFrom({ fields }: Pick<Collection, 'fields'>, field: string): string[] {
  return [...fields.values()].flatMap(({ name, native = '' }) => {
    const expression = /\bas\s*(\(.*)$/is.exec(native)?.[1];
    return expression !== undefined && fieldsInExpression(expression, [field]).length > 0 ? [name] : [];
  });
}
