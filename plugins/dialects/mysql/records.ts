import type { AnyRecordDefinition, RecordColumn, RecordValue, RecordWrite } from '../../../core/records.ts';
import { outwait } from '../../sql/outwait.ts';
import { type RecordHome, VERSION } from '../../sql/record-store.ts';
import { columnOf, engineColumns } from '../../sql/record-write.ts';
import { type Exec, rowsOf, type Session } from '../../sql/session.ts';
import { type RecordGrammar, readValue, recordValue } from '../../sql/value.ts';
import { epochStands, whileEpochStands } from './epoch.ts';
import { isPassing, numberOf, refusal } from './errors.ts';
import type { Flavour } from './flavour.ts';
import { quote, text } from './quote.ts';

const MISSING_TABLE = 1146;
const DUPLICATE = 1062;
/** A column, an index that two who make them at once both made. */
const RACES: ReadonlySet<number | undefined> = new Set([1050, 1060, 1061]);

/** Text keeps what JSON types would reorder; a DATETIME in a session on UTC does not end in 2038 as a TIMESTAMP does. */
const COLUMNS: Readonly<Record<RecordColumn['type'], string>> = {
  string: 'varchar(255)',
  text: 'longtext',
  integer: 'int',
  bigint: 'bigint',
  double: 'double',
  boolean: 'tinyint(1)',
  timestamp: 'datetime(3)',
  json: 'longtext',
};
const TEXTS: ReadonlySet<string> = new Set(['string', 'text', 'json']);

export function recordGrammarOf({ binaryCollation }: Pick<Flavour, 'binaryCollation'>): RecordGrammar {
  return {
    quote,
    columnType: ({ type }) => {
      const column = COLUMNS[type as RecordColumn['type']];
      return TEXTS.has(type) ? `${column} CHARACTER SET utf8mb4 COLLATE ${binaryCollation}` : column;
    },
    literal(value, { type }) {
      if (value === null) return 'NULL';
      if (type === 'timestamp') return text(String(value).replace('T', ' ').replace('Z', ''));
      if (type === 'json') return text(JSON.stringify(value));
      return TEXTS.has(type) ? text(String(value)) : String(Number(value));
    },
    // now() would be the moment the statement began, before it waited for a row.
    clock: 'SYSDATE(3)',
    elapsed: 'TIMESTAMPDIFF(MICROSECOND, @svc_began, SYSDATE(6)) / 1000',
    read,
  };
}

function read(value: unknown, column: RecordColumn): RecordValue {
  if (value === null || value === undefined) return null;
  if (column.type === 'timestamp') return new Date(`${String(value).replace(' ', 'T')}Z`);
  if (column.type === 'json') return JSON.parse(String(value)) as RecordValue;
  if (column.type === 'boolean') return Number(value) !== 0;
  return readValue(value, column);
}

/** `lockRetries`: times a text is sent again that waited for a lock as long as the session allows. */
export function recordHome(session: Session, grammar: RecordGrammar, lockRetries: number): RecordHome {
  const exec: Exec = (text) => outwait(() => session.exec(text), isPassing, lockRetries);
  return {
    exec,
    async values(query, columns) {
      const rows = await rowsOf(exec, query.filled());
      return rows.map((row) => columns.map((column) => row[column]));
    },
    grammar,
    schema: '',
    isMissing: (error) => numberOf(error) === MISSING_TABLE,
    isDuplicate: (error) => numberOf(error) === DUPLICATE,
    refusal,
    epochStands,
    write: async (statement) => (await exec(statement.filled()))[0]?.count ?? 0,
  };
}

/** Makes the tables of records and adds what a newer definition has; safe to repeat and to do at once. */
export async function ensureTables(
  session: Session,
  grammar: RecordGrammar,
  definitions: readonly AnyRecordDefinition[],
): Promise<void> {
  try {
    for (const definition of definitions) await ensureTable(session.exec, grammar, definition);
  } catch (error) {
    throw refusal(error);
  }
}

