import { text } from './quote.ts';

/** A query that gives a row where the catalog has it under exactly these names: its own comparison knows no case. */
export function has(view: string, table: string, names: Readonly<Record<string, string>> = {}): string {
  const schema = view === 'referential_constraints' ? 'constraint_schema' : 'table_schema';
  const conditions = Object.entries({ table_name: table, ...names }).map(
    ([column, name]) => `CAST(${column} AS BINARY) = CAST(${text(name)} AS BINARY)`,
  );
  return `SELECT 1 FROM information_schema.${view} WHERE ${schema} = DATABASE() AND ${conditions.join(' AND ')} LIMIT 1`;
}

export const lacks = (...queries: readonly string[]): string =>
  `SELECT 1 FROM DUAL WHERE ${queries.map((query) => `NOT EXISTS (${query})`).join(' AND ')}`;
