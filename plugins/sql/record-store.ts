import { SvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import type {
  Guard,
  Page,
  PageQuery,
  RecordDefinition,
  RecordStore,
  RecordValue,
  RecordValues,
  Versioned,
  Writable,
} from '../../core/records.ts';
import { type Exec, rowsOf } from './session.ts';
import { Template } from './template.ts';
import { type RecordGrammar, recordValue } from './value.ts';

/** The column that counts the replaces of a record. */
export const VERSION = '_version';

/** Where records live and what the engine's errors mean. */
export interface RecordHome {
  readonly exec: Exec;
  /** The values of those columns in the rows of a query, in its order: many rows in the form that costs least. */
  values(query: Template, columns: readonly string[]): Promise<readonly (readonly unknown[])[]>;
  readonly grammar: RecordGrammar;
  /** Quoted, with its dot. */
  readonly schema: string;
  isMissing(error: unknown): boolean;
  isDuplicate(error: unknown): boolean;
  refusal(error: unknown): unknown;
  /** True while the epoch stands, and keeps it standing until the statement's transaction is over. */
  epochStands(epoch: number): string;
  /** Runs a statement that writes a record, and tells those who watch of `told`. Gives the rows it touched. */
  write(statement: Template, told?: { readonly collection: string; readonly key: string }): Promise<number>;
}

export function recordStore<R extends object>(home: RecordHome, definition: RecordDefinition<R>): RecordStore<R> {
  const { grammar } = home;
  const { quote } = grammar;
  const table = `${home.schema}${quote(definition.collection)}`;
  const columns = Object.keys(definition.columns) as (keyof R & string)[];
  const key = quote(definition.key);
  const version = quote(VERSION);
  const say = (column: keyof R & string, value: unknown) =>
    recordValue(grammar, value as RecordValue, definition.columns[column]);
  const write = (statement: Template, id: string, record: Writable<R>) =>
    home.write(statement, definition.tells?.(record) ? { collection: definition.collection, key: id } : undefined);
  const recordIn = (row: readonly unknown[], wanted: readonly (keyof R & string)[]): R => {
    const record: Record<string, RecordValue> = {};
    for (const [at, column] of wanted.entries()) record[column] = grammar.read(row[at], definition.columns[column]);
    return record as R;
  };

  const get = async (id: string): Promise<Versioned<R> | undefined> => {
    const all = [...columns, VERSION];
    const query = Template.of(
      (put) => `SELECT ${list(quote, all)} FROM ${table} WHERE ${key} = ${put(say(definition.key, id))}`,
    );
    const [row] = await orNothing(home, () => home.values(query, all));
    return row && { record: recordIn(row, columns), version: Number(row[columns.length]) };
  };
  const why = async (id: string, asked: number): Promise<'missing' | 'stale' | undefined> => {
    const current = await get(id);
    if (!current) return 'missing';
    return current.version === asked ? undefined : 'stale';
  };

  return {
    async insert(record) {
      const statement = Template.of((put) => {
        const values = columns.map((column) => put(say(column, record[column])));
        return `INSERT INTO ${table} (${list(quote, [...columns, VERSION])}) VALUES (${[...values, '1'].join(', ')})`;
      });
      try {
        await write(statement, String(record[definition.key]), record);
        return 'inserted';
      } catch (error) {
        if (home.isDuplicate(error)) return 'exists';
        throw home.refusal(error);
      }
    },
    get,
    async replace(id, asked, record: Writable<R>, guard: Guard<R> = {}) {
      const statement = Template.of((put) => {
        const set = columns.map((column) => `${quote(column)} = ${put(say(column, record[column]))}`);
        const conditions = [`${key} = ${put(say(definition.key, id))}`, `${version} = ${put(String(asked))}`];
        if (guard.before !== undefined) conditions.push(`${quote(guard.before)} > ${grammar.clock}`);
        if (guard.epoch !== undefined) conditions.push(home.epochStands(guard.epoch));
        return `UPDATE ${table} SET ${set.join(', ')}, ${version} = ${version} + 1 WHERE ${conditions.join(' AND ')}`;
      });
      const changed = await attempt(home, () => write(statement, id, record));
      if (changed > 0) return 'replaced';
      const reason = await why(id, asked);
      if (reason) return reason;
      if (guard.epoch === undefined) return guard.before === undefined ? 'stale' : 'late';
      const stands = await rowsOf(
        home.exec,
        `SELECT 1 AS stands FROM (SELECT 1 AS one) AS row_of_one WHERE ${home.epochStands(guard.epoch)}`,
      );
      return stands.length > 0 && guard.before !== undefined ? 'late' : 'stale';
    },
    async remove(id, asked) {
      const statement = Template.of(
        (put) =>
          `DELETE FROM ${table} WHERE ${key} = ${put(say(definition.key, id))} AND ${version} = ${put(String(asked))}`,
      );
      const changed = await attempt(home, () => home.write(statement));
      return changed > 0 ? 'removed' : ((await why(id, asked)) ?? 'stale');
    },
    async page(name, query) {
      const index = definition.indexes.find((one) => one.name === name);
      if (!index) throw new Error(`${definition.collection} has no index ${name}`);
      if (!Number.isInteger(query.limit) || query.limit < 1 || query.limit > 1000) {
        throw new SvcError('value_invalid', `A page has 1 to 1,000 records, not ${query.limit}.`);
      }
      const wanted = query.columns ?? columns;
      const down = query.direction === 'desc';
      const order = down ? ' DESC' : '';
      const sort = quote(index.sort);
      const conditions = index.equals.map((column) => {
        if (query.equals?.[column] === undefined) throw new Error(`${name} needs a value for ${column}`);
        return `${quote(column)} = ${say(column, query.equals[column])}`;
      });
      if (query.from !== undefined) conditions.push(`${sort} >= ${say(index.sort, query.from)}`);
      if (query.to !== undefined) conditions.push(`${sort} <= ${say(index.sort, query.to)}`);
      if (query.cursor !== undefined) {
        const [at, id] = cursorValues(query.cursor);
        const last = definition.columns[index.sort].type === 'timestamp' ? new Date(String(at)) : at;
        const [bound, beyond] = [say(index.sort, last), down ? '<' : '>'];
        // By the first alone an engine that knows no pairs finds its place in the index.
        conditions.push(
          `${sort} ${beyond}= ${bound}`,
          `(${sort}, ${key}) ${beyond} (${bound}, ${say(definition.key, id)})`,
        );
      }
      const names: readonly (keyof R & string)[] = [...new Set([...wanted, index.sort, definition.key])];
      const where = conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : '';
      const text = `SELECT ${list(quote, [...names, VERSION])} FROM ${table}${where} ORDER BY ${sort}${order}, ${key}${order} LIMIT ${query.limit + 1}`;
      const rows = await orNothing(home, () => home.values(new Template(text), [...names, VERSION]));
      const valueIn = (row: readonly unknown[], column: keyof R & string) =>
        grammar.read(row[names.indexOf(column)], definition.columns[column]);
      const records = rows
        .slice(0, query.limit)
        .map((row): Versioned<R> => ({ record: recordIn(row, wanted), version: Number(row[names.length]) }));
      const last = rows.length > query.limit ? rows[query.limit - 1] : undefined;
      if (!last) return { records };
      const end = JSON.stringify([valueIn(last, index.sort), valueIn(last, definition.key)]);
      return { records, cursor: Buffer.from(end).toString('base64url') };
    },
  } satisfies RecordStore<R> & { page(index: string, query: PageQuery<R>): Promise<Page<R>> };
}

const list = (quote: (name: string) => string, names: readonly string[]): string => names.map(quote).join(', ');

/** Rows changed; a table that is not there has none. */
async function attempt(home: RecordHome, write: () => Promise<number>): Promise<number> {
  try {
    return await write();
  } catch (error) {
    if (home.isMissing(error)) return 0;
    throw home.refusal(error);
  }
}

async function orNothing<T>(home: RecordHome, read: () => Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await read();
  } catch (error) {
    if (home.isMissing(error)) return [];
    throw home.refusal(error);
  }
}