async function ensureTable(exec: Exec, grammar: RecordGrammar, definition: AnyRecordDefinition): Promise<void> {
  const { collection } = definition;
  const table = quote(collection);
  const columns = Object.entries(definition.columns).map(([name, column]) => ({
    name,
    type: `${quote(name)} ${grammar.columnType({ type: column.type }, collection)}`,
    required: !column.nullable,
  }));
  const indexes = definition.indexes.map(({ name, equals, sort }) => ({
    name: `${collection}_${name}`,
    columns: indexColumns(definition, [...new Set([...equals, sort, definition.key])]),
  }));
  const lines = [
    ...columns.map(({ type, required }) => `${type} ${required ? 'NOT NULL' : 'NULL'}`),
    `${quote(VERSION)} bigint NOT NULL`,
    `PRIMARY KEY (${quote(definition.key)})`,
    ...indexes.map((index) => `KEY ${quote(index.name)} (${index.columns})`),
  ];
  await exec(`CREATE TABLE IF NOT EXISTS ${table} (${lines.join(', ')}) ENGINE = InnoDB`);
  const here = `table_schema = database() AND table_name = ${text(collection)}`;
  const had = new Set(
    (
      await rowsOf(
        exec,
        `SELECT column_name AS name FROM information_schema.columns WHERE ${here} UNION SELECT index_name FROM information_schema.statistics WHERE ${here}`,
      )
    ).map(({ name }) => String(name)),
  );
  const missing = [
    // A column of a newer definition has no value in older rows.
    ...columns.filter(({ name }) => !had.has(name)).map(({ type }) => `ADD COLUMN ${type} NULL`),
    ...indexes.filter(({ name }) => !had.has(name)).map((index) => `ADD KEY ${quote(index.name)} (${index.columns})`),
  ];
  for (const clause of missing) {
    await exec(`ALTER TABLE ${table} ${clause}`).catch((error) => {
      if (!RACES.has(numberOf(error))) throw error;
    });
  }
}

/** A key has at most 3,072 bytes: more than three whole strings of 255 characters of four bytes do not fit. */
function indexColumns({ columns }: AnyRecordDefinition, names: readonly string[]): string {
  const strings = names.filter((name) => columns[name]?.type === 'string');
  const most = Math.floor(3000 / 4 / strings.length);
  return names
    .map((name) => (strings.includes(name) && most < 250 ? `${quote(name)}(${most})` : quote(name)))
    .join(', ');
}

/**
 * A record write inside a packet. An insert fails by itself, where the row is there or the epoch is over; behind a
 * replace ROW_COUNT() tells. Without an `epoch` none is asked for.
 */
export function writeText(grammar: RecordGrammar, write: RecordWrite, epoch: number | undefined): string {
  const { definition, record, version } = write;
  const table = quote(definition.collection);
  const say = (name: string) => recordValue(grammar, record[name], columnOf(definition, name));
  if (version === undefined) {
    const names = Object.keys(definition.columns);
    const values = [...names.map(say), epoch === undefined ? '1' : whileEpochStands(epoch, '1')];
    return `INSERT INTO ${table} (${[...names, VERSION].map(quote).join(', ')}) VALUES (${values.join(', ')})`;
  }
  const set = Object.keys(record)
    .filter((name) => name !== definition.key)
    .map((name) => `${quote(name)} = ${say(name)}`);
  return `UPDATE ${table} SET ${[...set, `${quote(VERSION)} = ${version + 1}`].join(', ')} WHERE ${quote(definition.key)} = ${say(definition.key)} AND ${quote(VERSION)} = ${version}${epoch === undefined ? '' : ` AND ${epochStands(epoch)}`}`;
}

/** What the engine filled in, of writes of one definition: a row for each, under its key. */
export function readBack(grammar: RecordGrammar, writes: readonly RecordWrite[]): string | undefined {
  const [first] = writes;
  if (!first) return undefined;
  const { definition } = first;
  const { key } = definition;
  const keys = writes.map(({ record }) => recordValue(grammar, record[key], columnOf(definition, key)));
  const columns = new Set([key, ...writes.flatMap(engineColumns)]);
  return `SELECT ${[...columns].map(quote).join(', ')} FROM ${quote(definition.collection)} WHERE ${quote(key)} IN (${keys.join(', ')})`;
}
