import type { Json } from '../../core/json.ts';
import type { Field } from '../../core/schema/model.ts';
import type { DialectUnderTest } from './dialect-under-test.ts';

/**
 * The SQL that the dialect suite needs, for an engine that supports standard SQL. `bytes` is a literal of bytes in hexadecimal,
 * by default `x'…'`. `rowsPerInsert` is 1 for an engine whose VALUES has one row, such as Firebird; by default there is no limit.
 */
export function sqlSyntax(
  quote: (name: string) => string,
  bytes: (hex: string) => string = (hex) => `x'${hex}'`,
  { rowsPerInsert = Number.POSITIVE_INFINITY }: { readonly rowsPerInsert?: number } = {},
): Required<Pick<DialectUnderTest, 'insert' | 'read' | 'clear' | 'raw' | 'syntax'>> {
  const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
  const literal = (value: Json | undefined, field: Field | undefined) => {
    if (value === null || value === undefined) return 'NULL';
    switch (field?.type) {
      case 'binary':
      case 'blob':
        return bytes(Buffer.from(String(value), 'base64').toString('hex'));
      case 'json':
        return text(JSON.stringify(value));
      default:
        return typeof value === 'string' ? text(value) : JSON.stringify(value);
    }
  };
  return {
    async insert(connection, collection, rows, fields) {
      const byColumns = new Map<string, string[]>();
      for (const row of rows) {
        const columns = Object.keys(row).map(quote).join(', ');
        const values = Object.entries(row).map(([name, value]) => literal(value, fields.get(name)));
        byColumns.set(columns, [...(byColumns.get(columns) ?? []), `(${values.join(', ')})`]);
      }
      for (const [columns, values] of byColumns) {
        const size = Math.min(rowsPerInsert, values.length);
        for (let at = 0; at < values.length; at += size) {
          const some = values.slice(at, at + size).join(', ');
          await connection.query(`INSERT INTO ${quote(collection)} (${columns}) VALUES ${some}`);
        }
      }
    },
    read: (connection, collection) => connection.query(`SELECT * FROM ${quote(collection)}`),
    clear: async (connection, collection) => void (await connection.query(`DELETE FROM ${quote(collection)}`)),
    raw: (collection) => ({
      statement: `INSERT INTO ${quote(collection)} (${quote('id')}) VALUES (7)`,
      check: `SELECT ${quote('id')} FROM ${quote(collection)} WHERE ${quote('id')} = 7`,
    }),
    syntax: {
      sum: '1 + 2',
      now: 'now()',
      notNull: (field) => `${quote(field)} IS NOT NULL`,
      numberRules: (number, other) => `${quote(number)} >= 0 AND ${quote(other)} <> 7`,
    },
  };
}