function cursorValues(cursor: string): readonly [Json, Json] {
  try {
    const [at, id, ...more] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Json[];
    if (at !== undefined && id !== undefined && more.length === 0) return [at, id];
  } catch {
    // Told below, as for a cursor of another shape.
  }
  throw new SvcError('value_invalid', 'The cursor is not one that a page gave.');
}

/**
 * What makes the table of a definition, or adds what a newer definition has; safe to repeat. `had` are the columns that
 * are there, for an engine that cannot ask for them itself.
 */
export function recordTable(
  grammar: RecordGrammar,
  schema: string,
  definition: RecordDefinition<RecordValues>,
  had?: readonly string[],
): string[] {
  const { quote } = grammar;
  const table = `${schema}${quote(definition.collection)}`;
  const columns = Object.entries(definition.columns).map(([name, column]) => ({
    name,
    text: `${quote(name)} ${grammar.columnType({ type: column.type }, definition.collection)}`,
    required: !column.nullable,
  }));
  const lines = columns.map(({ name, text, required }) =>
    name === definition.key ? `${text} PRIMARY KEY` : required ? `${text} NOT NULL` : text,
  );
  return [
    `CREATE TABLE IF NOT EXISTS ${table} (${[...lines, `${quote(VERSION)} bigint NOT NULL`].join(', ')})`,
    // A column of a newer definition has no value in older rows.
    ...columns
      .filter(({ name }) => had === undefined || (had.length > 0 && !had.includes(name)))
      .map(({ text }) => `ALTER TABLE ${table} ADD COLUMN ${had === undefined ? 'IF NOT EXISTS ' : ''}${text}`),
    ...definition.indexes.map(
      ({ name, equals, sort }) =>
        `CREATE INDEX IF NOT EXISTS ${quote(`${definition.collection}_${name}`)} ON ${table} (${list(quote, [...new Set([...equals, sort, definition.key])])})`,
    ),
  ];
}
