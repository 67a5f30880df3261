import { SCHEMA_PLACEHOLDER } from '../../sql/statement.ts';

export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export interface Relation {
  /** Undefined for the schema of the connection. */
  readonly schema: string | undefined;
  readonly name: string;
}

/** `billing.invoices` is "invoices" of the schema "billing". */
export function relationOf(path: string): Relation {
  const dot = path.indexOf('.');
  return dot < 0 ? { schema: undefined, name: path } : { schema: path.slice(0, dot), name: path.slice(dot + 1) };
}

/** The path that a word of a statement is: of `billing."Invoices"`, `billing.Invoices`. */
export const pathIn = (word: string): string =>
  word.replace(/"((?:[^"]|"")*)"/g, (_, quoted: string) => quoted.replaceAll('""', '"'));

export const pathOf = ({ schema, name }: Relation): string => (schema === undefined ? name : `${schema}.${name}`);

/** Quoted and with its schema. `home` is that of the connection, quoted and with its dot: a statement has a placeholder for it. */
export const qualified = (path: string, home: string = SCHEMA_PLACEHOLDER): string =>
  qualifiedIn(path, relationOf(path).name, home);

/** An index, or what else is in the schema of its table. */
export function qualifiedIn(table: string, index: string, home: string = SCHEMA_PLACEHOLDER): string {
  const { schema } = relationOf(table);
  return `${schema === undefined ? home : `${quoteIdentifier(schema)}.`}${quoteIdentifier(index)}`;
}
