import type { Json } from '../../core/json.ts';
import type { Field } from '../../core/schema/model.ts';
import type { DialectUnderTest, Row, StoredRow } from './dialect-under-test.ts';

const ANY_FIELDS = 'the engine accepts any fields in a row';
const keyOf = (table: string, id: unknown) => `${table}:${id}`;
const command = (...parts: readonly Json[]) => JSON.stringify(parts);

/** What the dialect suite needs for a dialect of `embeddedKeyValueDialect`, with the commands that such a dialect runs. */
export const keyValueSyntax: Required<
  Pick<DialectUnderTest, 'insert' | 'read' | 'clear' | 'raw' | 'notEnforced' | 'addUnsupportedObject'>
> = {
  async insert(connection, table, rows, fields) {
    const id = [...fields.values()].find(({ primaryKey }) => primaryKey)?.name ?? 'id';
    for (const row of rows) {
      const key = keyOf(table, row[id]);
      if ((await connection.query(command('get', key))).length > 0) throw new Error(`${key} exists`);
      await connection.query(command('put', key, storedRow(row, fields)));
    }
  },
  read: async (connection, table) =>
    (await connection.query(command('list', keyOf(table, '')))).map(({ value }) => value as StoredRow),
  async clear(connection, table) {
    for (const { key } of await connection.query(command('list', keyOf(table, ''))))
      await connection.query(command('remove', String(key)));
  },
  raw: (table) => ({
    statement: command('put', keyOf(table, 7), { id: 7 }),
    check: command('get', keyOf(table, 7)),
  }),
  notEnforced: { required: ANY_FIELDS, default: 'the engine fills in no values', enum: ANY_FIELDS, length: ANY_FIELDS },
  addUnsupportedObject: async (connection, table) =>
    void (await connection.query(command('put', `${keyOf(table, 1)}:tags`, ['new']))),
};

const storedRow = (row: Row, fields: ReadonlyMap<string, Field>): Record<string, Json> =>
  Object.fromEntries(
    Object.entries(row).flatMap(([name, value]): [string, Json][] => {
      const type = fields.get(name)?.type;
      if (value === null) return [];
      return [[name, type === 'binary' || type === 'blob' ? { $bytes: value } : value]];
    }),
  );
