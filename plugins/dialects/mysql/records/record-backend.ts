import type { AnyRecordDefinition, RecordColumn, RecordValue } from '../../../../core/records.ts';
import { type RecordBackend, VERSION_COLUMN } from '../../sql/record-store.ts';
import { type RecordGrammar, readRecordColumn } from '../../sql/record-values.ts';
import { type ExecSql, retryTransient, rowsOf, type Session } from '../../sql/session.ts';
import { quoteIdentifier, quoteLiteral } from '../compile/literal.ts';
import { errorNumber, isTransient, toSvcError } from '../connection/errors.ts';
import { isCurrentEpoch } from '../connection/lock.ts';
import type { Variant } from '../variant.ts';

const MISSING_TABLE = 1146;
const DUPLICATE = 1062;
/** A table, column or index that another session created at the same time. */
const CREATED_CONCURRENTLY: ReadonlySet<number | undefined> = new Set([1050, 1060, 1061]);

/** A JSON type would reorder keys, and a TIMESTAMP ends in 2038; sessions are in UTC. */
const COLUMN_TYPES: Readonly<Record<RecordColumn['type'], string>> = {
  string: 'varchar(255)',
  text: 'longtext',
  integer: 'int',
  bigint: 'bigint',
  double: 'double',
  boolean: 'tinyint(1)',
  timestamp: 'datetime(3)',
  json: 'longtext',
};
const TEXT_TYPES: ReadonlySet<string> = new Set(['string', 'text', 'json']);

export function createRecordGrammar({ binaryCollation }: Pick<Variant, 'binaryCollation'>): RecordGrammar {
  return {
    quoteIdentifier,
    columnType: ({ type }) => {
      const column = COLUMN_TYPES[type as RecordColumn['type']];
      return TEXT_TYPES.has(type) ? `${column} CHARACTER SET utf8mb4 COLLATE ${binaryCollation}` : column;
    },
    literal(value, { type }) {
      if (value === null) return 'NULL';
      if (type === 'timestamp') return quoteLiteral(String(value).replace('T', ' ').replace('Z', ''));
      if (type === 'json') return quoteLiteral(JSON.stringify(value));
      return TEXT_TYPES.has(type) ? quoteLiteral(String(value)) : String(Number(value));
    },
    // NOW() is the start of the statement, before it waited for a lock.
    clock: 'SYSDATE(3)',
    elapsed: 'TIMESTAMPDIFF(MICROSECOND, @svc_started_at, SYSDATE(6)) / 1000',
    read: readColumn,
  };
}

function readColumn(value: unknown, column: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  if (column.type === 'timestamp') return new Date(`${String(value).replace(' ', 'T')}Z`);
  if (column.type === 'boolean') return Number(value) !== 0;
  return readRecordColumn(value, column);
}

/** `lockRetries`: how often a statement is retried after a lock wait time-out. */
export function createRecordBackend(session: Session, grammar: RecordGrammar, lockRetries: number): RecordBackend {
  const exec: ExecSql = (text) => retryTransient(() => session.exec(text), isTransient, lockRetries);
  return {
    exec,
    async readColumns(query, columns) {
      const rows = await rowsOf(exec, query.render());
      return rows.map((row) => columns.map((column) => row[column]));
    },
    grammar,
    schema: '',
    isMissing: (error) => errorNumber(error) === MISSING_TABLE,
    isDuplicate: (error) => errorNumber(error) === DUPLICATE,
    toSvcError,
    epochIsCurrent: isCurrentEpoch,
    write: async (statement) => (await exec(statement.render()))[0]?.count ?? 0,
  };
}

/** Creates the tables of records and adds columns and indexes of newer definitions. Safe to repeat and to run concurrently. */
export async function ensureTables(
  session: Session,
  grammar: RecordGrammar,
  definitions: readonly AnyRecordDefinition[],
): Promise<void> {
  try {
    for (const definition of definitions) await ensureTable(session.exec, grammar, definition);
  } catch (error) {
    throw toSvcError(error);
  }
}

async function ensureTable(exec: ExecSql, grammar: RecordGrammar, definition: AnyRecordDefinition): Promise<void> {
  const { collection } = definition;
  const table = quoteIdentifier(collection);
  const columns = Object.entries(definition.columns).map(([name, column]) => ({
    name,
    type: `${quoteIdentifier(name)} ${grammar.columnType({ type: column.type }, collection)}`,
    required: !column.nullable,
  }));
  const indexes = definition.indexes.map(({ name, equals, sort }) => ({
    name: `${collection}_${name}`,
    columns: indexColumns(definition, [...new Set([...equals, sort, definition.key])]),
  }));
  const lines = [
    ...columns.map(({ type, required }) => `${type} ${required ? 'NOT NULL' : 'NULL'}`),
    `${quoteIdentifier(VERSION_COLUMN)} bigint NOT NULL`,
    `PRIMARY KEY (${quoteIdentifier(definition.key)})`,
    ...indexes.map((index) => `KEY ${quoteIdentifier(index.name)} (${index.columns})`),
  ];
  await exec(`CREATE TABLE IF NOT EXISTS ${table} (${lines.join(', ')}) ENGINE = InnoDB`);
  const condition = `table_schema = database() AND table_name = ${quoteLiteral(collection)}`;
  const existing = new Set(
    (
      await rowsOf(
        exec,
        `SELECT column_name AS name FROM information_schema.columns WHERE ${condition} UNION SELECT index_name FROM information_schema.statistics WHERE ${condition}`,
      )
    ).map(({ name }) => String(name)),
  );
  const missing = [
    // Older rows have no value for a new column.
    ...columns.filter(({ name }) => !existing.has(name)).map(({ type }) => `ADD COLUMN ${type} NULL`),
    ...indexes
      .filter(({ name }) => !existing.has(name))
      .map((index) => `ADD KEY ${quoteIdentifier(index.name)} (${index.columns})`),
  ];
  for (const clause of missing) {
    await exec(`ALTER TABLE ${table} ${clause}`).catch((error) => {
      if (!CREATED_CONCURRENTLY.has(errorNumber(error))) throw error;
    });
  }
}

/** A key has at most 3,072 bytes, too few for four strings of 255 characters with four bytes each. */
function indexColumns({ columns }: AnyRecordDefinition, names: readonly string[]): string {
  const strings = names.filter((name) => columns[name]?.type === 'string');
  const maxLength = Math.floor(3000 / 4 / strings.length);
  return names
    .map((name) =>
      strings.includes(name) && maxLength < 250 ? `${quoteIdentifier(name)}(${maxLength})` : quoteIdentifier(name),
    )
    .join(', ');
}
