import type { Json } from '../../core/json.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';

/** The SQL that the dialect suite needs, for an engine that supports standard SQL. */
export function sqlSyntax(
  quote: (name: string) => string,
): Required<Pick<DialectUnderTest, 'insert' | 'read' | 'clear' | 'raw' | 'syntax'>> {
  const literal = (value: Json | undefined) =>
    value === null || value === undefined
      ? 'NULL'
      : typeof value === 'string'
        ? `'${value.replaceAll("'", "''")}'`
        : JSON.stringify(value);
  return {
    async insert(connection, collection, rows) {
      for (const row of rows) {
        const columns = Object.keys(row).map(quote).join(', ');
        const values = Object.values(row).map(literal).join(', ');
        await connection.query(`INSERT INTO ${quote(collection)} (${columns}) VALUES (${values})`);
      }
    },
    read: (connection, collection) => connection.query(`SELECT * FROM ${quote(collection)}`),
    clear: async (connection, collection) => void (await connection.query(`DELETE FROM ${quote(collection)}`)),
    raw: (collection) => ({
      statement: `INSERT INTO ${quote(collection)} (id) VALUES (7)`,
      check: `SELECT id FROM ${quote(collection)} WHERE id = 7`,
    }),
    syntax: {
      sum: '1 + 2',
      now: 'now()',
      notNull: (field) => `${quote(field)} IS NOT NULL`,
      numberRules: (number, other) => `${quote(number)} >= 0 AND ${quote(other)} <> 7`,
    },
  };
}
